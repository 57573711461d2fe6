// One file of the disk cache: a header that says how long the rest is and hashes it, the key in full, the payload.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cosmati::library {

constexpr std::uint32_t cache_format = 1;  // of the header, the key's text and the payload

std::string encode_entry(std::string_view key, std::string_view payload);

struct Decoded {
  std::string_view payload;  // into the bytes
  std::string problem;       // empty: the entry is whole and of this key
};
Decoded decode_entry(std::string_view bytes, std::string_view key);

}  // namespace cosmati::library
