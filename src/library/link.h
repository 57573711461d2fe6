// The system's linker: from an object file to one that the dynamic linker loads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cosmati::library {

// Writes the shared object `made` of the object file `object`. Throws Error{backend_absent} where this system has no linker, and
// InternalError with its messages where it fails.
void link_shared(const std::string& object, const std::string& made);

}  // namespace cosmati::library
