// The C++ header of a package: one typed function that calls it, and one that prepares a launch.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "language/source.h"
#include "runtime/manifest.h"

namespace cosmati::library {

// `signature` is of the program at fixed types.
std::string package_header(const runtime::Manifest& manifest, const language::Signature& signature, const std::string& identity);

}  // namespace cosmati::library
