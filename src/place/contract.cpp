// The digits of an atom come first, as the instruction fixes them; tiles take the positions after it.
// SPDX-License-Identifier: Apache-2.0
#include "place/contract.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/check.h"

namespace cosmati::place {
namespace {

std::int64_t cover(const AxisMap& map) {
  std::int64_t n = 1;
  for (const Digit& d : map.digits) n *= number(d.size);
  return n;
}
std::int64_t cover(const Placement& p, ir::AxisId axis) {
  const AxisMap* map = p.find(axis);
  return map ? cover(*map) : 1;
}

// The first position of a resource past everything that the placement uses.
std::int64_t end_of(const Placement& p, Res res) {
  std::int64_t end = 1;
  const auto past = [&](Res on, const Size& pos, const Size& size) {
    if (on == res) end = std::max(end, number(pos) * number(size));
  };
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits) past(d.res, d.pos, d.size);
  for (const Partial& free : p.rest) past(free.res, free.pos, free.size);
  return end;
}

AxisMap* find(Placement& p, ir::AxisId axis) {
  for (AxisMap& map : p.axes)
    if (map.axis == axis) return &map;
  return nullptr;
}

}  // namespace

Result<Atom> relabelled(const Atom& atom, const std::vector<std::size_t>& order) {
  Atom other = atom;
  AxisMap *a = find(other.a, atom_k), *b = find(other.b, atom_k);
  COSMATI_CHECK(a && b, "an atom whose operands lack k");
  const auto sizes = [](const AxisMap& map) {
    std::vector<std::int64_t> list;
    for (const Digit& d : map.digits) list.push_back(number(d.size));
    return list;
  };
  if (sizes(*a) != sizes(*b)) return Refused{Reason::mismatched_atom, "k", "its operands cut k differently"};
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < std::max(sorted.size(), a->digits.size()); ++i)
    if (i >= sorted.size() || i >= a->digits.size() || sorted[i] != i)
      return Refused{Reason::mismatched_atom, "k", fmt::format("the new order is none of its {} digits", a->digits.size())};
  for (AxisMap* map : {a, b}) {
    const std::vector<Digit> digits = map->digits;
    for (std::size_t i = 0; i < order.size(); ++i) map->digits[i] = digits[order[i]];
  }
  return other;
}

Result<Contraction> contract(const Atom& atom, const std::vector<Tile>& tiles, ir::AxisId m, ir::AxisId n, ir::AxisId k,
                             ir::ReducerId sum) {
  const struct {
    ir::AxisId axis;
    const Placement &one, &other;
    const char* name;
  } shared[] = {{atom_m, atom.a, atom.c, "m"}, {atom_n, atom.b, atom.c, "n"}, {atom_k, atom.a, atom.b, "k"}};
  for (const auto& s : shared)
    if (cover(s.one, s.axis) != cover(s.other, s.axis))
      return Refused{Reason::mismatched_atom, s.name, fmt::format("{} and {}", cover(s.one, s.axis), cover(s.other, s.axis))};

  Contraction result{atom.a, atom.b, atom.c};
  Placement* operands[] = {&result.a, &result.b, &result.c};
  // Hardware and loops are the same for all three: an operand leaves free what another one uses.
  Counts next;
  for (int r = 0; r <= static_cast<int>(Res::step); ++r)
    for (const Placement* p : operands) {
      std::int64_t& end = next[static_cast<Res>(r)];
      end = std::max(end, end_of(*p, static_cast<Res>(r)));
    }
  std::int64_t registers_of[] = {end_of(result.a, Res::reg), end_of(result.b, Res::reg), end_of(result.c, Res::reg)};
  for (const Tile& tile : tiles) {
    if (tile.size == 1) continue;
    for (int o = 0; o < 3; ++o) {
      std::int64_t& pos = tile.res == Res::reg ? registers_of[o] : next[tile.res];
      if (AxisMap* map = find(*operands[o], tile.axis)) {
        map->digits.push_back(digit(tile.res, pos, tile.size));
        if (tile.res == Res::reg) pos *= tile.size;
      } else if (o == 2 && is_hardware(tile.res)) {
        operands[o]->rest.push_back(free_segment(tile.res, pos, tile.size, Held::part, sum));
      }
    }
    if (tile.res == Res::reg)
      result.atoms *= tile.size;
    else
      next[tile.res] *= tile.size;
    if (tile.res == Res::step) result.steps *= tile.size;
  }
  for (Placement* p : operands) {
    for (AxisMap& map : p->axes) map.axis = map.axis == atom_m ? m : map.axis == atom_n ? n : k;
    Result<Placement> whole = complete(*p, next);
    if (!whole) return whole.refused();
    *p = *whole;
  }
  return result;
}

Tails tails(const Contraction& c, ir::AxisId m, ir::AxisId n, ir::AxisId k, const Extents& extents, bool k_is_partial) {
  return {k_is_partial || cover(c.a, k) > extents[k.index], cover(c.c, m) > extents[m.index], cover(c.c, n) > extents[n.index]};
}

}  // namespace cosmati::place
