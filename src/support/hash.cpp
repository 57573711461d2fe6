// XXH3 over the bytes.
// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cosmati::support {

std::string hash(std::string_view text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

std::string hash128(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

}  // namespace cosmati::support
