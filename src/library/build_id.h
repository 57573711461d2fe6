// Which build of the library this is: what it compiles may differ from what any other build compiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace cosmati::library {

// A hash of the library's sources, its compiler and its options, the same for every program that links this build.
std::string_view build_id();

}  // namespace cosmati::library
