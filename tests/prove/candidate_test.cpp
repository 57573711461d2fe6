// What a program allows of a candidate: each question answered both ways, and held to enumeration where there is something to
// enumerate.
// SPDX-License-Identifier: Apache-2.0
#include "prove/candidate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "language/source.h"

namespace cosmati::prove {
namespace {

using ir::AxisId;
using place::digit;
using place::free_segment;
using place::hardware;
using place::Held;
using place::Placement;
using place::Res;

ir::Program program(const std::string& text) {
  const auto source = language::parse(text, "t").at(0);
  return source->instantiate(language::sample_bindings(source->signature()).at(0));
}
AxisId axis(const ir::Program& p, const std::string& name) {
  for (std::uint32_t a = 0; a < p.axes.size(); ++a)
    if (p.axes[a].name == name) return AxisId{a};
  ADD_FAILURE() << "no axis " << name;
  return {};
}
ir::TensorId tensor(const ir::Program& p, const std::string& name) {
  for (std::uint32_t t = 0; t < p.tensors.size(); ++t)
    if (p.tensors[t].name == name) return ir::TensorId{t};
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// The order in which a worker that takes its steps as they count, and the registers of each by their coordinates, meets the
// elements; whether it is theirs.
bool in_order(const Placement& p, const std::vector<AxisId>& axes) {
  std::map<Res, std::int64_t> ends{{Res::reg, 1}, {Res::step, 1}};
  for (const AxisId a : axes)
    for (const place::Digit& d : p.find(a)->digits) ends[d.res] = std::max(ends[d.res], d.pos.factor * d.size.factor);
  std::vector<std::vector<std::int64_t>> met;
  for (std::int64_t step = 0; step < ends[Res::step]; ++step) {
    std::vector<std::vector<std::int64_t>> of_step;
    for (std::int64_t reg = 0; reg < ends[Res::reg]; ++reg) {
      std::vector<std::int64_t> at;
      for (const AxisId a : axes) {
        std::int64_t coordinate = 0, weight = 1;
        for (const place::Digit& d : p.find(a)->digits) {
          coordinate += (d.res == Res::reg ? reg : step) / d.pos.factor % d.size.factor * weight;
          weight *= d.size.factor;
        }
        at.push_back(coordinate);
      }
      of_step.push_back(at);
    }
    std::sort(of_step.begin(), of_step.end());
    met.insert(met.end(), of_step.begin(), of_step.end());
  }
  return std::is_sorted(met.begin(), met.end());
}

TEST(Candidate, LeftReductionsStayInOneWorkerAndInOrder) {
  std::mt19937 random(1);
  int yes = 0, no = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const std::vector<AxisId> axes = random() % 2 ? std::vector{AxisId{0}} : std::vector{AxisId{1}, AxisId{0}};
    Placement p;
    for (const AxisId a : axes) p.axes.push_back({a, {}});
    std::map<Res, std::int64_t> next{{Res::reg, 1}, {Res::step, 1}};
    for (int k = 0; k < 4; ++k) {
      const Res res = random() % 2 ? Res::reg : Res::step;
      const std::int64_t size = 2 + static_cast<std::int64_t>(random() % 2);
      p.axes[random() % axes.size()].digits.push_back(digit(res, next[res], size));
      next[res] *= size;
    }
    for (place::AxisMap& map : p.axes)
      if (random() % 4 == 0) std::shuffle(map.digits.begin(), map.digits.end(), random);
    EXPECT_TRUE(reorderable(ir::Order::tree, p, axes));
    const bool legal = static_cast<bool>(reorderable(ir::Order::left, p, axes));
    ASSERT_EQ(legal, in_order(p, axes));
    ++(legal ? yes : no);
  }
  EXPECT_GT(yes, 100);
  EXPECT_GT(no, 100);
  const Placement lanes{{{AxisId{0}, {digit(Res::reg, 1, 4), digit(Res::lane, 1, 32)}}}};
  EXPECT_TRUE(reorderable(ir::Order::tree, lanes, {AxisId{0}}));
  EXPECT_EQ(reorderable(ir::Order::left, lanes, {AxisId{0}}).refused().witness, "(lane, 1, 32) spreads it over workers");
}

TEST(Candidate, OffsetsFitExactlyBelowTheirLimit) {
  std::mt19937_64 random(2);
  int yes = 0, no = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<std::int64_t> extents, strides;
    __int128 up = 0, down = 0;
    const std::int64_t bytes = std::int64_t{1} << random() % 4;
    bool empty = false;
    for (std::size_t d = 0; d < 1 + random() % 3; ++d) {
      const auto magnitude = [&] { return static_cast<std::int64_t>(random() >> (4 + random() % 60)); };
      extents.push_back(random() % 20 == 0 ? 0 : 1 + magnitude());
      strides.push_back(random() % 3 ? magnitude() : -magnitude());
      empty = empty || extents[d] == 0;
      (strides[d] < 0 ? down : up) += static_cast<__int128>(extents[d] - 1) * strides[d] * bytes;
    }
    const bool fits = empty || (up < (std::int64_t{1} << 31) && -down < (std::int64_t{1} << 31));
    ASSERT_EQ(static_cast<bool>(offsets_fit(extents, strides, bytes)), fits);
    ++(fits ? yes : no);
  }
  EXPECT_GT(yes, 1000);
  EXPECT_GT(no, 1000);
  EXPECT_TRUE(offsets_fit({1 << 29}, {1}, 4));
  EXPECT_FALSE(offsets_fit({(1 << 29) + 1}, {1}, 4));
  const place::Refused refused = offsets_fit({4, 1 << 30}, {0, 1}, 4).refused();
  EXPECT_EQ(refused.reason, place::Reason::offset_overflow);
  EXPECT_EQ(refused.where, "dimension 1");
}

TEST(Candidate, AStoreHasOneOwnerAnElement) {
  const ir::Program p =
      program("program p(in x: f32[row, col], out y: f32[row]) {\n  parallel row {\n    y[row] = sum(x, col)\n  }\n}\n");
  const AxisId row = axis(p, "row"), col = axis(p, "col");
  const place::Counts counts = hardware(5, 1, 2, 32);
  place::Extents extents(p.axes.size(), 1);
  extents[row.index] = 10;
  extents[col.index] = 64;
  const Placement x = *place::complete(
      {{{row, {digit(Res::subgroup, 1, 2), digit(Res::grid, 1, 5)}}, {col, {digit(Res::reg, 1, 2), digit(Res::lane, 1, 32)}}}},
      counts);
  const Placement parts = place::reduce(x, {col}, ir::ReducerId{0})->result;
  EXPECT_EQ(store_owner(p, p.stores[0], parts, counts, extents).refused().reason, place::Reason::unsettled);
  const Placement whole = place::settle(parts, p, ir::ReducerId{0}, Held::first)->result;
  const auto owner = store_owner(p, p.stores[0], whole, counts, extents);
  ASSERT_TRUE(owner);
  EXPECT_EQ(*owner, (std::vector<place::Segment>{{Res::lane, 1, 32}}));
  extents[row.index] = 11;
  EXPECT_EQ(store_owner(p, p.stores[0], whole, counts, extents).refused().reason, place::Reason::uncovered);
  EXPECT_EQ(store_owner(p, p.stores[0], {{}, {free_segment(Res::grid, 1, 5)}}, counts, extents).refused().witness,
            "all its workers would store");
}

// ---- groups of several instances -------------------------------------------------------------------------------------------

struct Case {
  ir::Program program;
  Packing packing;
};
// P instances of S subgroups each, one exchange between the subgroups of an instance, inside the loop over t where there is one.
Case packed(const std::string& text, std::int64_t rows, std::int64_t subgroups, std::int64_t packed_rows) {
  Case c{program(text), {}};
  const AxisId row = axis(c.program, "row");
  const std::int64_t groups = (rows + packed_rows - 1) / packed_rows;
  c.packing.counts = hardware(groups, 1, subgroups * packed_rows, 32);
  c.packing.extents.assign(c.program.axes.size(), 64);
  c.packing.extents[row.index] = rows;
  c.packing.instances = {{{row, {digit(Res::subgroup, subgroups, packed_rows), digit(Res::grid, 1, groups)}}}};
  const Placement x = *place::complete(
      {{c.packing.instances.axes[0], {AxisId{99}, {digit(Res::lane, 1, 32), digit(Res::subgroup, 1, subgroups)}}}},
      c.packing.counts);
  const auto settled =
      place::settle(place::reduce(x, {AxisId{99}}, ir::ReducerId{0})->result, c.program, ir::ReducerId{0}, Held::same);
  for (const place::Exchange& e : settled->exchanges) c.packing.exchanges.push_back({e, {}});
  if (!c.program.streams.empty())
    for (ExchangeSite& site : c.packing.exchanges) site.loops = {c.program.streams[0].axis};
  return c;
}
std::string answer(const Case& c) {
  const place::Result<Admitted> admitted = admit(c.program, c.packing, {});
  if (!admitted) return std::string(name(admitted.refused().reason)) + " " + admitted.refused().witness;
  std::string text = "yes";
  for (const AxisId a : admitted->replayed) text += " replaying " + c.program[a].name;
  return text;
}

const std::string plain =
    "program p(in x: f32[row, col], out y: f32[row]) {\n  parallel row {\n    y[row] = sum(x, col)\n  }\n}\n";
const std::string in_place = "program p(inout x: f32[row, col]) {\n  parallel row {\n    x[row, col] = x / sum(x, col)\n  }\n}\n";
std::string repeated(const std::string& range) {
  return "program p(in x: f32[row, k, col], in len: i32[row] in 0 .. extent(k) + 1, out y: f32[row]) {\n  parallel row {\n    "
         "axis t in " +
         range +
         "\n    stream t carry a = 0.0 {\n      next a = maximum(a, sum(x[row, t, col], col))\n    }\n    y[row] = a\n  }\n}\n";
}

TEST(Packing, PlainRowsAreAdmittedAndAPartialGroupReplays) {
  for (const std::int64_t subgroups : {2, 3, 8}) {
    EXPECT_EQ(answer(packed(plain, 12, subgroups, 3)), "yes");
    EXPECT_EQ(answer(packed(plain, 13, subgroups, 3)), "yes replaying row");
    EXPECT_EQ(answer(packed(plain, 2, subgroups, 3)), "yes replaying row");
    EXPECT_EQ(answer(packed(plain, 13, subgroups, 1)), "yes");  // nobody waits for another instance
  }
  // Of one subgroup an instance: nothing waits, and the whole instance may be guarded.
  EXPECT_EQ(answer(packed(plain, 13, 1, 3)), "yes");
}

TEST(Packing, ARepeatedReductionDoublesItsPartials) {
  Case c = packed(repeated("0 .. extent(k)"), 12, 4, 2);
  EXPECT_EQ(answer(c), "single_partials one fence a turn");
  for (ExchangeSite& site : c.packing.exchanges) site.by_parity = true;
  EXPECT_EQ(answer(c), "yes");
  // Another fence of the same turn keeps them apart as well, and a loop of one turn has no next.
  c = packed(repeated("0 .. extent(k)"), 12, 4, 2);
  for (ExchangeSite& site : c.packing.exchanges) site.other_fences = 1;
  EXPECT_EQ(answer(c), "yes");
  c = packed(repeated("0 .. extent(k)"), 12, 4, 2);
  c.packing.extents[axis(c.program, "t").index] = 1;
  EXPECT_EQ(answer(c), "yes");
  // In one subgroup there are no partials.
  EXPECT_EQ(answer(packed(repeated("0 .. extent(k)"), 12, 1, 2)), "yes");
}

TEST(Packing, ATripCountThatVariesByRowKeepsRowsApart) {
  Case c = packed(repeated("0 .. len"), 12, 4, 2);
  for (ExchangeSite& site : c.packing.exchanges) site.by_parity = true;
  EXPECT_EQ(answer(c), "shared_trip its range depends on row, of which a group holds 2");
  c = packed(repeated("0 .. len"), 12, 4, 1);
  for (ExchangeSite& site : c.packing.exchanges) site.by_parity = true;
  EXPECT_EQ(answer(c), "yes");
}

TEST(Packing, ReplayedInstancesReadNothingThatIsStored) {
  EXPECT_EQ(answer(packed(in_place, 13, 4, 3)), "replay_alias it is read and stored");
  EXPECT_EQ(answer(packed(in_place, 12, 4, 3)), "yes");
  Case c = packed(plain, 13, 4, 3);
  c.packing.aliases.insert({tensor(c.program, "x"), tensor(c.program, "y")});
  EXPECT_EQ(answer(c), "replay_alias y is the same memory");
  c.packing.extents[axis(c.program, "row").index] = 15;
  EXPECT_EQ(answer(c), "yes");
}

TEST(Packing, AGroupHasItsLimit) {
  EXPECT_EQ(answer(packed(plain, 33, 11, 3)), "group_too_large 1056 workers, the limit is 1024");
  EXPECT_EQ(answer(packed(plain, 32, 16, 2)), "yes");
  Case c = packed(plain, 12, 4, 3);
  c.packing.counts[Res::lane] = 16;
  EXPECT_EQ(answer(c), "partial_subgroup 16 lanes of 32");
}

}  // namespace
}  // namespace cosmati::prove
