// Contractions carried out on random numbers: operands are laid out as the placements say, each worker multiplies what its atom
// would, and the result must be where the result's placement says.
// SPDX-License-Identifier: Apache-2.0
#include "place/contract.h"

#include <gtest/gtest.h>

#include "place/collective.h"
#include "place/enumerate.h"
#include "place/layouts.h"
#include "place/move.h"
#include "place/reducers.h"

namespace cosmati::place {
namespace {

constexpr ir::AxisId m{3}, n{1}, k{2};

Placement operand(const std::map<std::string, test::Layout>& all, const std::string& name) {
  const std::map<std::string, ir::AxisId> names{{"m", atom_m}, {"n", atom_n}, {"k", atom_k}};
  const test::Layout& layout = all.at(name);
  Placement p;
  for (const AxisMap& map : layout.placement.axes) p.axes.push_back({names.at(layout.axes[map.axis.index]), map.digits});
  return p;
}
Atom atom(const std::string& a, const std::string& b, const std::string& c) {
  const auto all = test::layouts();
  return {operand(all, a), operand(all, b), operand(all, c)};
}
// One product a lane, k along the lanes: thin contractions.
Atom thin() {
  return {{{{atom_m, {}}, {atom_k, {}}}, {}}, {{{atom_k, {}}, {atom_n, {}}}, {}}, {{{atom_m, {}}, {atom_n, {}}}, {}}};
}

Extents extents_of(const Contraction& c) {
  Extents extents(4, 1);
  for (const Placement* p : {&c.a, &c.b, &c.c})
    for (const AxisMap& map : p->axes) {
      std::int64_t size = 1;
      for (const Digit& d : map.digits) size *= d.size.factor;
      extents[map.axis.index] = size;
    }
  return extents;
}

// Every subgroup multiplies, in one step of its loops, whatever its lanes hold of a and b there: an atom may use what any of its
// lanes has. The products of an element of c may only be summed where c's placement has that element.
void expect_contracts(const Atom& q, const std::vector<Tile>& tiles, bool group_wide = false) {
  const Result<Contraction> r = contract(q, tiles, m, n, k, test::sum);
  ASSERT_TRUE(r) << print(r.refused());
  const Extents extents = extents_of(*r);
  Counts counts;
  for (const Res res : {Res::grid, Res::cluster, Res::subgroup, Res::lane, Res::step})
    for (const Placement* p : {&r->a, &r->b, &r->c}) {
      counts[res] = std::max(counts[res], test::end_of(*p, res));
      for (const Partial& free : p->rest)
        if (free.res == res) counts[res] = std::max(counts[res], free.pos.factor * free.size.factor);
    }
  for (const Placement* p : {&r->a, &r->b, &r->c})
    ASSERT_TRUE(ownership(*p, counts, extents)) << print(ownership(*p, counts, extents).refused());

  // How often each (m, n, k) is multiplied for each holder of the parts of c: the point of the part segments.
  std::map<std::array<std::int64_t, 3>, std::set<std::vector<std::int64_t>>> parts;
  Counts units = counts;
  units[Res::lane] = 1;
  if (group_wide) units[Res::subgroup] = 1;
  test::each_worker(units, [&](const Counts& unit) {
    for (std::int64_t step = 0; step < counts[Res::step]; ++step) {
      std::map<std::int64_t, std::set<std::int64_t>> ks_of_row, ks_of_column;
      std::map<std::array<std::int64_t, 2>, std::vector<std::int64_t>> part_of;
      const auto visit = [&](const Placement& p, const auto& take) {
        for (std::int64_t s = 0; s < (group_wide ? counts[Res::subgroup] : 1); ++s)
          for (std::int64_t lane = 0; lane < counts[Res::lane]; ++lane)
            for (std::int64_t reg = 0; reg < test::end_of(p, Res::reg); ++reg) {
              Counts at = unit;
              if (group_wide) at[Res::subgroup] = s;
              at[Res::lane] = lane, at[Res::reg] = reg, at[Res::step] = step;
              if (const auto c = test::held(p, at, extents)) take(at, *c);
            }
      };
      visit(r->a, [&](const Counts&, const auto& at) { ks_of_row[at[m.index]].insert(at[k.index]); });
      visit(r->b, [&](const Counts&, const auto& at) { ks_of_column[at[n.index]].insert(at[k.index]); });
      visit(r->c, [&](const Counts& worker, const auto& at) {
        std::vector<std::int64_t>& part = part_of[{at[m.index], at[n.index]}];
        part.clear();
        for (const Partial& free : r->c.rest)
          if (free.held == Held::part && free.res != Res::lane)
            part.push_back(worker[free.res] / free.pos.factor % free.size.factor);
        part.push_back(step);
      });
      for (const auto& [c, part] : part_of)
        for (const std::int64_t at_k : ks_of_row[c[0]])
          if (ks_of_column[c[1]].count(at_k)) parts[{c[0], c[1], at_k}].insert(part);
    }
  });
  ASSERT_EQ(static_cast<std::int64_t>(parts.size()), extents[m.index] * extents[n.index] * extents[k.index]);
  // Once: no product is summed into two parts, or in two steps, of the same element.
  for (const auto& [at, where] : parts) ASSERT_EQ(where.size(), 1U);
}

TEST(Contract, EveryProductIsMadeOnceWhereItsResultIs) {
  const Atom bf16 = atom("m16n8k16.a", "m16n8k16.b", "m16n8.c"), tf32 = atom("m16n8k8.tf32.a", "m16n8k8.tf32.b", "m16n8.c");
  std::mt19937 random(18);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<Tile> tiles;
    const Res on[] = {Res::reg, Res::subgroup, Res::step, Res::grid};
    for (const ir::AxisId axis : {atom_m, atom_n, atom_k})
      for (int digits = static_cast<int>(random() % 2 + (trial % 8 == 0)); digits > 0; --digits)
        tiles.push_back({axis, on[random() % (axis == atom_k ? 3 : 4)], 1 + static_cast<std::int64_t>(random() % 3)});
    std::shuffle(tiles.begin(), tiles.end(), random);
    expect_contracts(trial % 2 ? bf16 : tf32, tiles);
    if (testing::Test::HasFatalFailure()) FAIL() << "trial " << trial;
  }
  expect_contracts(thin(), {{atom_k, Res::reg, 4}, {atom_k, Res::lane, 32}, {atom_n, Res::reg, 2}, {atom_k, Res::step, 3}});
}

TEST(Contract, OuterKFoldsOrLeavesParts) {
  const ir::Program program = test::reducers();
  const Contraction folded =
      *contract(thin(), {{atom_k, Res::reg, 8}, {atom_k, Res::step, 4}, {atom_m, Res::lane, 32}}, m, n, k, test::sum);
  for (const Partial& free : folded.c.rest) EXPECT_NE(free.held, Held::part);
  EXPECT_EQ(folded.atoms, 8);
  EXPECT_EQ(folded.steps, 4);
  // k on the lanes, then over subgroups: what a thin contraction settles.
  const Contraction split =
      *contract(thin(), {{atom_k, Res::lane, 32}, {atom_k, Res::subgroup, 4}, {atom_n, Res::reg, 2}}, m, n, k, test::sum);
  const Settled settled = *settle(split.c, program, test::sum, Held::same);
  ASSERT_EQ(settled.exchanges.size(), 2U);
  EXPECT_EQ(settled.exchanges[0].shuffles, 10);
  EXPECT_EQ(settled.exchanges[1].fences, 1);
  // m over subgroups: b is the same in all of them.
  const Contraction shared =
      *contract(atom("m16n8k16.a", "m16n8k16.b", "m16n8.c"), {{atom_m, Res::subgroup, 4}}, m, n, k, test::sum);
  EXPECT_EQ(shared.b.rest, std::vector<Partial>{free_segment(Res::subgroup, 1, 4)});
  EXPECT_TRUE(shared.a.rest.empty());
  EXPECT_EQ(contract(atom("m16n8k16.a", "m16n8k8.tf32.b", "m16n8.c"), {}, m, n, k, test::sum).refused().reason,
            Reason::mismatched_atom);
}

TEST(Contract, RelabellingKPairsTheSameElements) {
  const Atom q = atom("m16n8k8.tf32.a", "m16n8k8.tf32.b", "m16n8.c");
  const Result<Atom> other = relabelled(q, {1, 0});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->a.find(atom_k)->digits, test::read_digits("(R,2,2)(L,1,4)"));
  EXPECT_EQ(other->b.find(atom_k)->digits, test::read_digits("(R,1,2)(L,1,4)"));
  // The instruction multiplies what lies in the same places as before: those elements must still have one k.
  const Extents extents{16, 8, 8};
  std::map<std::int64_t, std::int64_t> a_now, b_now;  // by the k that the instruction takes it for
  test::each_worker(hardware(1, 1, 1, 32), [&](const Counts& worker) {
    test::each_slot(q.a, worker, [&](const Counts& slot) {
      a_now[(*test::held(q.a, slot, extents))[2]] = (*test::held(other->a, slot, extents))[2];
    });
    test::each_slot(q.b, worker, [&](const Counts& slot) {
      b_now[(*test::held(q.b, slot, extents))[2]] = (*test::held(other->b, slot, extents))[2];
    });
  });
  EXPECT_EQ(a_now, b_now);
  EXPECT_NE(a_now[1], 1);
  // With it a result is the next operand but for the number of its registers.
  const Contraction first = *contract(*other, {}, ir::AxisId{0}, ir::AxisId{1}, ir::AxisId{2}, test::sum);
  const Contraction next = *contract(*other, {}, ir::AxisId{0}, ir::AxisId{2}, ir::AxisId{1}, test::sum);
  EXPECT_EQ(move(first.c, next.a, hardware(1, 1, 1, 32), {16, 8, 8}, {})->kind, MoveKind::rename);
  EXPECT_FALSE(relabelled(q, {0, 0}));
  EXPECT_FALSE(relabelled(q, {0}));
  EXPECT_FALSE(relabelled(atom("m16n8k16.a", "m16n8k8.tf32.b", "m16n8.c"), {1, 0, 2}));
}

