// What a collective costs is counted from the digits that it does not touch: its results are the registers of a worker and the
// lanes that axes use.
// SPDX-License-Identifier: Apache-2.0
#include "place/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "support/check.h"

namespace cosmati::place {
namespace {

bool is_power(std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t size_of(const Placement& p, Res res) { return number(count(p, res)); }

// Numbers the digits of registers and steps without the holes that dropped ones left.
void recount(Placement& p) {
  for (const Res res : {Res::reg, Res::step}) {
    std::vector<Digit*> digits;
    for (AxisMap& map : p.axes)
      for (Digit& d : map.digits)
        if (d.res == res && number(d.size) != 1) digits.push_back(&d);
    std::sort(digits.begin(), digits.end(), [](const Digit* a, const Digit* b) { return number(a->pos) < number(b->pos); });
    std::int64_t pos = 1;
    for (Digit* d : digits) {
      d->pos = {pos, {}};
      pos *= number(d->size);
    }
  }
}

// Whether lanes of the segment differ by an xor: its index is bits of the lane.
bool are_bits(const Segment& s) { return is_power(s.pos) && is_power(s.size); }

std::vector<std::int64_t> masks_of(const Segment& s) {
  std::vector<std::int64_t> masks;
  for (std::int64_t k = 1; k < s.size; k *= 2) masks.push_back(s.pos * k);
  return masks;
}

// The lane offsets of the combinations of segments, the first segment fastest.
std::vector<std::int64_t> distances(const std::vector<Segment>& segments) {
  std::vector<std::int64_t> list{0};
  for (const Segment& s : segments) {
    std::vector<std::int64_t> longer;
    for (std::int64_t k = 0; k < s.size; ++k)
      for (const std::int64_t at : list) longer.push_back(at + k * s.pos);
    list = std::move(longer);
  }
  return list;
}

// The parts of a level become whole.
void leave(Placement& p, Res level, ir::ReducerId reducer, Held held) {
  for (Partial& free : p.rest)
    if (free.res == level && free.held == Held::part && free.reducer == reducer) {
      free.held = held;
      free.reducer = {};
    }
  p = normal_form(std::move(p));
}

Exchange across_lanes(const Placement& p, Exchange e) {
  const std::int64_t registers = size_of(p, Res::reg);
  if (std::all_of(e.segments.begin(), e.segments.end(), are_bits)) {
    e.way = Way::butterfly;
    for (const Segment& s : e.segments)
      for (const std::int64_t mask : masks_of(s)) e.masks.push_back(mask);
    e.shuffles = registers * static_cast<std::int64_t>(e.masks.size());
  } else {
    e.way = Way::gather;
    e.ordered = false;
    e.distance = distances(e.segments);
    e.shuffles = registers * static_cast<std::int64_t>(e.distance.size());
  }
  return e;
}

// Every subgroup reads all parts: as many lanes as hold the result alike read different ones, and merge them by a butterfly.
Exchange across_subgroups(const Placement& p, Exchange e, std::int64_t parts) {
  e.way = Way::partials;
  e.fences = 1;
  std::int64_t readers = 1;
  for (const Partial& free : p.rest) {
    const Segment s{free.res, number(free.pos), number(free.size)};
    if (s.res != Res::lane || free.held != Held::same || !are_bits(s)) continue;
    for (const std::int64_t mask : masks_of(s)) {
      if (readers >= parts) break;
      e.masks.push_back(mask);
      readers *= 2;
    }
  }
  e.serial = ceil_div(parts, readers);
  e.shuffles = size_of(p, Res::reg) * static_cast<std::int64_t>(e.masks.size());
  return e;
}

}  // namespace

Result<Reduced> reduce(const Placement& p, const ir::AxisSet& axes, ir::ReducerId reducer) {
  Reduced r;
  for (const ir::AxisId axis : axes)
    if (!p.find(axis)) return Refused{Reason::no_such_axis, fmt::format("axis {}", axis.index), ""};
  for (const Partial& free : p.rest) {
    if (free.held == Held::part && free.reducer != reducer)
      return Refused{Reason::other_reducer, std::string(name(free.res)), ""};
    if (free.held == Held::first) return Refused{Reason::not_first, std::string(name(free.res)), ""};
  }
  r.result.rest = p.rest;
  for (const AxisMap& map : p.axes) {
    if (!ir::contains(axes, map.axis)) {
      r.result.axes.push_back(map);
      continue;
    }
    for (const Digit& d : map.digits) {
      if (d.res == Res::reg) r.fold *= number(d.size);
      if (d.res == Res::step) r.steps *= number(d.size);
      if (is_hardware(d.res)) r.result.rest.push_back({d.res, d.pos, d.size, Held::part, reducer});
    }
  }
  recount(r.result);
  r.result = normal_form(std::move(r.result));
  return r;
}

Result<Settled> settle(const Placement& p, const ir::Program& program, ir::ReducerId reducer, Held to, Level farthest) {
  COSMATI_CHECK(to != Held::part, "a settle leaves no parts");
  Settled settled{normal_form(p), {}};
  for (const Res level : {Res::lane, Res::subgroup, Res::cluster, Res::grid}) {
    if (level_of(level) > farthest) break;
    Placement& now = settled.result;
    Exchange e{level, {}, Way::butterfly};
    std::int64_t parts = 1;
    for (const Partial& free : now.rest)
      if (free.res == level && free.held == Held::part && free.reducer == reducer) {
        e.segments.push_back({level, number(free.pos), number(free.size)});
        parts *= number(free.size);
      }
    if (e.segments.empty()) continue;
    e.values = static_cast<std::int64_t>(program[reducer].state_types.size());
    e.results = size_of(now, Res::lane) * size_of(now, Res::reg);
    if (level != Res::lane) e.slots = parts * e.results * size_of(now, Res::subgroup);
    e.ordered = !program[reducer].commutative;
    switch (level) {
      case Res::lane:
        e = across_lanes(now, std::move(e));
        break;
      case Res::subgroup:
        e = across_subgroups(now, std::move(e), parts);
        break;
      case Res::cluster:
        e.way = Way::messages;
        e.serial = parts;
        break;
      default:
        e.way = to == Held::first ? Way::ticket : Way::phase;
        e.serial = parts;
        e.slots *= size_of(now, Res::cluster) * size_of(now, Res::grid);
        e.leaves = to;
    }
    leave(now, level, reducer, e.leaves);
    settled.exchanges.push_back(std::move(e));
  }
  if (settled.exchanges.empty()) return Refused{Reason::not_a_part, program[reducer].name, ""};
  return settled;
}

Result<Settled> scatter(const Placement& p, const ir::Program& program, ir::ReducerId reducer, ir::AxisId axis) {
  Settled settled{normal_form(p), {}};
  Placement& now = settled.result;
  const auto parts = std::find_if(now.rest.begin(), now.rest.end(), [&](const Partial& free) {
    return free.res == Res::lane && free.held == Held::part && free.reducer == reducer;
  });
  if (parts == now.rest.end()) return Refused{Reason::not_a_part, program[reducer].name, ""};
  const auto map = std::find_if(now.axes.begin(), now.axes.end(), [&](const AxisMap& m) { return m.axis == axis; });
  if (map == now.axes.end()) return Refused{Reason::no_such_axis, fmt::format("axis {}", axis.index), ""};
  const auto kept = std::find_if(map->digits.begin(), map->digits.end(), [](const Digit& d) { return d.res == Res::reg; });
  if (kept == map->digits.end()) return Refused{Reason::no_such_axis, fmt::format("registers of axis {}", axis.index), ""};
  const std::int64_t lanes = number(parts->size), registers = number(kept->size), pos = number(parts->pos);
  if (!are_bits({Res::lane, pos, lanes}) || !is_power(registers))
    return Refused{Reason::indivisible, fmt::format("axis {}", axis.index),
                   fmt::format("{} lanes, {} registers", lanes, registers)};

  const std::int64_t spread = std::min(lanes, registers), others = size_of(now, Res::reg) / registers;
  Exchange e{Res::lane, {{Res::lane, pos, lanes}}, Way::scatter};
  e.values = static_cast<std::int64_t>(program[reducer].state_types.size());
  e.results = others * registers;
  e.ordered = !program[reducer].commutative;
  std::int64_t left = registers;
  for (std::int64_t k = spread / 2; k >= 1; k /= 2) {  // the higher half of what is left goes to the lane whose bit is set
    e.masks.push_back(pos * k);
    left /= 2;
    e.shuffles += left * others;
  }
  for (std::int64_t k = spread; k < lanes; k *= 2) {
    e.masks.push_back(pos * k);
    e.shuffles += left * others;
  }
  kept->size = {left, {}};
  map->digits.insert(kept + 1, digit(Res::lane, pos, spread));
  parts->held = Held::same;
  parts->reducer = {};
  parts->pos = {pos * spread, {}};
  parts->size = {lanes / spread, {}};
  recount(now);
  now = normal_form(std::move(now));
  settled.exchanges.push_back(std::move(e));
  return settled;
}

std::vector<Exchange> together(const std::vector<Settled>& settles) {
  std::vector<Exchange> merged;
  for (const Settled& s : settles)
    for (const Exchange& e : s.exchanges) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Exchange& m) {
        return m.level == e.level && m.segments == e.segments && m.way == e.way && m.results == e.results && m.masks == e.masks &&
               m.ordered == e.ordered && m.leaves == e.leaves;
      });
      if (same == merged.end())
        merged.push_back(e);
      else
        same->values += e.values;
    }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Exchange& a, const Exchange& b) { return level_of(a.level) < level_of(b.level); });
  return merged;
}

}  // namespace cosmati::place
