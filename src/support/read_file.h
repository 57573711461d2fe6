// Reading a text that a user names.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cosmati::support {

// All bytes of a file or pipe. Throws Error{bad_file} where it cannot be read, is a folder, or does not end within 64 MiB.
std::string read_file(const std::string& path);

}  // namespace cosmati::support