TEST(Contract, FourSubgroupsAreOneAtom) {
  Atom q = atom("wgmma.k16.a", "m16n8k16.b", "wgmma.n8.d");
  // b comes from shared memory: every subgroup reads all of it.
  expect_contracts(q, {{atom_n, Res::reg, 2}, {atom_k, Res::step, 2}, {atom_m, Res::grid, 2}}, true);
}

TEST(Contract, TailsZeroBothOperandsBeyondK) {
  const Contraction c = *contract(atom("m16n8k16.a", "m16n8k16.b", "m16n8.c"), {{atom_k, Res::step, 2}}, m, n, k, test::sum);
  const auto of = [&](std::int64_t at_m, std::int64_t at_n, std::int64_t at_k, bool partial = false) {
    return tails(c, m, n, k, {0, at_n, at_k, at_m}, partial);
  };
  EXPECT_FALSE(of(16, 8, 32).zero_k || of(16, 8, 32).guard_m || of(16, 8, 32).guard_n);
  EXPECT_TRUE(of(16, 8, 31).zero_k);
  EXPECT_TRUE(of(16, 8, 32, true).zero_k);
  EXPECT_TRUE(of(15, 8, 32).guard_m);
  EXPECT_TRUE(of(16, 7, 32).guard_n);
  EXPECT_FALSE(of(15, 7, 32).zero_k);
}

