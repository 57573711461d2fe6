// Different integers at random, in memory for those that are drawn, however wide the range.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cosmati::support {

// `count` different integers of 0 .. span, with count <= span. below(i, n) is the i-th random integer of 0 .. n.
template <class Below>
std::vector<std::uint64_t> draw_distinct(std::uint64_t span, std::uint64_t count, const Below& below) {
  std::vector<std::uint64_t> drawn;
  drawn.reserve(count);
  std::unordered_map<std::uint64_t, std::uint64_t> moved;  // a Fisher-Yates shuffle that keeps only the places it moved
  auto at = [&](std::uint64_t k) {
    auto it = moved.find(k);
    return it == moved.end() ? k : it->second;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t j = i + below(i, span - i);
    drawn.push_back(at(j));
    moved[j] = at(i);
  }
  return drawn;
}

}  // namespace cosmati::support
