// What one lane moves at once: neighbours at a multiple of their size, with nothing between them that could change what they are.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/packs.h"

#include <gmock/gmock.h>

namespace cosmati::kernel {
namespace {

using testing::ElementsAre;

// The sizes of the packs of a kernel that has these lines in its phase of eight lanes.
std::vector<std::size_t> sizes(const std::string& body,
                               const std::string& requires_ = "unaligned_x == 0\n  requires stride_x_0 % 4 == 0",
                               const std::string& x = "argument(0)") {
  const Kernel k = parse(
      "kernel k\n  param unaligned_x: i64 = unaligned(0)\n  param unaligned_y: i64 = unaligned(1)\n"
      "  param stride_x_0: i64 = stride(0, 0)\n"
      "  buffer x: f32 read = " +
      x + "\n  buffer y: f32 write = argument(1)\n  requires " + requires_ +
      "\n  requires unaligned_y == 0\n  phase p groups 3 lanes 8 apart\n" + body);
  verify(k, "test");
  std::vector<std::size_t> all;
  for (const Pack& pack : Packs(k)(k.phases[0].body)) all.push_back(pack.members.size());
  return all;
}

constexpr const char* at = "    let at = group * stride_x_0 + lane * 4\n";
std::string load(int i) { return "    let v" + std::to_string(i) + " = x[at + " + std::to_string(i) + "]\n"; }
std::string store(int i, const std::string& guard = "") {
  return "    y[lane * 4 + " + std::to_string(i) + "] = 1f32" + guard + "\n";
}

TEST(Packs, AreNeighboursAtAMultipleOfTheirSize) {
  const std::string four = load(0) + load(1) + load(2) + load(3);
  EXPECT_THAT(sizes(at + four), ElementsAre(4));
  EXPECT_THAT(sizes(at + four, "stride_x_0 % 4 == 0"), ElementsAre()) << "the array begins anywhere";
  EXPECT_THAT(sizes(at + four, "unaligned_x == 0"), ElementsAre()) << "rows begin anywhere";
  EXPECT_THAT(sizes(at + four, "unaligned_x == 0\n  requires stride_x_0 % 2 == 0"), ElementsAre(2, 2));
  EXPECT_THAT(sizes(at + load(1) + load(2) + load(3)), ElementsAre(2)) << "the first is alone";
  EXPECT_THAT(sizes(at + four + load(4) + load(5)), ElementsAre(4, 2));
  EXPECT_THAT(sizes(at + load(1) + load(0)), ElementsAre()) << "the first one comes first";
}

TEST(Packs, MayBeginWhereNoSumIs) {
  const std::string part = "    let at = group // 3 * stride_x_0 + group % 3 * (4 * (stride_x_0 // 12)) + lane * 4\n";
  EXPECT_THAT(sizes(part + load(0) + load(1) + load(2) + load(3)), ElementsAre(4));
}

TEST(Packs, EndWhereSomethingIsStored) {
  EXPECT_THAT(sizes(at + load(0) + store(0) + load(1)), ElementsAre());
  EXPECT_THAT(sizes(at + store(0) + store(1) + store(2) + store(3)), ElementsAre(4));
  EXPECT_THAT(sizes(at + store(0) + load(0) + store(1)), ElementsAre());
}

TEST(Packs, HaveOneGuard) {
  const std::string guards = "    let g = lane < 3\n    let h = lane < 2\n";
  EXPECT_THAT(sizes(guards + store(0, " if g") + store(1, " if g")), ElementsAre(2));
  EXPECT_THAT(sizes(guards + store(0, " if g") + store(1, " if h")), ElementsAre());
  EXPECT_THAT(sizes(guards + store(0, " if g") + store(1)), ElementsAre());
}

}  // namespace
}  // namespace cosmati::kernel
