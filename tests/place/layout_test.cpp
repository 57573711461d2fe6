// Holders, owners, normal forms and who has what, against the enumeration of every worker.
// SPDX-License-Identifier: Apache-2.0
#include "place/layout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "place/enumerate.h"

namespace cosmati::place {
namespace {

using ir::AxisId;
using test::Coordinates;
using test::each_slot;
using test::each_worker;
using test::held;
using test::held_by;
using test::pick;
using test::Shape;

Shape random_shape(std::mt19937& random) {
  Shape shape;
  shape.axes = 1 + random() % 3;
  shape.counts = hardware(pick(random, 1, 3), pick(random, 1, 2), pick(random, 1, 4), pick(random, 1, 12));
  return shape;
}

TEST(Layout, EveryElementHasItsHoldersAndOneOwner) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const Shape shape = random_shape(random);
    const Placement p = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, p);
    const Result<Ownership> owners = ownership(p, shape.counts, extents);
    ASSERT_TRUE(owners) << print(owners.refused());
    std::map<Coordinates, std::set<std::array<std::int64_t, 4>>> workers;
    std::map<Coordinates, int> owned;
    each_worker(shape.counts, [&](const Counts& worker) {
      each_slot(p, worker, [&](const Counts& slot) {
        const auto at = held(p, slot, extents);
        if (!at) return;
        workers[*at].insert({worker[Res::grid], worker[Res::cluster], worker[Res::subgroup], worker[Res::lane]});
        bool owner = true;
        for (const Partial& free : owners->free) owner = owner && slot[free.res] / free.pos.factor % free.size.factor == 0;
        if (owner) ++owned[*at];
      });
    });
    std::int64_t elements = 1;
    for (const std::int64_t n : extents) elements *= n;
    ASSERT_EQ(static_cast<std::int64_t>(workers.size()), elements);
    for (const auto& [at, holders] : workers) {
      ASSERT_EQ(static_cast<std::int64_t>(holders.size()), owners->holders);
      ASSERT_EQ(owned[at], 1);
    }
  }
}

// A placement that is broken in one way is refused for it, and enumeration shows the harm.
TEST(Layout, WhatIsNotWellFormedIsRefused) {
  const Counts counts = hardware(1, 1, 2, 8);
  const auto reason = [&](const Placement& p, const Extents& extents) {
    const Result<Ownership> owners = ownership(p, counts, extents);
    return owners ? std::string("legal") : std::string(name(owners.refused().reason));
  };
  const AxisMap lanes{AxisId{0}, {digit(Res::lane, 1, 8)}};
  const Partial both = free_segment(Res::subgroup, 1, 2);
  EXPECT_EQ(reason({{lanes}, {both}}, {8}), "legal");
  EXPECT_EQ(reason({{lanes}, {both}}, {9}), "uncovered");
  EXPECT_EQ(reason({{lanes}, {}}, {8}), "gap");
  EXPECT_EQ(reason({{lanes, {AxisId{1}, {digit(Res::lane, 4, 2)}}}, {both}}, {8, 2}), "overlap");
  EXPECT_EQ(reason({{{AxisId{0}, {digit(Res::lane, 1, 4)}}}, {both}}, {4}), "gap");
  EXPECT_EQ(reason({{{AxisId{0}, {digit(Res::lane, 1, 3)}}}, {both}}, {3}), "indivisible");
  EXPECT_EQ(reason({{{AxisId{0}, {digit(Res::lane, 1, 16)}}}, {both}}, {16}), "overlap");
  EXPECT_EQ(reason({{lanes, {AxisId{1}, {digit(Res::reg, 2, 2)}}}, {both}}, {8, 2}), "gap");
  EXPECT_EQ(reason({{lanes, {AxisId{1}, {digit(Res::step, 2, 2)}}}, {both}}, {8, 2}), "legal");
  const Refused said{Reason::uncovered, "axis 0", "8 of 9"};
  EXPECT_EQ(print(said),
            "uncovered: the digits of an axis cover fewer coordinates than it has: axis 0: 8 of 9. Legal: make its slowest digit "
            "larger");
}

