// The digit lists of published layouts against closed formulas of the publications, for every element; and what follows from the
// lists: which results feed which operands without a move.
// SPDX-License-Identifier: Apache-2.0
#include "place/layouts.h"

#include <gtest/gtest.h>

#include <functional>

#include "place/enumerate.h"
#include "place/home.h"
#include "place/join.h"
#include "place/move.h"
#include "place/reducers.h"

namespace cosmati::place {
namespace {

using test::Coordinates;
using test::Layout;

// Where an element is: lane, register of it, subgroup, group; coordinates in the order of the line's extents.
struct Holder {
  std::int64_t lane, reg, subgroup, grid;
};
using Formula = std::function<Coordinates(const Holder&)>;
using Bytes = std::function<std::int64_t(const Coordinates&)>;

// In the terms of the instruction set's pages: groupID = lane / 4, threadID_in_group = lane % 4, element i of a fragment.
const std::map<std::string, Formula> formulas{
    {"m16n8k16.a",
     [](const Holder& h) -> Coordinates {
       const bool low_row = h.reg < 2 || (h.reg >= 4 && h.reg < 6);
       return {low_row ? h.lane / 4 : h.lane / 4 + 8, h.lane % 4 * 2 + (h.reg & 1) + (h.reg >= 4 ? 8 : 0)};
     }},
    {"m16n8k16.b",
     [](const Holder& h) -> Coordinates { return {h.lane % 4 * 2 + (h.reg & 1) + (h.reg >= 2 ? 8 : 0), h.lane / 4}; }},
    {"m16n8.c",
     [](const Holder& h) -> Coordinates { return {h.reg < 2 ? h.lane / 4 : h.lane / 4 + 8, h.lane % 4 * 2 + (h.reg & 1)}; }},
    {"m16n8k8.tf32.a",
     [](const Holder& h) -> Coordinates {
       return {h.reg == 0 || h.reg == 2 ? h.lane / 4 : h.lane / 4 + 8, h.reg < 2 ? h.lane % 4 : h.lane % 4 + 4};
     }},
    {"m16n8k8.tf32.b", [](const Holder& h) -> Coordinates { return {h.reg == 0 ? h.lane % 4 : h.lane % 4 + 4, h.lane / 4}; }},
    {"m16n8k32.8bit.a",
     [](const Holder& h) -> Coordinates {
       const bool low_row = h.reg < 4 || (h.reg >= 8 && h.reg < 12);
       return {low_row ? h.lane / 4 : h.lane / 4 + 8, h.lane % 4 * 4 + (h.reg & 3) + (h.reg >= 8 ? 16 : 0)};
     }},
    {"m8n8k4.f64.a", [](const Holder& h) -> Coordinates { return {h.lane >> 2, h.lane % 4}; }},
    {"m8n8k4.f64.c", [](const Holder& h) -> Coordinates { return {h.lane >> 2, h.lane % 4 * 2 + (h.reg & 1)}; }},
    {"wgmma.n8.d",
     [](const Holder& h) -> Coordinates {
       return {h.subgroup * 16 + h.lane / 4 + (h.reg / 2 % 2 ? 8 : 0), h.reg / 4 * 8 + h.lane % 4 * 2 + h.reg % 2};
     }},
    {"wgmma.n24.d",
     [](const Holder& h) -> Coordinates {
       return {h.subgroup * 16 + h.lane / 4 + (h.reg / 2 % 2 ? 8 : 0), h.reg / 4 * 8 + h.lane % 4 * 2 + h.reg % 2};
     }},
    {"wgmma.n256.d",
     [](const Holder& h) -> Coordinates {
       return {h.subgroup * 16 + h.lane / 4 + (h.reg / 2 % 2 ? 8 : 0), h.reg / 4 * 8 + h.lane % 4 * 2 + h.reg % 2};
     }},
    {"wgmma.k16.a",
     [](const Holder& h) -> Coordinates {
       const bool low_row = h.reg < 2 || (h.reg >= 4 && h.reg < 6);
       return {h.subgroup * 16 + h.lane / 4 + (low_row ? 0 : 8), h.lane % 4 * 2 + (h.reg & 1) + (h.reg >= 4 ? 8 : 0)};
     }},
    {"wgmma.tf32.a",
     [](const Holder& h) -> Coordinates {
       return {h.subgroup * 16 + h.lane / 4 + (h.reg % 2 ? 8 : 0), h.lane % 4 + (h.reg >= 2 ? 4 : 0)};
     }},
    {"ldmatrix.x4", [](const Holder& h) -> Coordinates { return {h.reg / 2, h.lane / 4, h.lane % 4 * 2 + h.reg % 2}; }},
    {"ldmatrix.x4.trans", [](const Holder& h) -> Coordinates { return {h.reg / 2, h.lane % 4 * 2 + h.reg % 2, h.lane / 4}; }},
    {"simdgroup.8x8",
     [](const Holder& h) -> Coordinates {
       const std::int64_t quad = h.lane / 4;
       return {(quad & 4) + h.lane / 2 % 4, (quad & 2) * 2 + h.lane % 2 * 2 + h.reg};
     }},
    {"avx512.14x32.c", [](const Holder& h) -> Coordinates { return {h.reg / 2, h.reg % 2 * 16 + h.lane}; }},
    {"avx512.14x32.a", [](const Holder& h) -> Coordinates { return {h.reg}; }},
    // Element v of chunk c of worker w is (W c + w) V + v.
    {"stripe",
     [](const Holder& h) -> Coordinates {
       const std::int64_t w = h.subgroup * 32 + h.lane;
       return {(96 * (h.reg / 4) + w) * 4 + h.reg % 4};
     }},
    // program in group = t / W, worker = t % W; program = group * P + program in group.
    {"packed_rows",
     [](const Holder& h) -> Coordinates {
       const std::int64_t t = h.subgroup * 32 + h.lane;
       // P is slow in t and the group slow in the program.
       return {t / 64 + 3 * h.grid, (64 * (h.reg / 2) + t % 64) * 2 + h.reg % 2};
     }},
    {"rows_of_8_lanes",
     [](const Holder& h) -> Coordinates { return {h.grid * 16 + h.subgroup * 4 + h.lane / 8, h.lane % 8 * 4 + h.reg}; }},
};
// The byte of an element as a descriptor's page gives it, swizzle included.
const std::map<std::string, std::pair<Swizzle, Bytes>> bytes{
    {"wgmma.shared.k_major",
     {{3, 4, 3},
      [](const Coordinates& at) {
        const std::int64_t row = at[0], panel = at[1] / 64, chunk = at[1] % 64 / 8;
        return panel * 256 * 128 + row * 128 + ((chunk ^ (row % 8)) * 16) + at[1] % 8 * 2;
      }}},
    {"wgmma.shared.mn_major",
     {{3, 4, 3},
      [](const Coordinates& at) {
        const std::int64_t k = at[1], panel = at[0] / 64, chunk = at[0] % 64 / 8;
        return panel * 2048 + k * 128 + ((chunk ^ (k % 8)) * 16) + at[0] % 8 * 2;
      }}},
    {"amx.a", {{}, [](const Coordinates& at) { return at[0] * 64 + at[1] * 2; }}},
    {"amx.b", {{}, [](const Coordinates& at) { return at[0] / 2 * 64 + at[1] * 4 + at[0] % 2 * 2; }}},
    {"amx.c", {{}, [](const Coordinates& at) { return at[0] * 64 + at[1] * 4; }}},
    {"cluster_row", {{}, [](const Coordinates& at) { return at[0] % 1024 * 4; }}},
};

// The hardware that a list speaks of: every position up to its last.
Counts hardware_of(const Placement& p) {
  const auto count = [&](Res res) { return test::end_of(p, res); };
  return hardware(count(Res::grid), count(Res::cluster), count(Res::subgroup), count(Res::lane));
}

TEST(Layouts, EveryElementIsWhereItsFormulaSays) {
  const auto all = test::layouts();
  EXPECT_EQ(all.size(), formulas.size() + bytes.size());
  for (const auto& [name, formula] : formulas) {
    ASSERT_TRUE(all.count(name)) << name;
    const Layout& layout = all.at(name);
    const Counts counts = hardware_of(layout.placement);
    const Result<Ownership> owners = ownership(layout.placement, counts, layout.extents);
    ASSERT_TRUE(owners) << name << ": " << print(owners.refused());
    EXPECT_EQ(owners->holders, 1) << name;
    std::set<Coordinates> seen;
    test::each_worker(counts, [&](const Counts& worker) {
      test::each_slot(layout.placement, worker, [&](const Counts& slot) {
        const auto at = test::held(layout.placement, slot, layout.extents);
        ASSERT_TRUE(at) << name;
        ASSERT_EQ(*at, formula({slot[Res::lane], slot[Res::reg], slot[Res::subgroup], slot[Res::grid]})) << name;
        seen.insert(*at);
      });
    });
    std::int64_t elements = 1;
    for (const std::int64_t n : layout.extents) elements *= n;
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), elements) << name;
  }
}

