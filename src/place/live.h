// live: which steps of a loop have anything to do, and which of them must test each element, when the range of an axis differs
// among the instances that share the loop (causal, window, lengths).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cosmati::place {

// The least and greatest of a bound over the instances of a group.
struct BoundRange {
  std::int64_t least, greatest;
};
// Steps first .. last (half-open) have an element that some instance wants; of these whole_first .. whole_last have only elements
// that every instance wants, and test nothing. The other steps run the same body under a test.
struct LiveSteps {
  std::int64_t first, whole_first, whole_last, last;
  bool operator==(const LiveSteps&) const = default;
};
// A step takes `size` neighbouring coordinates; the instances want lo <= coordinate < hi, 0 <= coordinate < extent.
LiveSteps live_steps(const BoundRange& lo, const BoundRange& hi, std::int64_t size, std::int64_t extent);

}  // namespace cosmati::place
