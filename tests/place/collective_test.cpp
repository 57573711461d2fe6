// Reductions and settles carried out on texts: merging joins them, so that what each worker ends with shows which elements were
// merged, how often and in which order.
// SPDX-License-Identifier: Apache-2.0
#include "place/collective.h"

#include <gtest/gtest.h>

#include "place/enumerate.h"
#include "place/reducers.h"

namespace cosmati::place {
namespace {

using ir::AxisId;
using test::Coordinates;

using Worker = std::array<std::int64_t, 4>;
Worker key(const Counts& at) { return {at[Res::grid], at[Res::cluster], at[Res::subgroup], at[Res::lane]}; }

// What a worker knows of each result: the reduced elements that went into it, in order.
using State = std::map<Worker, std::map<Coordinates, std::vector<std::int64_t>>>;

// Folds axis 1 in every worker, registers and steps in the order of coordinates.
State folded(const Placement& p, const Counts& counts, const Extents& extents) {
  State state;
  test::each_worker(counts, [&](const Counts& worker) {
    for (const Coordinates& at : test::held_by(p, worker, extents)) state[key(worker)][{at[0], 0}].push_back(at[1]);
  });
  return state;
}
void append(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::int64_t digit_of(std::int64_t index, const Segment& s) { return index / s.pos % s.size; }

// The lanes' exchanges by masks: `ordered` says whose part comes first.
void butterfly(State& state, const Counts& counts, const std::vector<std::int64_t>& masks, bool ordered) {
  for (const std::int64_t mask : masks) {
    const State before = state;
    test::each_worker(counts, [&](const Counts& worker) {
      Counts other = worker;
      other[Res::lane] ^= mask;
      ASSERT_LT(other[Res::lane], counts[Res::lane]);
      const auto theirs = before.find(key(other));
      if (theirs == before.end()) return;
      for (const auto& [at, list] : theirs->second) {
        std::vector<std::int64_t>& own = state[key(worker)][at];
        if (ordered && (worker[Res::lane] & mask)) {
          std::vector<std::int64_t> both = list;
          append(both, own);
          own = both;
        } else {
          append(own, list);
        }
      }
    });
  }
}

// Gathers the parts of the workers that differ from `worker` in the segments only, in the order of their index.
std::map<Coordinates, std::vector<std::int64_t>> in_order(const State& state, const Counts& worker,
                                                          const std::vector<Segment>& segments) {
  std::vector<Counts> others{worker};
  for (const Segment& s : segments) others[0][s.res] -= digit_of(worker[s.res], s) * s.pos;
  for (const Segment& s : segments) {
    std::vector<Counts> more;
    for (std::int64_t k = 0; k < s.size; ++k)
      for (Counts at : others) {
        at[s.res] += k * s.pos;
        more.push_back(at);
      }
    others = more;
  }
  std::map<Coordinates, std::vector<std::int64_t>> all;
  for (const Counts& other : others)
    if (const auto have = state.find(key(other)); have != state.end())
      for (const auto& [at, list] : have->second) append(all[at], list);
  return all;
}

void carry_out(State& state, const Exchange& e, const Counts& counts) {
  if (e.way == Way::butterfly) return butterfly(state, counts, e.masks, e.ordered);
  const State before = state;
  state.clear();
  if (e.way != Way::partials) {
    test::each_worker(counts, [&](const Counts& worker) { state[key(worker)] = in_order(before, worker, e.segments); });
    return;
  }
  // Lane k of the readers merges parts k * serial and on; the others of its mask bits are the other readers.
  test::each_worker(counts, [&](const Counts& worker) {
    std::int64_t reader = 0, parts = 1;
    for (std::size_t k = 0; k < e.masks.size(); ++k) reader |= (worker[Res::lane] & e.masks[k] ? std::int64_t{1} : 0) << k;
    for (const Segment& s : e.segments) parts *= s.size;
    std::map<Coordinates, std::vector<std::int64_t>> own;
    for (std::int64_t part = reader * e.serial; part < std::min(parts, (reader + 1) * e.serial); ++part) {
      Counts at = worker;
      std::int64_t rest = part;
      for (const Segment& s : e.segments) {
        at[s.res] += (rest % s.size - digit_of(at[s.res], s)) * s.pos;
        rest /= s.size;
      }
      if (const auto have = before.find(key(at)); have != before.end())
        for (const auto& [where, list] : have->second) append(own[where], list);
    }
    state[key(worker)] = own;
  });
  butterfly(state, counts, e.masks, e.ordered);
}

test::Shape random_shape(std::mt19937& random) {
  test::Shape shape;
  const bool powers = random() % 2;
  shape.counts = powers ? hardware(2, 2, std::int64_t{1} << random() % 4, std::int64_t{1} << random() % 5)
                        : hardware(test::pick(random, 1, 3), 1, test::pick(random, 1, 6), test::pick(random, 1, 12));
  return shape;
}

TEST(Reduce, FoldsWhatAWorkerHoldsAndLeavesPartsOfTheRest) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 2000; ++trial) {
    const test::Shape shape = random_shape(random);
    const Placement p = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, p);
    const Result<Reduced> r = reduce(p, {AxisId{1}}, test::sum);
    ASSERT_TRUE(r);
    ASSERT_TRUE(ownership(r->result, shape.counts, extents)) << print(ownership(r->result, shape.counts, extents).refused());
    ASSERT_EQ(r->fold * test::size_of(r->result, Res::reg), test::size_of(p, Res::reg));
    ASSERT_EQ(r->steps * test::size_of(r->result, Res::step), test::size_of(p, Res::step));
    // Every holder of a result has some part of it, and merging the parts of one holder a segment gives every element once.
    const State state = folded(p, shape.counts, extents);
    std::vector<Segment> parts;
    for (const Partial& free : r->result.rest)
      if (free.held == Held::part) parts.push_back({free.res, free.pos.factor, free.size.factor});
    std::vector<std::int64_t> all(static_cast<std::size_t>(extents[1]));
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::int64_t>(k);
    test::each_worker(shape.counts, [&](const Counts& worker) {
      auto merged = in_order(state, worker, parts);
      for (const Coordinates& at : test::held_by(r->result, worker, {extents[0], 1})) {
        auto& list = merged[{at[0], 0}];
        std::sort(list.begin(), list.end());
        ASSERT_EQ(list, all);
      }
    });
  }
}

