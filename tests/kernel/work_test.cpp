// Counting work: trips, registers, chains, and the lines that loops touch.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/work.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cosmati::kernel {
namespace {

constexpr Rates rates = {32,       16,     {0.5, 1}, {0.5, 4}, {5, 12}, {1, 4},   {5, 12}, {0.25, 1}, {1, 3},
                         {0.5, 6}, {1, 4}, {1, 8},   {1, 7},   {6, 12}, {20, 60}, 20,      0.5};
constexpr Bytes caches = {32e3, 512e3, 16e6};

Work::Phase phase_of(const std::string& body, const std::vector<std::int64_t>& params, int lanes = 8) {
  const std::string text = fmt::format(
      "kernel k\n  param n: i64 = extent(0)\n  param s: i64 = stride(0, 0)\n  buffer x: f32 read = argument(0)\n"
      "  buffer y: f32 write = argument(1)\n  phase p groups n lanes {}\n{}",
      lanes, body);
  return Work(parse(text), rates)(params, caches).at(0);
}

double beyond(const Work::Phase& phase, std::uint32_t buffer, std::size_t level) {
  double sum = 0;
  for (const Touched& t : phase.footprint)
    if (t.buffer == buffer) sum += t.beyond[level];
  return sum;
}

const std::string sum_loop =
    "    for i in 0 .. s carry a = 0f32 gives r\n      let v = x[i * 8 + lane]\n      let t = a + v\n      next t\n"
    "    y[group * 8 + lane] = r\n";

TEST(Work, LoopsCountTheirTrips) {
  const double once = phase_of(sum_loop, {1, 1000}).cycles, twice = phase_of(sum_loop, {1, 2000}).cycles;
  EXPECT_NEAR(twice - once, 4500, 1e-6) << "a sum waits four cycles for the one before, going round takes half a one";
  EXPECT_EQ(phase_of(sum_loop, {5, 1000}).groups, 5);
  EXPECT_EQ(phase_of(sum_loop, {-5, 1000}).groups, 0);
  EXPECT_LT(phase_of(sum_loop, {1, 0}).cycles, 40);
}

TEST(Work, ChainsHoldIterationsBack) {
  const auto with = [&](const char* operation) {
    return phase_of(fmt::format("    for i in 0 .. s carry a = 0f32 gives r\n      let v = x[i * 8 + lane]\n"
                                "      let t = {}\n      next t\n    y[group * 8 + lane] = r\n",
                                operation),
                    {1, 1000})
        .cycles;
  };
  EXPECT_NEAR(with("a + v") - with("v + v"), 2500, 10) << "a latency of four cycles instead of work of one and a half";
  EXPECT_NEAR(with("fma(v, v, a)"), with("a + v"), 10);
  EXPECT_NEAR(with("v + v / v") - with("v + v"), 5000, 50) << "five cycles a quotient; nothing waits";
}

TEST(Work, ShortGroupsBeginWhileOthersWait) {
  EXPECT_LT(phase_of(sum_loop, {1000, 4}).cycles, 0.7 * phase_of(sum_loop, {1, 4}).cycles);
  EXPECT_EQ(phase_of(sum_loop, {1000, 1000}).cycles, phase_of(sum_loop, {1, 1000}).cycles);
}

TEST(Work, NeighboursAreOneAccessAndOthersOneALane) {
  const auto at = [&](const char* index) {
    return phase_of(fmt::format("    for i in 0 .. s\n      y[i * 8 + lane] = x[{}]\n", index), {1, 1000}).cycles;
  };
  EXPECT_GT(at("lane * s + i"), 3 * at("i * 8 + lane"));
  EXPECT_LT(at("i"), 1.2 * at("i * 8 + lane")) << "one element for all lanes";
}

TEST(Work, ABranchOfALoopThatDependsOnAnotherStandsInTheMiddle) {
  const std::string triangle = "    for i in 0 .. s\n      let m = i + 1\n      for j in 0 .. m\n        y[i * 64 + j] = x[j]\n";
  const double square = phase_of("    for i in 0 .. s\n      for j in 0 .. s\n        y[i * 64 + j] = x[j]\n", {1, 1000}).cycles;
  EXPECT_NEAR(phase_of(triangle, {1, 1000}).cycles / square, 0.5, 0.05);
}

TEST(Reuse, RowsThatFitAreReadOnceHoweverManyLoopsReadThem) {
  const std::string two_passes =
      "    for i in 0 .. s carry a = 0f32 gives r\n      let v = x[group * s * 8 + i * 8 + lane]\n      let t = a + v\n      "
      "next t\n"
      "    for j in 0 .. s\n      y[group * s * 8 + j * 8 + lane] = x[group * s * 8 + j * 8 + lane] + r\n";
  const Work::Phase near = phase_of(two_passes, {1000, 100});  // rows of 3200 bytes
  for (std::size_t level = 0; level < 3; ++level) EXPECT_NEAR(beyond(near, 0, level), 3.2e6, 1e5) << level;
  const Work::Phase far = phase_of(two_passes, {10, 1'000'000});  // of 32 MB
  EXPECT_NEAR(beyond(far, 0, 2), 2 * 320e6, 1e7) << "read again from beyond every cache";
  const Work::Phase middle = phase_of(two_passes, {1000, 2000});  // of 64 KB
  EXPECT_NEAR(beyond(middle, 0, 0), 2 * 64e6, 1e6);
  EXPECT_NEAR(beyond(middle, 0, 1), 64e6, 1e6);
}

TEST(Reuse, AWalkAcrossRowsTakesWholeLinesForEachElement) {
  // A column at a time, of rows that are `s` elements apart: a line comes again for each of its elements, where the lines of a
  // column do not fit.
  const std::string across = "    for i in 0 .. 100000\n      y[group] = x[i * s + group]\n";
  const Work::Phase phase = phase_of(across, {1024, 1024}, 1);
  EXPECT_NEAR(beyond(phase, 0, 1), 1024 * 100e3 * 64, 1e9);
  const std::string wide = "    for i in 0 .. 100000\n      y[group * 16] = x[i * s + group * 16] + x[i * s + group * 16 + 8]\n";
  EXPECT_NEAR(beyond(phase_of(wide, {64, 1024}, 1), 0, 1), 64 * 100e3 * 64, 1e8) << "two elements of a line are one line";
}

TEST(Reuse, RowsNextToEachOtherAreTwoRows) {
  const std::string two_rows =
      "    for i in 0 .. s\n      let a = x[group * s * 16 + i * 8 + lane]\n      let b = x[group * s * 16 + s * 8 + i * 8 + "
      "lane]\n"
      "      y[group * s * 8 + i * 8 + lane] = a + b\n";
  for (const std::int64_t columns : {10, 100, 100'000})
    EXPECT_NEAR(beyond(phase_of(two_rows, {100, columns}), 0, 2) / static_cast<double>(100 * columns * 16 * 4), 1, 0.1)
        << columns;
}

TEST(Reuse, NeighboursInRegistersMakeOneRun) {
  const std::string four =
      "    for i in 0 .. s\n      let b = i * 32\n      let c = b + lane\n      let d = b + 8 + lane\n"
      "      let e = b + 16 + lane\n      let f = b + 24 + lane\n      y[c] = x[c] + x[d] + (x[e] + x[f])\n";
  EXPECT_NEAR(beyond(phase_of(four, {1, 100'000}), 0, 0), 100'000 * 128, 1e4);
}

TEST(Reuse, AVisitIsWhatIsTouchedBeforeAnAccessGoesElsewhere) {
  const auto visit = [](const char* body) {
    const Work::Phase phase = phase_of(body, {1, 1000});
    return std::find_if(phase.footprint.begin(), phase.footprint.end(), [](const Touched& t) { return t.buffer == 0; })->visit;
  };
  EXPECT_EQ(visit("    for i in 0 .. s\n      y[i * 8 + lane] = x[i * 8 + lane]\n"), 32'000);
  EXPECT_EQ(visit("    for j in 0 .. 4\n      for i in 0 .. s\n        y[lane] = x[i * 4096 + j * 8 + lane]\n"), 32);
}

TEST(Reuse, RowsReadSideBySideAreOneVisitAndRowsStoredSoAreNot) {
  const Work::Phase phase = phase_of(
      "    for i in 0 .. s\n      y[group * s * 16 + i * 8 + lane] = x[group * s * 16 + i * 8 + lane]\n"
      "      y[group * s * 16 + s * 8 + i * 8 + lane] = x[group * s * 16 + s * 8 + i * 8 + lane]\n",
      {100, 10});
  ASSERT_EQ(phase.footprint.size(), 3u);
  for (const Touched& t : phase.footprint)
    if (t.buffer == 0)
      EXPECT_EQ(t.visit, 100 * 640) << "on and on";
    else
      EXPECT_EQ(t.visit, 320);
}

TEST(Reuse, LinesFilledInTurnsDoNotGoPastTheCaches) {
  const auto ragged = [](const char* body) {
    const Work::Phase phase = phase_of(body, {100, 128});
    return std::any_of(phase.footprint.begin(), phase.footprint.end(), [](const Touched& t) { return t.stored && t.ragged; });
  };
  EXPECT_FALSE(ragged("    for i in 0 .. s\n      y[group * 1024 + i * 8 + lane] = 0f32\n"));
  EXPECT_TRUE(
      ragged("    for i in 0 .. s\n      y[group * 2048 + i * 8 + lane] = 0f32\n"
             "      y[group * 2048 + 1024 + i * 8 + lane] = 0f32\n"));
}

// Groups whose number has two digits: the fast one goes along y, the slow one along x.
TEST(Reuse, WhatTheFastDigitOfTheGroupDoesNotMoveIsFoundAgain) {
  const std::string body =
      "    let a = group // s\n    let b = group % s\n"
      "    for i in 0 .. 100 carry t = 0f32 gives r\n      let v = x[a * 800 + i * 8 + lane]\n      let w = t + v\n      next w\n"
      "    y[b * 8 + lane] = r\n";
  const Work::Phase phase = phase_of(body, {200, 50});
  EXPECT_NEAR(beyond(phase, 0, 0), 4 * 3200, 100) << "four rows, each read once for fifty groups";
  EXPECT_NEAR(beyond(phase, 1, 0), 50 * 32, 100);
}

// Each name is used twice by the next.
TEST(Reuse, LongChainsOfNamesArePricedAtOnce) {
  std::string body = "    let a0 = group\n";
  for (int i = 0; i < 60; ++i) body += fmt::format("    let a{} = a{} + a{}\n", i + 1, i, i);
  const Work::Phase phase = phase_of(body + "    y[a60 * 0 + lane + group * 8] = x[lane]\n", {100, 1});
  EXPECT_NEAR(beyond(phase, 1, 2), 100 * 32, 100);
}

TEST(Reuse, LinesOfOneSetTakeEachOthersPlace) {
  const auto read = [](int pitch) {
    return beyond(
        phase_of(fmt::format("    for j in 0 .. 2\n      for i in 0 .. 100\n        y[lane] = x[i * {} + j * 8 + lane]\n", pitch),
                 {1, 1}),
        0, 0);
  };
  EXPECT_NEAR(read(1016), 100 * 64, 100) << "the second visit finds its half of the line";
  EXPECT_NEAR(read(1024), 200 * 64, 100) << "a hundred lines in one set of eight do not stay";
}

TEST(Reuse, RowsApartGrowIntoOneRun) {
  const auto touched = [](int columns) {
    const Work::Phase phase = phase_of(
        fmt::format("    for i in 0 .. {0}\n      y[group * {1} + lane * {0} + i] = 0f32\n", columns, 8 * columns), {1000, 1});
    return phase.footprint.at(0);
  };
  EXPECT_EQ(touched(17).visit, 8000 * 17 * 4);
  EXPECT_EQ(touched(17).count, 1);
  EXPECT_TRUE(touched(17).ragged);
  EXPECT_LE(touched(17).piece, 17 * 4);
  EXPECT_FALSE(touched(32).ragged);
  EXPECT_EQ(touched(2000).visit, 4) << "the nearest cache does not hold eight such rows";
}

TEST(Work, LoadsWaitForStoresAtTheSamePlaceOfAPage) {
  const auto two_rows = [](std::int64_t pitch) {
    return phase_of(
               "    for i in 0 .. 100\n      let a = x[i * 8 + lane]\n      y[i * 8 + lane] = a * a\n"
               "      let b = x[s + i * 8 + lane]\n      y[s + i * 8 + lane] = b * b\n",
               {1, pitch})
        .cycles;
  };
  EXPECT_GT(two_rows(2044), two_rows(2500) + 300);
  EXPECT_GT(two_rows(4096), two_rows(2500) + 300);
}

TEST(Work, SquaresAreTurnedAroundInRegisters) {
  const auto with = [](int copies) {
    std::string body = "    for i in 0 .. s\n";
    for (int c = 0; c < copies; ++c) body += fmt::format("      let v{0} = x[lane * s + i * {1} + {0}]\n", c, copies);
    for (int c = 0; c < copies; ++c) body += fmt::format("      y[i * {1} + {0}] = first(v{0})\n", c, copies * 8);
    return phase_of(body, {1, 1000}).cycles / copies;
  };
  EXPECT_LT(with(8), 0.9 * with(7));
}

}  // namespace
}  // namespace cosmati::kernel
