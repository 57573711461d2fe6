// What a run tells of its progress: never less than before, the end at last, and the way between where most of the work is one
// reduction or one stream of one block.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/fixture.h"

namespace cosmati::oracle {
namespace {

std::vector<double> told(Case& c) {
  std::vector<double> all;
  Options options;
  options.progress = [&](double done) { all.push_back(done); };
  c.run(options);
  return all;
}

void expect_steady(const std::vector<double>& all, std::size_t least) {
  ASSERT_GE(all.size(), least);
  EXPECT_GT(all.front(), 0);
  EXPECT_LT(all.front(), 0.5);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_GT(all.back(), 0.95);
  EXPECT_LE(all.back(), 1.0 + 1e-9);
}

TEST(Progress, OfManyBlocks) {
  Case c("program p(in x: f32[i, n], out y: f32[i]) {\n  parallel i { y[i] = sum(exp(x), n) }\n}\n");
  c.tensor("x", {3000, 100}, normal({3000, 100})).tensor("y", {3000});
  expect_steady(told(c), 10);
}

TEST(Progress, OfInstancesWhoseRangesDiffer) {
  Case c(
      "program p(in x: f32[i, n], out y: f32[i]) {\n  parallel i {\n    axis t in 0 .. i + 1\n    y[i] = sum(x[i, t], t)\n  "
      "}\n}\n");
  c.tensor("x", {50, 50}, normal({50, 50})).tensor("y", {50});
  expect_steady(told(c), 50);
}

TEST(Progress, OfOneLongReduction) {
  Case c("program p(in x: f32[n], out y: f32[]) {\n  parallel { y[] = sum(exp(x), n) }\n}\n");
  constexpr std::int64_t N = 20 << 20;
  c.tensor("x", {N}).tensor("y", {});
  expect_steady(told(c), 10);
}

TEST(Progress, OfStreamsOneAfterAnother) {
  Case c(
      "program p(in x: f32[t, d], out y: f32[t, d], out z: f32[d]) {\n  parallel d {\n    stream t carry h = 0 {\n      y[t, d] "
      "= h "
      "* 0.5 + x\n      next h = h * 0.5 + x\n    }\n    stream tile t carry s = 0 { next s = s + sum(x, t) }\n    z[d] = s\n  "
      "}\n}\n");
  c.tensor("x", {1000, 4}, normal({1000, 4})).tensor("y", {1000, 4}).tensor("z", {4});
  expect_steady(told(c), 50);
}

}  // namespace
}  // namespace cosmati::oracle
