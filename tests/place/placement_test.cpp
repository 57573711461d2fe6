// Placements against enumeration: what is well formed gives every coordinate to exactly one point, and normal forms mean the
// same. SPDX-License-Identifier: Apache-2.0
#include "place/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cosmati::place {
namespace {

using ir::AxisId;

Size of(std::int64_t n) { return {n, {}}; }

// The coordinate that each point of the resources holds, digits fast to slow.
std::int64_t coordinate(const AxisMap& map, const std::map<Res, std::int64_t>& point) {
  std::int64_t at = 0, weight = 1;
  for (const Digit& d : map.digits) {
    at += point.at(d.res) / d.pos.factor % d.size.factor * weight;
    weight *= d.size.factor;
  }
  return at;
}

// Random digits that fill the lanes and the grid without gaps, in any order over two axes.
Placement random_placement(std::mt19937& random) {
  Placement p{{{AxisId{0}, {}}, {AxisId{1}, {}}}};
  for (const Res res : {Res::lane, Res::grid}) {
    std::int64_t pos = 1;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 4);
      p.axes[random() % 2].digits.push_back({res, of(pos), of(size)});
      pos *= size;
    }
  }
  return p;
}

std::vector<std::int64_t> extents(const Placement& p) {
  std::vector<std::int64_t> covered(2, 1);
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits) covered[map.axis.index] *= d.size.factor;
  return covered;
}

TEST(Placements, WellFormedOnesGiveEveryCoordinateToOnePoint) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const Placement p = random_placement(random);
    const auto covered = extents(p);
    ASSERT_EQ(ill_formed(p, covered), "");
    std::map<std::pair<std::int64_t, std::int64_t>, int> holders;
    for (std::int64_t lane = 0; lane < count(p, Res::lane).factor; ++lane)
      for (std::int64_t grid = 0; grid < count(p, Res::grid).factor; ++grid) {
        const std::map<Res, std::int64_t> point{{Res::lane, lane}, {Res::grid, grid}};
        ++holders[{coordinate(p.axes[0], point), coordinate(p.axes[1], point)}];
      }
    ASSERT_EQ(static_cast<std::int64_t>(holders.size()), covered[0] * covered[1]);
    for (const auto& [at, n] : holders) ASSERT_EQ(n, 1);
  }
}

TEST(Placements, NormalFormsMeanTheSame) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 2000; ++trial) {
    const Placement p = random_placement(random), normal = normal_form(p);
    ASSERT_EQ(normal_form(normal), normal);
    for (std::int64_t lane = 0; lane < count(p, Res::lane).factor; ++lane)
      for (std::int64_t grid = 0; grid < count(p, Res::grid).factor; ++grid)
        for (std::size_t a = 0; a < 2; ++a) {
          const std::map<Res, std::int64_t> point{{Res::lane, lane}, {Res::grid, grid}};
          ASSERT_EQ(coordinate(p.axes[a], point), coordinate(*normal.find(p.axes[a].axis), point));
        }
    for (const AxisMap& map : normal.axes)
      for (std::size_t i = 0; i < map.digits.size(); ++i) {
        EXPECT_NE(map.digits[i].size, Size{});
        if (i == 0 || map.digits[i - 1].res != map.digits[i].res) continue;
        EXPECT_NE(map.digits[i - 1].pos * map.digits[i - 1].size, map.digits[i].pos);
      }
  }
}

TEST(Placements, OverlapsAndMissingCoordinatesAreSaid) {
  const Placement both{{{AxisId{0}, {{Res::lane, of(1), of(4)}}}, {AxisId{1}, {{Res::lane, of(2), of(4)}}}}};
  EXPECT_EQ(ill_formed(both, {4, 4}), "two digits overlap on lane");
  const Placement few{{{AxisId{0}, {{Res::lane, of(1), of(4)}, {Res::grid, of(1), of(2)}}}}};
  EXPECT_EQ(ill_formed(few, {9}), "the digits of axis 0 cover 8 of 9 coordinates");
  EXPECT_EQ(ill_formed(few, {8}), "");
  const Placement rounded{{{AxisId{0}, {{Res::lane, of(1), of(4)}, {Res::grid, of(1), Size{1, {{AxisId{0}, 4}}}}}}}};
  for (std::int64_t extent = 1; extent < 20; ++extent) EXPECT_EQ(ill_formed(rounded, {extent}), "");
}

}  // namespace
}  // namespace cosmati::place
