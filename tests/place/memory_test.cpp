// Widths, guards, copies and owners of accesses, fused axes and flat moves, against the addresses of every element.
// SPDX-License-Identifier: Apache-2.0
#include "place/memory.h"

#include <gtest/gtest.h>

#include "place/enumerate.h"

namespace cosmati::place {
namespace {

using ir::AxisId;
using test::Coordinates;

// Rows in any order of the axes, with gaps now and then; strides are multiples of the element.
Home random_home(std::mt19937& random, const Extents& extents, std::int64_t bytes) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t a = 0; a < extents.size(); ++a) order.push_back(a);
  std::shuffle(order.begin(), order.end(), random);
  Home home{{}, {}, bytes};
  std::int64_t stride = random() % 5 == 0 ? 2 * bytes : bytes;
  for (const std::uint32_t a : order) {
    home.map.axes.push_back({AxisId{a}, {digit(Res::addr, stride, extents[a])}});
    stride *= extents[a];
    if (random() % 2) stride = (stride / bytes + test::pick(random, 0, 8)) * bytes;
  }
  return home;
}

// The registers that one instruction takes, the first of them at `reg`; nothing where `reg` is not the first of one.
std::vector<std::int64_t> registers_at(const Access& a, std::int64_t reg, std::int64_t element_bytes) {
  for (const Segment& s : a.registers)
    if (reg / s.pos % s.size != 0) return {};
  std::vector<std::int64_t> list;
  for (std::int64_t k = 0; k < a.width_bytes / element_bytes; ++k) {
    std::int64_t rest = k, at = reg;
    for (const Segment& s : a.registers) {
      at += rest % s.size * s.pos;
      rest /= s.size;
    }
    list.push_back(at);
  }
  return list;
}

// Whether instructions of that width, the same registers in every worker, could serve all workers.
bool width_is_possible(const Placement& p, const Home& home, const Counts& counts, const Extents& all, std::int64_t width) {
  std::map<std::int64_t, std::int64_t> chunk_of;  // by register, as worker 0 has it
  bool possible = true, first = true;
  test::each_worker(counts, [&](const Counts& worker) {
    test::each_slot(p, worker, [&](const Counts& slot) {
      if (slot[Res::step] != 0) return;
      const std::int64_t byte = byte_of(home, *test::held(p, slot, all));
      if (first) chunk_of[slot[Res::reg]] = byte / width;
    });
    first = false;
    std::map<std::int64_t, std::set<std::int64_t>> bytes;
    for (Counts slot = worker; slot[Res::step] < test::size_of(p, Res::step); ++slot[Res::step]) {
      bytes.clear();
      for (const auto& [reg, chunk] : chunk_of) {
        slot[Res::reg] = reg;
        bytes[chunk].insert(byte_of(home, *test::held(p, slot, all)));
      }
      for (const auto& [chunk, list] : bytes)
        possible = possible && static_cast<std::int64_t>(list.size()) * home.element_bytes == width &&
                   *list.begin() % width == 0 && *list.rbegin() + home.element_bytes - *list.begin() == width;
    }
  });
  return possible;
}

