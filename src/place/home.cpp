// Bytes of elements and the banks they lie in.
// SPDX-License-Identifier: Apache-2.0
#include "place/home.h"

#include <fmt/format.h>

#include <algorithm>

namespace cosmati::place {

Verdict holds_apart(const Home& home) {
  std::vector<Segment> digits;
  for (const AxisMap& map : home.map.axes)
    for (const Digit& d : map.digits)
      if (d.res == Res::addr && number(d.size) > 1) digits.push_back({d.res, number(d.pos), number(d.size)});
  std::sort(digits.begin(), digits.end(), [](const Segment& a, const Segment& b) { return a.pos < b.pos; });
  std::int64_t span = home.element_bytes;
  for (const Segment& s : digits) {
    if (s.pos < span)
      return Refused{Reason::overlapping_bytes, fmt::format("(addr, {}, {})", s.pos, s.size),
                     fmt::format("faster ones span {}", span)};
    span += s.pos * (s.size - 1);
  }
  return Legal{};
}

std::int64_t byte_of(const Home& home, const Extents& coordinates) {
  std::int64_t byte = 0;
  for (const AxisMap& map : home.map.axes) {
    std::int64_t rest = coordinates[map.axis.index];
    for (const Digit& d : map.digits) {
      if (d.res == Res::addr) byte += rest % number(d.size) * number(d.pos);
      rest /= number(d.size);
    }
  }
  return byte;
}

std::int64_t wavefronts(const std::vector<std::int64_t>& addresses, std::int64_t width, const Banks& banks) {
  const std::int64_t together = std::max<std::int64_t>(1, banks.count * banks.bytes / std::max(width, banks.bytes));
  std::int64_t turns = 0;
  for (std::size_t first = 0; first < addresses.size(); first += static_cast<std::size_t>(together)) {
    std::vector<std::int64_t> words;
    for (std::size_t k = first; k < std::min(addresses.size(), first + static_cast<std::size_t>(together)); ++k) {
      if (addresses[k] < 0) continue;
      for (std::int64_t word = addresses[k] / banks.bytes; word * banks.bytes < addresses[k] + width; ++word)
        words.push_back(word);
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::vector<std::int64_t> of_bank(static_cast<std::size_t>(banks.count));
    std::int64_t most = 0;
    for (const std::int64_t word : words) most = std::max(most, ++of_bank[static_cast<std::size_t>(word % banks.count)]);
    turns += most;
  }
  return turns;
}

}  // namespace cosmati::place