TEST(Reduce, RefusesWhatItCannotMerge) {
  const Placement other{{{AxisId{0}, {digit(Res::reg, 1, 2)}}}, {free_segment(Res::lane, 1, 8, Held::part, test::max)}};
  EXPECT_EQ(reduce(other, {AxisId{0}}, test::sum).refused().reason, Reason::other_reducer);
  EXPECT_TRUE(reduce(other, {AxisId{0}}, test::max));
  EXPECT_EQ(reduce(other, {AxisId{1}}, test::max).refused().reason, Reason::no_such_axis);
}

TEST(Settle, GivesEveryHolderEveryElementOnceAndTheSameOrder) {
  const ir::Program program = test::reducers();
  std::mt19937 random(10);
  std::map<Way, int> ways;
  for (int trial = 0; trial < 2000; ++trial) {
    const test::Shape shape = random_shape(random);
    const Placement p = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, p);
    const ir::ReducerId reducer = random() % 2 ? test::sum : test::words;
    const Held to = random() % 2 ? Held::same : Held::first;
    const Reduced r = *reduce(p, {AxisId{1}}, reducer);
    const Result<Settled> s = settle(r.result, program, reducer, to);
    if (!s) {
      ASSERT_EQ(s.refused().reason, Reason::not_a_part);
      continue;
    }
    State state = folded(p, shape.counts, extents);
    for (const Exchange& e : s->exchanges) {
      carry_out(state, e, shape.counts);
      ++ways[e.way];
      ASSERT_EQ(e.fences, e.way == Way::partials ? 1 : 0);
    }
    std::map<std::int64_t, std::vector<std::int64_t>> agreed;
    test::each_worker(shape.counts, [&](const Counts& worker) {
      for (const Coordinates& at : test::held_by(s->result, worker, {extents[0], 1})) {
        const std::vector<std::int64_t>& list = state[key(worker)][{at[0], 0}];
        std::vector<std::int64_t> sorted = list;
        std::sort(sorted.begin(), sorted.end());
        ASSERT_EQ(static_cast<std::int64_t>(list.size()), extents[1]);
        for (std::size_t k = 0; k < sorted.size(); ++k) ASSERT_EQ(sorted[k], static_cast<std::int64_t>(k));
        // In one order everywhere where the merge is not the same both ways round: then the bits are the same, too.
        if (reducer == test::words) {
          ASSERT_EQ(agreed.try_emplace(at[0], list).first->second, list);
        }
      }
    });
    for (const Partial& free : s->result.rest) ASSERT_NE(free.held, Held::part);
    ASSERT_TRUE(ownership(s->result, shape.counts, extents));
  }
  for (const Way way : {Way::butterfly, Way::gather, Way::partials, Way::messages, Way::ticket, Way::phase})
    EXPECT_GT(ways[way], 50);
}

TEST(Settle, OfPackedCooperatingRowsIsOneFence) {
  // P rows of S subgroups each: partial q * S + s, one word each.
  const ir::Program program = test::reducers();
  for (const std::int64_t subgroups : {1, 2, 3, 8, 13})
    for (const std::int64_t rows : {1, 2, 3}) {
      const Placement p =
          *complete({{{AxisId{0}, {digit(Res::subgroup, subgroups, rows), digit(Res::grid, 1, 5)}},
                      {AxisId{1}, {digit(Res::reg, 1, 4), digit(Res::lane, 1, 32), digit(Res::subgroup, 1, subgroups)}}}},
                    hardware(5, 1, subgroups * rows, 32));
      const Settled s = *settle(reduce(p, {AxisId{1}}, test::pairs)->result, program, test::pairs, Held::same);
      std::int64_t fences = 0, slots = 0;
      for (const Exchange& e : s.exchanges) fences += e.fences, slots += e.slots;
      EXPECT_EQ(fences, subgroups > 1 ? 1 : 0);
      EXPECT_EQ(slots, subgroups > 1 ? subgroups * rows : 0);
      EXPECT_EQ(s.exchanges[0].masks, (std::vector<std::int64_t>{1, 2, 4, 8, 16}));
      EXPECT_EQ(s.exchanges[0].values, 2);
      if (subgroups > 1) {
        EXPECT_EQ(s.exchanges[1].serial, 1);
      }
    }
}