TEST(Access, IsAsWideAsAddressesAllowAndGuardsItsEdges) {
  std::mt19937 random(14);
  std::map<std::int64_t, int> widths;
  std::map<Edge, int> edges;
  for (int trial = 0; trial < 3000; ++trial) {
    test::Shape shape;
    shape.axes = 1 + random() % 3;
    shape.counts =
        hardware(test::pick(random, 1, 2), test::pick(random, 1, 2), test::pick(random, 1, 3), test::pick(random, 1, 8));
    shape.registers = {1, 2, 3, 4, 6, 8, 16};
    const Placement p = test::random_placement(random, shape);
    const Extents extents = test::random_extents(random, p);
    const std::int64_t bytes = std::int64_t{1} << random() % 4;
    const Home home = random_home(random, extents, bytes);
    const MemoryFacts facts{bytes << random() % 4, 16};
    const Result<Access> a = load(p, home, extents, facts);
    ASSERT_TRUE(a);
    ++widths[a->width_bytes];
    ASSERT_EQ(facts.align % a->width_bytes, 0);
    ASSERT_EQ(a->instructions * a->width_bytes, test::size_of(p, Res::reg) * bytes);
    // A run of three registers after three could be cut into fours, but not along digits.
    const bool powers = (test::size_of(p, Res::reg) & (test::size_of(p, Res::reg) - 1)) == 0;
    if (powers && test::covered(p) == extents && a->width_bytes * 2 <= std::min(facts.align, facts.widest)) {
      ASSERT_FALSE(width_is_possible(p, home, shape.counts, extents, a->width_bytes * 2));
    }
    std::map<Coordinates, std::int64_t> copies, stores;
    const Result<Access> s = store(p, home, extents, facts);
    ASSERT_TRUE(s);
    ASSERT_EQ(s->width_bytes, a->width_bytes);
    test::each_worker(shape.counts, [&](const Counts& worker) {
      for (const Coordinates& at : test::held_by(p, worker, extents)) ++copies[at];
      bool owner = true;
      for (const Segment& free : s->owner) owner = owner && worker[free.res] / free.pos % free.size == 0;
      test::each_slot(p, worker, [&](const Counts& slot) {
        const auto at = test::held(p, slot, extents);
        if (at && owner) ++stores[*at];
        const std::vector<std::int64_t> together = registers_at(*a, slot[Res::reg], bytes);
        if (together.empty()) return;
        for (std::size_t k = 0; k < together.size(); ++k) {
          Counts element = slot;
          element[Res::reg] = together[k];
          if (const auto other = test::held(p, element, extents); at && other) {
            ASSERT_EQ(byte_of(home, *other), byte_of(home, *at) + static_cast<std::int64_t>(k) * bytes);
            ASSERT_EQ(byte_of(home, *at) % a->width_bytes, 0);
          }
        }
        // Along each axis: all elements of an access are in the extent, or as the edge says.
        for (const AxisEdge& e : a->edges) {
          Placement alone;
          alone.axes = {*p.find(e.axis)};
          std::size_t inside = 0;
          for (const std::int64_t reg : together) {
            Counts element = slot;
            element[Res::reg] = reg;
            inside += test::held(alone, element, extents).has_value();
          }
          if (e.edge == Edge::exact) {
            ASSERT_EQ(inside, together.size());
          } else if (e.edge == Edge::pack) {
            ASSERT_TRUE(inside == 0 || inside == together.size());
          }
        }
      });
    });
    for (const AxisEdge& e : a->edges) ++edges[e.edge];
    std::int64_t same = 1;
    for (const Res res : {Res::grid, Res::cluster, Res::subgroup, Res::lane}) same *= a->copies[res];
    for (const auto& [at, n] : copies) ASSERT_EQ(n, same);
    for (const auto& [at, n] : stores) ASSERT_EQ(n, 1);
    ASSERT_EQ(stores.size(), copies.size());
  }
  for (const std::int64_t width : {1, 2, 4, 8, 16}) EXPECT_GT(widths[width], 50);
  for (const Edge edge : {Edge::exact, Edge::pack, Edge::element}) EXPECT_GT(edges[edge], 50);
}

