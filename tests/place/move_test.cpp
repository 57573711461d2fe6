// Moves carried out: registers of every lane are filled as one placement says, the plan is followed, and they must hold what the
// other says. Round trips go through an array of bytes, whose banks are counted here again.
// SPDX-License-Identifier: Apache-2.0
#include "place/move.h"

#include <gtest/gtest.h>

#include <cmath>

#include "place/enumerate.h"

namespace cosmati::place {
namespace {

using ir::AxisId;
using test::Coordinates;

std::int64_t digit_of(std::int64_t index, const Segment& s) { return index / s.pos % s.size; }

// The registers of one worker; a worker that has nothing has none.
std::map<std::int64_t, Coordinates> registers_of(const Placement& p, const Counts& worker, const Extents& extents) {
  std::map<std::int64_t, Coordinates> file;
  if (!test::is_first(p, worker)) return file;
  test::each_slot(p, worker, [&](const Counts& slot) {
    if (const auto at = test::held(p, slot, extents)) file[slot[Res::reg]] = *at;
  });
  return file;
}

void expect_rounds_move(const Move& m, const Placement& from, const Placement& to, const Counts& counts, const Extents& extents) {
  Counts group = counts;
  const std::int64_t lanes = counts[Res::lane];
  group[Res::lane] = 1;
  test::each_worker(group, [&](const Counts& subgroup) {
    const auto lane = [&](std::int64_t l) {
      Counts worker = subgroup;
      worker[Res::lane] = l;
      return worker;
    };
    std::vector<std::map<std::int64_t, Coordinates>> before, after(static_cast<std::size_t>(lanes));
    for (std::int64_t l = 0; l < lanes; ++l) before.push_back(registers_of(from, lane(l), extents));
    std::int64_t selected = 0, lanes_on = 0;
    for (const Select& s : m.selects) selected += digit_of(subgroup[s.segment.res], s.segment) * s.stride;
    for (const Select& s : m.lane_selects) lanes_on += digit_of(subgroup[s.segment.res], s.segment) * s.stride;
    for (const Round& round : m.rounds)
      for (std::size_t l = 0; l < after.size(); ++l) {
        if (round.into[l] < 0) continue;
        const auto source = static_cast<std::size_t>(round.from[l] + lanes_on);
        ASSERT_LT(source, before.size());
        if (round.mask) {
          ASSERT_EQ(source ^ l, static_cast<std::size_t>(*round.mask));
        }
        if (const auto value = before[source].find(round.publish[source] + selected); value != before[source].end())
          after[l][round.into[l]] = value->second;
      }
    for (std::int64_t l = 0; l < lanes; ++l)
      for (const auto& [reg, at] : registers_of(to, lane(l), extents)) {
        ASSERT_TRUE(after[static_cast<std::size_t>(l)].count(reg));
        ASSERT_EQ(after[static_cast<std::size_t>(l)][reg], at);
      }
  });
}

TEST(Move, ShufflesAndRenamesPutEveryElementWhereItIsNeeded) {
  std::mt19937 random(11);
  std::map<MoveKind, int> kinds;
  for (int trial = 0; trial < 12000; ++trial) {
    test::Shape shape;
    shape.axes = 1 + random() % 3;
    const std::int64_t radix = random() % 3 ? 2 : 3;
    const auto power = [&](unsigned most) { return static_cast<std::int64_t>(std::pow(radix, random() % most)); };
    shape.counts = hardware(1, 1, random() % 3 ? 1 : radix, power(5));
    shape.registers = {1, radix, radix * radix};
    shape.steps = {1};
    shape.free_of = 3;
    Placement from = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, from);
    const Placement to = test::random_other(random, shape, extents);
    if (random() % 4 == 0 && !from.rest.empty()) from.rest[random() % from.rest.size()].held = Held::first;
    const Result<Travel> distance = travel(from, to, extents);
    if (!distance || distance->level > Level::lane) continue;
    const Result<Move> m = move(from, to, shape.counts, extents, {});
    ASSERT_TRUE(m) << print(m.refused());
    ASSERT_TRUE(m->kind == MoveKind::none || m->kind == MoveKind::rename || m->kind == MoveKind::shuffle);
    ++kinds[m->kind];
    if (m->kind == MoveKind::none) {
      test::each_worker(shape.counts, [&](const Counts& worker) {
        auto have = registers_of(from, worker, extents);
        for (const auto& [reg, at] : registers_of(to, worker, extents)) ASSERT_EQ(have[reg], at);
      });
      continue;
    }
    expect_rounds_move(*m, from, to, shape.counts, extents);
    if (testing::Test::HasFatalFailure()) {
      ir::Program names;
      names.axes = {{"i"}, {"j"}, {"k"}};
      FAIL() << print(from, names) << " to " << print(to, names) << " of " << testing::PrintToString(extents);
    }
    if (m->kind == MoveKind::rename) {
      ASSERT_EQ(m->shuffles, 0);
    }
    // A round fills one register of a lane and empties one: no plan has fewer rounds than the larger register file.
    if (test::covered(from) == extents && test::covered(to) == extents) {
      ASSERT_EQ(m->shuffles > 0, m->kind == MoveKind::shuffle);
      ASSERT_LE(m->shuffles, std::max(test::end_of(from, Res::reg), test::end_of(to, Res::reg)));
    }
  }
  for (const MoveKind kind : {MoveKind::none, MoveKind::rename, MoveKind::shuffle}) EXPECT_GT(kinds[kind], 100);
}

TEST(Move, SaysHowFarItGoes) {
  const Counts counts = hardware(2, 2, 2, 4);
  const auto on = [&](Res res, std::int64_t size) { return *complete({{{AxisId{0}, {digit(res, 1, size)}}}}, counts); };
  const auto kind = [&](const Placement& from, const Placement& to) {
    const Result<Move> m = move(from, to, counts, {2}, {});
    return m ? static_cast<int>(m->kind) : -1 - static_cast<int>(m.refused().reason);
  };
  const Placement lanes = on(Res::lane, 2), registers = on(Res::reg, 2), steps = on(Res::step, 2);
  EXPECT_EQ(kind(lanes, lanes), static_cast<int>(MoveKind::none));
  EXPECT_EQ(kind(registers, lanes), static_cast<int>(MoveKind::rename));   // the same in all to split
  EXPECT_EQ(kind(lanes, registers), static_cast<int>(MoveKind::shuffle));  // split to the same in all
  EXPECT_EQ(kind(registers, steps), static_cast<int>(MoveKind::keep));
  EXPECT_EQ(kind(lanes, steps), static_cast<int>(MoveKind::shared));
  EXPECT_EQ(kind(on(Res::subgroup, 2), lanes), static_cast<int>(MoveKind::shared));
  EXPECT_EQ(kind(on(Res::cluster, 2), lanes), static_cast<int>(MoveKind::cluster));
  EXPECT_EQ(kind(on(Res::grid, 2), lanes), -1 - static_cast<int>(Reason::between_groups));
}

// The turns of an access, from the definition: lanes in runs that move at most all banks, words apart on one bank one by one.
std::int64_t counted_turns(const std::vector<std::int64_t>& addresses, std::int64_t width) {
  std::int64_t turns = 0;
  const std::size_t run = width <= 4 ? 32 : static_cast<std::size_t>(128 / width);
  for (std::size_t first = 0; first < addresses.size(); first += run) {
    std::map<std::int64_t, std::set<std::int64_t>> bank;
    for (std::size_t k = first; k < std::min(first + run, addresses.size()); ++k)
      if (addresses[k] >= 0)
        for (std::int64_t b = addresses[k]; b < addresses[k] + width; ++b) bank[b / 4 % 32].insert(b / 4);
    std::size_t most = 0;
    for (const auto& [b, words] : bank) most = std::max(most, words.size());
    turns += static_cast<std::int64_t>(most);
  }
  return turns;
}

TEST(Banks, TurnsAreTheMostWordsOfOneBank) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::int64_t width = std::int64_t{1} << random() % 5, stride = test::pick(random, 0, 70) * width;
    std::vector<std::int64_t> addresses;
    for (std::int64_t l = 0; l < 32; ++l)
      addresses.push_back(random() % 5 == 0 ? -1 : random() % 2 ? l * stride : test::pick(random, 0, 99) * width);
    ASSERT_EQ(wavefronts(addresses, width), counted_turns(addresses, width));
  }
  const auto of = [](std::int64_t stride, std::int64_t width) {
    std::vector<std::int64_t> addresses;
    for (std::int64_t l = 0; l < 32; ++l) addresses.push_back(l * stride);
    return wavefronts(addresses, width);
  };
  EXPECT_EQ(of(4, 4), 1);
  EXPECT_EQ(of(0, 4), 1);
  EXPECT_EQ(of(128, 4), 32);
  EXPECT_EQ(of(132, 4), 1);
  EXPECT_EQ(of(16, 16), 4);
}

