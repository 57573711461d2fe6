// Placements by enumeration: every worker, register and step, and what each holds, from the definition of a digit alone; and
// random placements to hold the rules against. The rules of src/place are never asked here.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "place/layout.h"

namespace cosmati::place::test {

using Coordinates = std::vector<std::int64_t>;  // by axis

// The coordinates that a point holds, or nothing where one is outside its extent.
inline std::optional<Coordinates> held(const Placement& p, const Counts& point, const Extents& extents) {
  Coordinates at(extents.size(), 0);
  for (const AxisMap& map : p.axes) {
    std::int64_t weight = 1;
    for (const Digit& d : map.digits) {
      at[map.axis.index] += point[d.res] / d.pos.factor % d.size.factor * weight;
      weight *= d.size.factor;
    }
    if (at[map.axis.index] >= extents[map.axis.index]) return std::nullopt;
  }
  return at;
}
// Whether the point is index 0 of every segment of which only the first holds anything.
inline bool is_first(const Placement& p, const Counts& point) {
  for (const Partial& free : p.rest)
    if (free.held == Held::first && point[free.res] / free.pos.factor % free.size.factor != 0) return false;
  return true;
}

inline std::int64_t size_of(const Placement& p, Res res) {
  std::int64_t n = 1;
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits)
      if (d.res == res) n *= d.size.factor;
  return n;
}

// How many indices of a resource the placement tells apart, holes included.
inline std::int64_t end_of(const Placement& p, Res res) {
  std::int64_t end = 1;
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits)
      if (d.res == res) end = std::max(end, d.pos.factor * d.size.factor);
  return end;
}

inline void each_worker(const Counts& counts, const std::function<void(Counts)>& visit) {
  Counts at;
  for (at[Res::grid] = 0; at[Res::grid] < counts[Res::grid]; ++at[Res::grid])
    for (at[Res::cluster] = 0; at[Res::cluster] < counts[Res::cluster]; ++at[Res::cluster])
      for (at[Res::subgroup] = 0; at[Res::subgroup] < counts[Res::subgroup]; ++at[Res::subgroup])
        for (at[Res::lane] = 0; at[Res::lane] < counts[Res::lane]; ++at[Res::lane]) visit(at);
}
// What is inside a worker: its registers, at each of its steps.
inline void each_slot(const Placement& p, const Counts& worker, const std::function<void(Counts)>& visit) {
  Counts at = worker;
  for (at[Res::step] = 0; at[Res::step] < end_of(p, Res::step); ++at[Res::step])
    for (at[Res::reg] = 0; at[Res::reg] < end_of(p, Res::reg); ++at[Res::reg]) visit(at);
}
inline std::set<Coordinates> held_by(const Placement& p, const Counts& worker, const Extents& extents) {
  std::set<Coordinates> elements;
  if (!is_first(p, worker)) return elements;
  each_slot(p, worker, [&](const Counts& slot) {
    if (const auto at = held(p, slot, extents)) elements.insert(*at);
  });
  return elements;
}

inline std::int64_t pick(std::mt19937& random, std::int64_t lo, std::int64_t hi) {
  return lo + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(hi - lo + 1));
}
inline std::vector<std::int64_t> factors(std::mt19937& random, std::int64_t n) {
  std::vector<std::int64_t> list;
  for (std::int64_t f = 2; n > 1; ++f)
    while (n % f == 0) {
      if (!list.empty() && random() % 2)
        list.back() *= f;
      else
        list.push_back(f);
      n /= f;
    }
  std::shuffle(list.begin(), list.end(), random);
  return list;
}

struct Shape {
  std::size_t axes = 2;
  Counts counts = hardware(2, 1, 2, 6);
  std::vector<std::int64_t> registers = {1, 2, 3, 4, 6}, steps = {1, 1, 2};
  int free_of = 4;  // one segment in so many is free
};
// A complete placement: every factor of every count goes to an axis or is free, in any order of digits.
inline Placement random_placement(std::mt19937& random, const Shape& shape) {
  Placement p;
  for (std::size_t a = 0; a < shape.axes; ++a) p.axes.push_back({ir::AxisId{static_cast<std::uint32_t>(a)}, {}});
  const auto put = [&](Res res, std::int64_t count, bool may_be_free) {
    std::int64_t pos = 1;
    for (const std::int64_t size : factors(random, count)) {
      if (may_be_free && random() % static_cast<unsigned>(shape.free_of) == 0)
        p.rest.push_back(free_segment(res, pos, size));
      else
        p.axes[random() % shape.axes].digits.push_back(digit(res, pos, size));
      pos *= size;
    }
  };
  for (const Res res : {Res::grid, Res::cluster, Res::subgroup, Res::lane}) put(res, shape.counts[res], true);
  put(Res::reg, shape.registers[random() % shape.registers.size()], false);
  put(Res::step, shape.steps[random() % shape.steps.size()], false);
  for (AxisMap& map : p.axes) std::shuffle(map.digits.begin(), map.digits.end(), random);
  return normal_form(p);
}
inline Extents covered(const Placement& p) {
  Extents extents(p.axes.size(), 1);
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits) extents[map.axis.index] *= d.size.factor;
  return extents;
}
// Extents that the placement covers, with a tail now and then.
inline Extents random_extents(std::mt19937& random, const Placement& p) {
  Extents extents = covered(p);
  for (std::int64_t& n : extents)
    if (random() % 2) n = pick(random, std::max<std::int64_t>(1, n / 2), n);
  return extents;
}
// Another placement of the same elements: what its hardware does not cover, registers do.
inline Placement random_other(std::mt19937& random, const Shape& shape, const Extents& extents) {
  Shape other = shape;
  other.registers = {1};
  Placement p = random_placement(random, other);
  std::int64_t pos = 1;
  for (AxisMap& map : p.axes) {
    const std::int64_t have = covered(p)[map.axis.index], missing = (extents[map.axis.index] + have - 1) / have;
    const auto at = map.digits.begin() + static_cast<std::ptrdiff_t>(random() % (map.digits.size() + 1));
    if (missing > 1) map.digits.insert(at, digit(Res::reg, pos, missing));
    pos *= missing;
  }
  return normal_form(p);
}

}  // namespace cosmati::place::test