TEST(Contract, DecodeHeadsAreScatteredOverTheirLanes) {
  // d = (R,1,8)(L,1,16); t = (L,16,2)(S,1,4)(R,8,2); h = (R,16,4): scores are parts on 16 lanes.
  const ir::Program program = test::reducers();
  const ir::AxisId d{0}, t{1}, h{2};
  const Placement products = *complete({{{d, test::read_digits("(R,1,8)(L,1,16)")},
                                         {t, test::read_digits("(L,16,2)(S,1,4)(R,8,2)")},
                                         {h, test::read_digits("(R,16,4)")}}},
                                       hardware(1, 1, 4, 32));
  const Reduced scores = *reduce(products, {d}, test::sum);
  EXPECT_EQ(scores.fold, 8);
  const Settled spread = *scatter(scores.result, program, test::sum, h);
  EXPECT_EQ(spread.exchanges[0].shuffles, 5 * 2);  // for each of the two t that a lane holds
  EXPECT_EQ(settle(scores.result, program, test::sum, Held::same)->exchanges[0].shuffles, 16 * 2);
  const Reduced over_t = *reduce(spread.result, {t}, test::max);
  EXPECT_EQ(over_t.result.rest,
            (std::vector<Partial>{free_segment(Res::subgroup, 1, 4, Held::part, test::max), free_segment(Res::lane, 4, 4),
                                  free_segment(Res::lane, 16, 2, Held::part, test::max)}));
}

}  // namespace
}  // namespace cosmati::place