TEST(Layout, CompletionListsWhatNoAxisUses) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 2000; ++trial) {
    const Shape shape = random_shape(random);
    const Placement p = test::random_placement(random, shape);
    Placement bare = p;
    bare.rest.clear();
    const Result<Placement> whole = complete(bare, shape.counts);
    ASSERT_TRUE(whole) << print(whole.refused());
    ASSERT_EQ(*whole, p);
  }
  EXPECT_FALSE(complete({{{AxisId{0}, {digit(Res::lane, 1, 5)}}}}, hardware(1, 1, 1, 32)));
}

bool mean_the_same(const Placement& p, const Placement& q, const Counts& counts) {
  const Extents all(p.axes.size(), std::int64_t{1} << 40);
  bool same = true;
  Counts most = counts;
  for (const Res res : {Res::reg, Res::step}) most[res] = std::max(test::size_of(p, res), test::size_of(q, res));
  each_worker(counts, [&](Counts at) {
    for (at[Res::reg] = 0; at[Res::reg] < most[Res::reg]; ++at[Res::reg])
      for (at[Res::step] = 0; at[Res::step] < most[Res::step]; ++at[Res::step])
        same = same && held(p, at, all) == held(q, at, all);
  });
  return same;
}

TEST(Layout, EqualPlacementsAndOnlyTheyHaveEqualNormalForms) {
  std::mt19937 random(5);
  int equal = 0, different = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Shape shape;
    shape.axes = 1;
    shape.counts = hardware(1, 1, 2, 4);
    shape.registers = {2};
    shape.steps = {1};
    const Placement p = test::random_placement(random, shape), q = test::random_placement(random, shape);
    const bool same = mean_the_same(p, q, shape.counts);
    ASSERT_EQ(normal_form(p) == normal_form(q), same);
    ++(same ? equal : different);
    // The same placement in other words: every digit that can be is split.
    Placement words = p;
    for (AxisMap& map : words.axes) {
      std::vector<Digit> digits;
      for (const Digit& d : map.digits) {
        std::int64_t fast = 2;
        while (d.size.factor % fast != 0) ++fast;
        const Result<std::array<Digit, 2>> two = split(d, fast);
        ASSERT_TRUE(two);
        digits.insert(digits.end(), two->begin(), two->end());
      }
      map.digits = digits;
    }
    ASSERT_TRUE(mean_the_same(p, words, shape.counts));
    ASSERT_EQ(normal_form(words), p);
  }
  EXPECT_GT(equal, 50);
  EXPECT_GT(different, 50);
  EXPECT_FALSE(split(digit(Res::lane, 1, 6), 4));
}

// Every worker has all that it needs, and the farthest that one has to go otherwise.
Level enumerated_level(const Placement& from, const Placement& to, const Counts& counts, const Extents& extents) {
  std::map<Coordinates, std::vector<Counts>> holders;
  each_worker(counts, [&](const Counts& worker) {
    for (const Coordinates& at : held_by(from, worker, extents)) holders[at].push_back(worker);
  });
  Level farthest = Level::worker;
  each_worker(counts, [&](const Counts& worker) {
    for (const Coordinates& at : held_by(to, worker, extents)) {
      Level nearest = Level::grid;
      for (const Counts& other : holders[at]) {
        Level level = Level::worker;
        for (const Res res : {Res::lane, Res::subgroup, Res::cluster, Res::grid})
          if (other[res] != worker[res]) level = level_of(res);
        nearest = std::min(nearest, level);
      }
      farthest = std::max(farthest, nearest);
    }
  });
  return farthest;
}

