// Hashes of text, printed as 16 hexadecimal digits. Stable across machines and versions of the standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace cosmati::support {

std::string hash(std::string_view text);

}  // namespace cosmati::support