TEST(Settle, StopsAtALevelAndSharesExchanges) {
  const ir::Program program = test::reducers();
  const Placement p =
      *complete({{{AxisId{0}, {digit(Res::grid, 1, 4)}}, {AxisId{1}, {digit(Res::lane, 1, 32), digit(Res::subgroup, 1, 4)}}}},
                hardware(4, 1, 4, 32));
  const Reduced sums = *reduce(p, {AxisId{1}}, test::sum), most = *reduce(p, {AxisId{1}}, test::max);
  const Settled near = *settle(sums.result, program, test::sum, Held::same, Level::lane);
  EXPECT_EQ(near.exchanges.size(), 1U);
  EXPECT_EQ(
      std::count_if(near.result.rest.begin(), near.result.rest.end(), [](const Partial& f) { return f.held == Held::part; }), 1);
  const Settled rest = *settle(near.result, program, test::sum, Held::same);
  ASSERT_EQ(rest.exchanges.size(), 1U);
  EXPECT_EQ(rest.exchanges[0].level, Res::subgroup);

  const std::vector<Exchange> both =
      together({*settle(sums.result, program, test::sum, Held::same), *settle(most.result, program, test::max, Held::same)});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].values, 2);
  EXPECT_EQ(both[1].fences, 1);
}

// A reduce-scatter carried out: registers of a lane as a map from their number to what they know.
TEST(Scatter, LeavesEachLaneItsRegistersAndCountsItsShuffles) {
  const ir::Program program = test::reducers();
  for (const std::int64_t lanes : {2, 4, 8, 16})
    for (const std::int64_t registers : {1, 2, 4, 8, 16, 32}) {
      if (registers == 1) continue;
      const Placement p = *complete({{{AxisId{0}, {digit(Res::reg, 1, registers)}}, {AxisId{1}, {digit(Res::lane, 1, lanes)}}}},
                                    hardware(1, 1, 1, 2 * lanes));
      const Settled s = *scatter(reduce(p, {AxisId{1}}, test::sum)->result, program, test::sum, AxisId{0});
      const Exchange& e = s.exchanges.at(0);
      std::vector<std::map<std::int64_t, std::multiset<std::int64_t>>> lane(static_cast<std::size_t>(2 * lanes));
      for (std::size_t l = 0; l < lane.size(); ++l)
        for (std::int64_t r = 0; r < registers; ++r) lane[l][r] = {static_cast<std::int64_t>(l) % lanes};
      std::int64_t shuffles = 0, left = registers;
      for (const std::int64_t mask : e.masks) {
        const auto before = lane;
        const bool halve = left > 1;
        if (halve) left /= 2;
        shuffles += left;
        for (std::size_t l = 0; l < lane.size(); ++l) {
          const auto& other = before[l ^ static_cast<std::size_t>(mask)];
          for (auto it = lane[l].begin(); it != lane[l].end();) {
            const bool keep = !halve || ((it->first / left) & 1) == ((static_cast<std::int64_t>(l) & mask) != 0);
            if (!keep) {
              it = lane[l].erase(it);
              continue;
            }
            it->second.insert(other.at(it->first).begin(), other.at(it->first).end());
            ++it;
          }
        }
      }
      EXPECT_EQ(e.shuffles, shuffles);
      for (std::size_t l = 0; l < lane.size(); ++l) {
        const auto has = test::held_by(s.result,
                                       [&] {
                                         Counts at;
                                         at[Res::lane] = static_cast<std::int64_t>(l);
                                         return at;
                                       }(),
                                       {registers, 1});
        ASSERT_EQ(has.size(), lane[l].size());
        for (const auto& [r, parts] : lane[l]) {
          EXPECT_TRUE(has.count({r, 0}));
          EXPECT_EQ(static_cast<std::int64_t>(parts.size()), lanes);
        }
      }
    }
  // Scores of 4 heads on 16 lanes: 5 shuffles, where settling each takes 16.
  const Placement scores{{{AxisId{0}, {digit(Res::reg, 1, 4)}}},
                         {free_segment(Res::lane, 1, 16, Held::part, test::sum), free_segment(Res::lane, 16, 2)}};
  EXPECT_EQ(scatter(scores, program, test::sum, AxisId{0})->exchanges[0].shuffles, 5);
  EXPECT_EQ(settle(scores, program, test::sum, Held::same)->exchanges[0].shuffles, 16);
}

}  // namespace
}  // namespace cosmati::place
