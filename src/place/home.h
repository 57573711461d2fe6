// home: where a value lies in memory: byte strides as digits, a swizzle, and what an access of a subgroup costs there, counted by
// enumerating the banks that its lanes touch.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "place/layout.h"

namespace cosmati::place {

// byte ^= ((byte >> (base + shift)) & mask(bits)) << base. What is within 2^base bytes stays together.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;
  bool operator==(const Swizzle&) const = default;
  std::int64_t operator()(std::int64_t byte) const {
    return byte ^ (((byte >> (base + shift)) & ((std::int64_t{1} << bits) - 1)) << base);
  }
};

// Each digit of an axis is on addr, or on a resource that tells homes apart (every group has its own shared memory).
struct Home {
  Placement map;
  Swizzle swizzle;
  std::int64_t element_bytes = 4;
  std::int64_t align = 16;  // of its first byte
  std::int64_t bytes = 0;   // of one copy; 0 where it is not ours to allocate
};
// No two elements share bytes. Refused: overlapping_bytes.
Verdict holds_apart(const Home& home);
// The byte of an element before the swizzle; `coordinates` by axis.
std::int64_t byte_of(const Home& home, const Extents& coordinates);

// Shared memory serves a word of each bank at a time.
struct Banks {
  std::int64_t count = 32, bytes = 4;
};
// Turns that one access takes whose lanes touch `width` bytes from each of `addresses` (-1: the lane is off). Lanes are served
// in the fewest runs of neighbours that move at most all banks; lanes on one word share it.
std::int64_t wavefronts(const std::vector<std::int64_t>& addresses, std::int64_t width, const Banks& banks = {});

}  // namespace cosmati::place