TEST(Access, OfARowStripe) {
  // W workers of V elements: col = (R, 1, V)(L, 1, 32)(S, 1, S)(R, V, slots); gamma is loaded by every row of the group.
  const Counts counts = hardware(10, 1, 8, 32);
  const AxisMap col{AxisId{1},
                    {digit(Res::reg, 1, 4), digit(Res::lane, 1, 32), digit(Res::subgroup, 1, 4), digit(Res::reg, 4, 3)}};
  const Placement x = *complete({{{AxisId{0}, {digit(Res::subgroup, 4, 2), digit(Res::grid, 1, 10)}}, col}}, counts);
  const auto memory = [](std::int64_t pitch) {
    return Home{{{{AxisId{0}, {digit(Res::addr, 4 * pitch, 19)}}, {AxisId{1}, {digit(Res::addr, 4, 1540)}}}}, {}, 4};
  };
  const Access whole = *load(x, memory(1540), {19, 1536}, {16, 16});
  EXPECT_EQ(whole.width_bytes, 16);
  EXPECT_EQ(whole.instructions, 3);
  EXPECT_EQ(whole.edges[0].edge, Edge::pack);  // a partial last group
  EXPECT_EQ(whole.edges[1].edge, Edge::exact);
  EXPECT_EQ(load(x, memory(1540), {19, 1532}, {16, 16})->edges[1].edge, Edge::pack);
  EXPECT_EQ(load(x, memory(1540), {19, 1531}, {16, 16})->edges[1].edge, Edge::element);
  EXPECT_EQ(load(x, memory(1537), {19, 1536}, {16, 16})->width_bytes, 4);  // an odd pitch
  EXPECT_EQ(load(x, memory(1538), {19, 1536}, {16, 16})->width_bytes, 8);
  EXPECT_EQ(load(x, memory(1540), {19, 1536}, {4, 16})->width_bytes, 4);  // a pointer one element off
  const Placement gamma = *complete({{col}}, counts);
  const Access shared = *load(gamma, memory(1540), {19, 1536}, {16, 16});
  EXPECT_EQ(shared.copies[Res::subgroup], 2);
  EXPECT_EQ(shared.copies[Res::grid], 10);
  EXPECT_EQ(shared.copies[Res::lane], 1);
}

TEST(Access, OfPartsAndFirsts) {
  const Home home{{{{AxisId{0}, {digit(Res::addr, 4, 8)}}}}, {}, 4};
  const AxisMap row{AxisId{0}, {digit(Res::grid, 1, 8)}};
  const ir::ReducerId sum{0};
  EXPECT_EQ(store({{row}, {free_segment(Res::lane, 1, 32, Held::part, sum)}}, home, {8}, {}).refused().reason, Reason::unsettled);
  EXPECT_EQ(load({{row}, {free_segment(Res::lane, 1, 32, Held::part, sum)}}, home, {8}, {}).refused().reason, Reason::unsettled);
  const Access first =
      *store({{row}, {free_segment(Res::cluster, 1, 2), free_segment(Res::lane, 1, 32, Held::first)}}, home, {8}, {});
  EXPECT_EQ(first.owner, (std::vector<Segment>{{Res::cluster, 1, 2}, {Res::lane, 1, 32}}));
  const Access fed = *load({{row}, {free_segment(Res::cluster, 1, 2)}}, home, {8}, {});
  EXPECT_EQ(fed.multicast, (std::vector<Segment>{{Res::cluster, 1, 2}}));
  EXPECT_EQ(load({{{AxisId{1}, {digit(Res::grid, 1, 8)}}}}, home, {8, 8}, {}).refused().reason, Reason::no_such_axis);
}

// Visits every coordinate of the axes.
void each_coordinate(const Extents& extents, const std::function<void(const Coordinates&)>& visit) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  for (std::int64_t k = 0; k < n; ++k) {
    Coordinates at;
    std::int64_t rest = k;
    for (const std::int64_t e : extents) at.push_back(rest % e), rest /= e;
    visit(at);
  }
}

// Whether the axes, slow to fast, count as one in an access: its address is linear in their joint index.
bool linear(const std::vector<AxisId>& group, const Extents& extents, const std::vector<std::int64_t>& strides) {
  Extents of;
  for (auto axis = group.rbegin(); axis != group.rend(); ++axis) of.push_back(extents[axis->index]);
  std::optional<std::int64_t> step;
  bool is = true;
  std::int64_t index = 0;
  each_coordinate(of, [&](const Coordinates& at) {
    std::int64_t address = 0;
    for (std::size_t k = 0; k < at.size(); ++k) address += at[k] * strides[group[group.size() - 1 - k].index];
    if (index == 1) step = address;
    is = is && address == index * step.value_or(0);
    ++index;
  });
  return is;
}