// Follows a trip: each side's accesses, found from the placements alone, through memory.
void expect_trip_moves(const Trip& trip, const Placement& from, const Placement& to, const Counts& counts,
                       const Extents& extents) {
  ASSERT_TRUE(holds_apart(trip.home));
  for (std::int64_t grid = 0; grid < counts[Res::grid]; ++grid)
    for (std::int64_t rank = 0; rank < counts[Res::cluster]; ++rank) {
      std::map<std::int64_t, Coordinates> memory;
      std::int64_t store_turns = 0, load_turns = 0;
      const auto side = [&](const Placement& p, const Access& access, bool stores, std::int64_t& turns) {
        for (std::int64_t subgroup = 0; subgroup < counts[Res::subgroup]; ++subgroup)
          for (std::int64_t reg = 0; reg < test::end_of(p, Res::reg); ++reg) {
            bool starts = true;
            for (const Segment& s : access.registers) starts = starts && digit_of(reg, s) == 0;
            if (!starts) continue;
            std::vector<std::int64_t> addresses;
            for (std::int64_t lane = 0; lane < counts[Res::lane]; ++lane) {
              Counts at;
              at[Res::grid] = grid, at[Res::cluster] = rank, at[Res::subgroup] = subgroup, at[Res::lane] = lane,
              at[Res::reg] = reg;
              bool on = test::held(p, at, extents).has_value() && test::is_first(p, at);
              for (const Segment& s : access.owner) on = on && digit_of(at[s.res], s) == 0;
              addresses.push_back(on ? trip.home.swizzle(byte_of(trip.home, *test::held(p, at, extents))) : -1);
              if (!on) continue;
              ASSERT_EQ(addresses.back() % access.width_bytes, 0);
              // The elements of one access, its registers counted fast to slow.
              std::int64_t k = 0, most = access.width_bytes / trip.home.element_bytes;
              for (; k < most; ++k) {
                std::int64_t rest = k;
                Counts element = at;
                for (const Segment& s : access.registers) {
                  element[Res::reg] += rest % s.size * s.pos;
                  rest /= s.size;
                }
                const auto coordinates = test::held(p, element, extents);
                if (!coordinates) continue;
                const std::int64_t byte = addresses.back() + k * trip.home.element_bytes;
                ASSERT_EQ(byte, trip.home.swizzle(byte_of(trip.home, *coordinates)));
                ASSERT_LE(byte + trip.home.element_bytes, trip.home.bytes);
                if (stores)
                  memory[byte] = *coordinates;
                else
                  ASSERT_EQ(memory.at(byte), *coordinates);
              }
            }
            turns += counted_turns(addresses, access.width_bytes);
          }
      };
      side(from, trip.store, true, store_turns);
      side(to, trip.load, false, load_turns);
      if (grid == 0 && rank == 0) {
        ASSERT_EQ(store_turns, trip.store_turns);
        ASSERT_EQ(load_turns, trip.load_turns);
      }
    }
}