TEST(Layouts, EveryByteIsWhereItsFormulaSays) {
  const auto all = test::layouts();
  for (const auto& [name, published] : bytes) {
    ASSERT_TRUE(all.count(name)) << name;
    const Layout& layout = all.at(name);
    const Home home{layout.placement, published.first, 2};
    EXPECT_TRUE(holds_apart(home)) << name;
    Coordinates at(layout.extents.size());
    const std::function<void(std::size_t)> visit = [&](std::size_t axis) {
      if (axis == at.size()) {
        ASSERT_EQ(home.swizzle(byte_of(home, at)), published.second(at)) << name;
        return;
      }
      for (at[axis] = 0; at[axis] < layout.extents[axis]; ++at[axis]) visit(axis + 1);
    };
    visit(0);
  }
}

// ---- what falls out --------------------------------------------------------------------------------------------------------

constexpr ir::AxisId row{0}, column{1};

// A placement of a list with its axes renamed.
Placement renamed(const Layout& layout, const std::map<std::string, ir::AxisId>& names) {
  Placement p;
  for (const auto& [name, axis] : names) p.axes.push_back({axis, layout.placement.find(layout.axis(name))->digits});
  return normal_form(p);
}

TEST(Layouts, TwoResultsAreTheNextOperand) {
  const auto all = test::layouts();
  const Counts warp = hardware(1, 1, 1, 32), four = hardware(1, 1, 4, 32);
  // 16-bit: n of two results is k of A.
  Placement c = renamed(all.at("m16n8.c"), {{"m", row}, {"n", column}});
  c.axes[1].digits.push_back(digit(Res::reg, 4, 2));
  const Placement a = renamed(all.at("m16n8k16.a"), {{"m", row}, {"k", column}});
  EXPECT_EQ(c, a);
  EXPECT_EQ(move(c, a, warp, {16, 16}, {})->kind, MoveKind::none);
  // The same for four subgroups.
  Placement d = renamed(all.at("wgmma.n8.d"), {{"m", row}, {"n", column}});
  d.axes[1].digits.push_back(digit(Res::reg, 4, 2));
  EXPECT_EQ(move(d, renamed(all.at("wgmma.k16.a"), {{"m", row}, {"k", column}}), four, {64, 16}, {})->kind, MoveKind::none);
  // tf32: k as it stands needs shuffles; in the other order of its digits it is a rename.
  const Placement one = renamed(all.at("m16n8.c"), {{"m", row}, {"n", column}});
  const Placement tf32 = renamed(all.at("m16n8k8.tf32.a"), {{"m", row}, {"k", column}});
  EXPECT_EQ(move(one, tf32, warp, {16, 8}, {})->kind, MoveKind::shuffle);
  Placement other = tf32;
  std::swap(other.axes[1].digits[0], other.axes[1].digits[1]);
  EXPECT_EQ(other.axes[1].digits, test::read_digits("(R,2,2)(L,1,4)"));
  EXPECT_EQ(move(one, other, warp, {16, 8}, {})->kind, MoveKind::rename);
}

