// The loop covers the union of the instances' ranges; what lies in all of them needs no test.
// SPDX-License-Identifier: Apache-2.0
#include "place/live.h"

#include <algorithm>

namespace cosmati::place {

LiveSteps live_steps(const BoundRange& lo, const BoundRange& hi, std::int64_t size, std::int64_t extent) {
  const auto inside = [&](std::int64_t n) { return std::clamp<std::int64_t>(n, 0, extent); };
  const std::int64_t from = inside(lo.least), to = inside(hi.greatest);
  if (from >= to) return {0, 0, 0, 0};
  LiveSteps steps{from / size, (inside(lo.greatest) + size - 1) / size, inside(hi.least) / size, (to + size - 1) / size};
  if (steps.whole_first >= steps.whole_last) steps.whole_first = steps.whole_last = steps.first;
  return steps;
}

}  // namespace cosmati::place