TEST(Move, RoundTripsKeepEveryElementAndCountTheirTurns) {
  std::mt19937 random(13);
  int trips = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    test::Shape shape;
    shape.axes = 1 + random() % 2;
    shape.counts = hardware(random() % 2 + 1, 1, 1 << random() % 3, 1 << random() % 6);
    shape.registers = {1, 2, 4, 8};
    shape.steps = {1};
    const Placement from = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, from);
    const Placement to = random() % 2 ? from : test::random_other(random, shape, extents);
    const Result<Trip> trip = through_shared(from, to, shape.counts, extents, {random() % 2 ? 4 : 2});
    if (!trip) {
      ASSERT_TRUE(trip.refused().reason == Reason::between_groups || trip.refused().reason == Reason::indivisible)
          << print(trip.refused());
      continue;
    }
    ++trips;
    expect_trip_moves(*trip, from, to, shape.counts, extents);
    if (testing::Test::HasFatalFailure()) FAIL() << "trial " << trial;
    ASSERT_LE(trip->least_turns, trip->store_turns + trip->load_turns);
  }
  EXPECT_GT(trips, 500);
}

TEST(Move, ASwizzleOrPaddingTakesTheConflictsOfATranspositionAway) {
  // A tile of 32 x 32 words, rows along the lanes when stored and columns when loaded.
  const Counts counts = hardware(1, 1, 4, 32);
  for (const std::int64_t bytes : {4, 2}) {
    const Placement rows = *complete(
        {{{AxisId{0}, {digit(Res::reg, 1, 8), digit(Res::subgroup, 1, 4)}}, {AxisId{1}, {digit(Res::lane, 1, 32)}}}}, counts);
    const Placement columns = *complete(
        {{{AxisId{0}, {digit(Res::lane, 1, 32)}}, {AxisId{1}, {digit(Res::reg, 1, 8), digit(Res::subgroup, 1, 4)}}}}, counts);
    const Result<Move> m = move(rows, columns, counts, {32, 32}, {bytes});
    ASSERT_TRUE(m);
    EXPECT_EQ(m->kind, MoveKind::shared);
    EXPECT_EQ(m->trip->store_turns + m->trip->load_turns, m->trip->least_turns);
    EXPECT_TRUE(m->trip->home.swizzle.bits > 0 || m->trip->home.bytes > 32 * 32 * bytes);
  }
}

}  // namespace
}  // namespace cosmati::place