TEST(Collapse, FusesExactlyWhatIsLinearInEveryAccess) {
  std::mt19937 random(15);
  int fused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::uint32_t n = 1 + random() % 4;
    std::vector<AxisId> axes;
    Extents extents;
    for (std::uint32_t a = 0; a < n; ++a) {
      axes.push_back(AxisId{a});
      extents.push_back(test::pick(random, 1, 3));
    }
    std::vector<AxisId> order = axes;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<std::int64_t>> strides(1 + random() % 2, std::vector<std::int64_t>(n));
    for (auto& of : strides) {
      std::int64_t stride = random() % 4 ? 1 : 0;
      for (const AxisId axis : order) {
        of[axis.index] = stride;
        stride *= extents[axis.index];
        if (random() % 4 == 0) stride += static_cast<std::int64_t>(random() % 3);
      }
    }
    const auto groups = collapse(axes, extents, strides);
    std::set<AxisId> seen;
    for (const auto& group : groups) {
      seen.insert(group.begin(), group.end());
      for (const auto& of : strides) ASSERT_TRUE(linear(group, extents, of));
    }
    ASSERT_EQ(seen.size(), axes.size());
    fused += groups.size() < axes.size();
    for (const auto& slow : groups)
      for (const auto& fast : groups) {
        if (&slow == &fast) continue;
        std::vector<AxisId> both = slow;
        both.insert(both.end(), fast.begin(), fast.end());
        ASSERT_FALSE(std::all_of(strides.begin(), strides.end(), [&](const auto& of) { return linear(both, extents, of); }));
      }
  }
  EXPECT_GT(fused, 1000);
}

TEST(Flat, MovesAreThoseWithOneLinearOrder) {
  std::mt19937 random(16);
  int yes = 0, no = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Extents extents;
    for (std::uint32_t a = 0; a < 1 + random() % 3; ++a) extents.push_back(test::pick(random, 1, 5));
    const Home from = random_home(random, extents, 4), to = random() % 2 ? from : random_home(random, extents, 4);
    std::set<std::int64_t> bytes;
    bool same = true;
    each_coordinate(extents, [&](const Coordinates& at) {
      same = same && byte_of(from, at) == byte_of(to, at);
      bytes.insert(byte_of(from, at));
    });
    same = same && *bytes.rbegin() == 4 * static_cast<std::int64_t>(bytes.size() - 1);
    const Result<Flat> f = flat(from, to, extents);
    ASSERT_EQ(static_cast<bool>(f), same);
    ++(same ? yes : no);
    if (f) {
      ASSERT_EQ(f->bytes, 4 * static_cast<std::int64_t>(bytes.size()));
    } else {
      ASSERT_EQ(f.refused().reason, Reason::not_linear);
    }
  }
  EXPECT_GT(yes, 300);
  EXPECT_GT(no, 300);
}

TEST(Homes, KeepElementsApart) {
  std::mt19937 random(17);
  int apart = 0, overlapping = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Home home{{}, {}, 4};
    Extents extents;
    for (std::uint32_t a = 0; a < 1 + random() % 3; ++a) {
      extents.push_back(test::pick(random, 1, 4));
      home.map.axes.push_back({AxisId{a}, {digit(Res::addr, 4 * test::pick(random, 1, 12), extents.back())}});
    }
    std::set<std::int64_t> bytes;
    std::size_t n = 0;
    each_coordinate(extents, [&](const Coordinates& at) {
      bytes.insert(byte_of(home, at));
      ++n;
    });
    const Verdict verdict = holds_apart(home);
    if (verdict) {
      ASSERT_EQ(bytes.size(), n);
      ++apart;
    } else {
      ASSERT_EQ(verdict.refused().reason, Reason::overlapping_bytes);
      ++overlapping;  // or interleaved, which the rule does not look into
    }
    // A swizzle moves elements about and loses none.
    const Swizzle swizzle{static_cast<int>(1 + random() % 3), static_cast<int>(2 + random() % 3),
                          static_cast<int>(3 + random() % 3)};
    std::set<std::int64_t> swizzled;
    for (std::int64_t byte = 0; byte < 4096; ++byte) swizzled.insert(swizzle(byte));
    ASSERT_EQ(swizzled.size(), 4096U);
    ASSERT_EQ(*swizzled.rbegin(), 4095);
  }
  EXPECT_GT(apart, 300);
  EXPECT_GT(overlapping, 300);
}

}  // namespace
}  // namespace cosmati::place
