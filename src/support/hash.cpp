// XXH3 over the bytes.
// SPDX-License-Identifier: Apache-2.0
#include "support/hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cosmati::support {

std::string hash(std::string_view text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

}  // namespace cosmati::support