TEST(Layouts, ARowScaleIsWhereItsRowIs) {
  const auto all = test::layouts();
  const ir::Program program = test::reducers();
  for (const char* name : {"m16n8.c", "wgmma.n8.d", "wgmma.n256.d"}) {
    const Layout& layout = all.at(name);
    const Placement acc = renamed(layout, {{"m", row}, {"n", column}});
    Placement scale;
    scale.axes = {acc.axes[0]};
    const Result<Placement> whole = complete(scale, hardware_of(acc));
    ASSERT_TRUE(whole);
    const Result<Joined> j = join(program, ops::Op::mul, DType::f32_, {acc, *whole}, layout.extents);
    ASSERT_TRUE(j) << print(j.refused());
    EXPECT_EQ(j->result, acc);
    EXPECT_FALSE(j->renamed[1]);
  }
}

TEST(Layouts, TheTransposedLoadOfMatricesIsTheOtherOperand) {
  // What ldmatrix.x4 gives of a 16 x 16 tile is A; of a tile by rows of k, transposed, it is two B side by side.
  const auto all = test::layouts();
  const Layout &plain = all.at("ldmatrix.x4"), &trans = all.at("ldmatrix.x4.trans");
  const auto tile = [](const Layout& layout, const char* fast, const char* slow) {
    // The matrices' number counts along `fast` first: its two bits are the digits after the eight.
    const std::vector<Digit> q = layout.placement.find(layout.axis("q"))->digits;
    const auto halves = *split(q[0], 2);
    Placement p;
    p.axes = {{row, layout.placement.find(layout.axis(fast))->digits},
              {column, layout.placement.find(layout.axis(slow))->digits}};
    p.axes[0].digits.push_back(halves[0]);
    p.axes[1].digits.push_back(halves[1]);
    return normal_form(p);
  };
  EXPECT_EQ(tile(plain, "r", "c"), renamed(all.at("m16n8k16.a"), {{"m", row}, {"k", column}}));
  Placement two = renamed(all.at("m16n8k16.b"), {{"k", row}, {"n", column}});
  two.axes[1].digits.push_back(digit(Res::reg, 4, 2));
  EXPECT_EQ(tile(trans, "r", "c"), normal_form(two));
}

}  // namespace
}  // namespace cosmati::place
