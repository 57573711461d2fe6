// One pass over memory by plain vector loads and stores, as wide as the processor has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cosmati::tools {

// bypass: a copy whose stores go past the caches, where the processor has such stores.
enum class Stream : std::uint8_t { read, write, copy, bypass };

// Any `bytes` and alignment. read: one vector goes to `to`, the exclusive or of all at `from` (the last one filled up with
// zeros); write: of the one vector at `from`.
using Pass = void(void* to, const void* from, std::int64_t bytes);
constexpr std::int64_t vector_room = 64;  // bytes that the other end of read and write must have
Pass* pass_of(Stream stream);

}  // namespace cosmati::tools
