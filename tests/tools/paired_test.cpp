// Ratios of rounds: known ones, their counts, the order within a round, and when rounds stop.
// SPDX-License-Identifier: Apache-2.0
#include "tools/paired.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

namespace cosmati::tools {
namespace {

using testing::ElementsAre;

TEST(Paired, RatiosHaveAMedianARangeAndCounts) {
  const Ratio odd = ratio_of({2, 0.5, 1});
  EXPECT_EQ(odd.median, 1);
  EXPECT_EQ(odd.low, 0.5);
  EXPECT_EQ(odd.high, 2);
  EXPECT_EQ(odd.better, 1);
  EXPECT_EQ(odd.worse, 1);
  EXPECT_THAT(odd.rounds, ElementsAre(2, 0.5, 1));
  EXPECT_EQ(ratio_of({1, 4, 2, 8}).median, 3);
  EXPECT_EQ(text_of(ratio_of({0.5, 0.75})), "0.625 (0.500 .. 0.750, 2 rounds better, 0 worse)");
}

TEST(Paired, WhoIsFirstChangesFromRoundToRound) {
  std::string order;
  Timed ours([&] { order += 'a'; }), theirs([&] { order += 'b'; });
  EXPECT_EQ(in_rounds(ours, theirs, 4, [] { return true; }).rounds.size(), 4u);
  EXPECT_EQ(order, "aabbbbaaaabbbbaa");  // one call that is not counted, one that is
}

TEST(Paired, RoundsStopInPairsWhenThereIsNoTime) {
  Timed ours([] {}), theirs([] {});
  int asked = 0;
  EXPECT_EQ(in_rounds(ours, theirs, 12, [&] { return ++asked < 3; }).rounds.size(), 6u);
  EXPECT_EQ(in_rounds(ours, theirs, 12, [] { return false; }).rounds.size(), 2u);
}

TEST(Paired, ATwiceAsLongWaitIsTwiceAsLong) {
  const auto wait = [](int ms) { return [ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }; };
  Timed ours(wait(20)), theirs(wait(10));
  ours.calibrate(0.001);
  theirs.calibrate(0.001);
  const Ratio r = in_rounds(ours, theirs, 4, [] { return true; });
  EXPECT_GT(r.median, 1);
  EXPECT_EQ(r.worse, 4);
}

TEST(Paired, BatchesLastAsLongAsWanted) {
  std::int64_t calls = 0;
  Timed timed([&] { ++calls; });
  timed.calibrate(0.002);
  const std::int64_t before = calls;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_LT(timed.sample(), 1000);
  EXPECT_GT(calls - before, 1000);
  EXPECT_GT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 0.0002);
}

}  // namespace
}  // namespace cosmati::tools
