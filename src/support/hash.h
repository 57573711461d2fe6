// Hashes of text or bytes, printed as hexadecimal digits. Stable across machines and versions of the standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace cosmati::support {

std::string hash(std::string_view text);     // 16 digits
std::string hash128(std::string_view text);  // 32 digits

}  // namespace cosmati::support
