// Live steps against the elements that every instance wants.
// SPDX-License-Identifier: Apache-2.0
#include "place/live.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cosmati::place {
namespace {

TEST(Live, StepsAreThoseThatSomeInstanceWantsAndWholeWhereAllDo) {
  std::mt19937 random(19);
  int whole = 0, tested = 0, none = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto pick = [&](std::int64_t from, std::int64_t to) {
      return from + static_cast<std::int64_t>(random() % static_cast<unsigned>(to - from + 1));
    };
    const std::int64_t size = pick(1, 8), extent = pick(0, 40);
    std::vector<std::pair<std::int64_t, std::int64_t>> instances;
    BoundRange lo{1000, -1000}, hi{1000, -1000};
    const std::int64_t at = pick(-10, 45), width = pick(-3, 40);
    for (std::int64_t k = 0; k < pick(1, 4); ++k) {
      instances.emplace_back(at + pick(0, 6), at + width + pick(0, 6));
      lo = {std::min(lo.least, instances.back().first), std::max(lo.greatest, instances.back().first)};
      hi = {std::min(hi.least, instances.back().second), std::max(hi.greatest, instances.back().second)};
    }
    const LiveSteps steps = live_steps(lo, hi, size, extent);
    ASSERT_LE(steps.first, steps.whole_first);
    ASSERT_LE(steps.whole_first, steps.whole_last);
    ASSERT_LE(steps.whole_last, steps.last);
    for (std::int64_t step = 0; step * size < extent; ++step) {
      bool some = false, all = true;
      for (std::int64_t c = step * size; c < (step + 1) * size; ++c)
        for (const auto& [from, to] : instances) {
          const bool wants = from <= c && c < to && c < extent;
          some = some || wants;
          all = all && wants;
        }
      const bool runs = steps.first <= step && step < steps.last, is_whole = steps.whole_first <= step && step < steps.whole_last;
      if (some) {
        ASSERT_TRUE(runs);
      }
      ASSERT_EQ(is_whole, all);
      ++(is_whole ? whole : runs ? tested : none);
    }
  }
  EXPECT_GT(whole, 1000);
  EXPECT_GT(tested, 1000);
  EXPECT_GT(none, 1000);
  // Causal: 4 queries of a group share the loop over keys, 16 a step; only the last step is tested.
  EXPECT_EQ(live_steps({0, 0}, {61, 64}, 16, 100), (LiveSteps{0, 0, 3, 4}));
}

}  // namespace
}  // namespace cosmati::place
