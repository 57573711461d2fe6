// Bytes of elements and the banks they lie in.
// SPDX-License-Identifier: Apache-2.0
#include "place/home.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  std::vector<std::pair<std::int64_t, std::int64_t>> words;  // by bank
  for (std::size_t first = 0; first < addresses.size(); first += static_cast<std::size_t>(together)) {
    words.clear();
    for (std::size_t k = first; k < std::min(addresses.size(), first + static_cast<std::size_t>(together)); ++k)
      for (std::int64_t word = addresses[k] / banks.bytes; addresses[k] >= 0 && word * banks.bytes < addresses[k] + width; ++word)
        words.emplace_back(word % banks.count, word);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::int64_t most = 0, run = 0;
    for (std::size_t k = 0; k < words.size(); ++k) {
      run = k > 0 && words[k].first == words[k - 1].first ? run + 1 : 1;
      most = std::max(most, run);
    }
    turns += most;
  }
  return turns;
}

}  // namespace cosmati::place