TEST(Layout, TravelIsAsFarAsTheFarthestElement) {
  std::mt19937 random(6);
  std::map<Level, int> seen;
  int refused = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    Shape shape;
    shape.axes = 1 + random() % 2;
    const std::int64_t radix = random() % 4 ? 2 : 3;
    const auto count = [&](int most) {
      return static_cast<std::int64_t>(std::pow(radix, random() % static_cast<unsigned>(most)));
    };
    shape.counts = hardware(count(2), count(2), count(3), count(4));
    shape.registers = {1, radix, radix * radix};
    shape.steps = {1, 1, 1, radix};
    const Placement from = test::random_placement(random, shape);
    const bool tail = random() % 3 == 0;
    const Extents extents = tail ? test::random_extents(random, from) : test::covered(from);
    Placement to = random() % 4 ? test::random_other(random, shape, extents) : from;
    if (random() % 3 == 0 && !to.rest.empty()) to.rest[random() % to.rest.size()].held = Held::first;
    Placement source = from;
    if (random() % 3 == 0 && !source.rest.empty()) source.rest[random() % source.rest.size()].held = Held::first;
    const Result<Travel> t = travel(source, to, extents);
    if (!t) {
      ASSERT_EQ(t.refused().reason, Reason::indivisible) << print(t.refused());
      ++refused;
      continue;
    }
    const Level level = enumerated_level(source, to, shape.counts, extents);
    // A tail may spare a move that the digits ask for; nothing is ever nearer in the digits than it is.
    if (tail || test::covered(to) != extents)
      ASSERT_GE(t->level, level);
    else
      ASSERT_EQ(t->level, level);
    const Result<Travel> stay = stays(source, to, extents);
    ASSERT_EQ(static_cast<bool>(stay), t->level == Level::worker);
    if (!stay) {
      ASSERT_TRUE(stay.refused().reason == Reason::elsewhere || stay.refused().reason == Reason::not_first);
    }
    ++seen[t->level];
  }
  for (const Level level : {Level::worker, Level::lane, Level::subgroup, Level::cluster, Level::grid})
    EXPECT_GT(seen[level], 100);
  EXPECT_LT(refused, 3000);
}

TEST(Layout, PartsDoNotTravel) {
  const ir::ReducerId sum{0};
  Placement part{{{AxisId{0}, {digit(Res::reg, 1, 2)}}}, {free_segment(Res::lane, 1, 8, Held::part, sum)}}, whole = part;
  whole.rest[0] = free_segment(Res::lane, 1, 8);
  EXPECT_TRUE(stays(part, part, {2}));
  EXPECT_EQ(travel(part, whole, {2}).refused().reason, Reason::unsettled);
  EXPECT_EQ(travel(whole, part, {2}).refused().reason, Reason::unsettled);
  // Two halves of the parts are parts of one segment.
  Placement halves = part;
  halves.rest = {free_segment(Res::lane, 1, 2, Held::part, sum), free_segment(Res::lane, 2, 4, Held::part, sum)};
  EXPECT_TRUE(stays(part, halves, {2}));
  EXPECT_TRUE(stays(halves, part, {2}));
}

TEST(Layout, SegmentsAreTheFinestAndUsesAreWhatIsThere) {
  const Placement p{{{AxisId{0}, {digit(Res::lane, 1, 4)}}}, {free_segment(Res::lane, 4, 8, Held::first)}};
  const Placement q{{{AxisId{0}, {digit(Res::lane, 2, 8)}}}, {free_segment(Res::lane, 1, 2), free_segment(Res::lane, 16, 2)}};
  const Result<std::vector<Segment>> all = segments({p, q});
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<Segment>{{Res::lane, 1, 2}, {Res::lane, 2, 2}, {Res::lane, 4, 4}, {Res::lane, 16, 2}}));
  EXPECT_TRUE(use_of(p, (*all)[1])->digit);
  EXPECT_EQ(use_of(p, (*all)[2])->held, Held::first);
  EXPECT_FALSE(use_of(q, (*all)[0])->digit);
  EXPECT_TRUE(use_of(q, (*all)[2])->digit);
  EXPECT_FALSE(use_of(p, {Res::lane, 2, 4}));
  EXPECT_FALSE(segments({p, {{{AxisId{0}, {digit(Res::lane, 1, 6)}}}}}));
}

}  // namespace
}  // namespace cosmati::place
