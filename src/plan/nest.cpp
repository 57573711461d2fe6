// One axis of a nest takes the lanes, and is the innermost loop of it; what the others have of lanes and registers is more steps.
// SPDX-License-Identifier: Apache-2.0
#include "plan/nest.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace cosmati::plan {
namespace {

using ir::AxisId;
using place::AxisMap;
using place::Digit;
using place::Placement;
using place::Res;

bool has(const std::vector<AxisId>& list, AxisId axis) { return std::find(list.begin(), list.end(), axis) != list.end(); }

}  // namespace

place::Counts workers_of(const Phase& phase, const place::Extents& extents) {
  place::Counts counts = place::hardware(1, 1, 1, 1);
  const Placement counted = place::at(phase.placement, extents);
  for (const AxisMap& map : counted.axes)
    for (const Res res : {Res::lane, Res::subgroup}) counts[res] = std::max(counts[res], place::constant_size(map, res));
  counts[Res::grid] = place::number(place::count(counted, Res::grid));
  return counts;
}

Placement nest(const Phase& phase, std::vector<AxisId> axes, bool in_order, const place::Extents& extents) {
  const Placement counted = place::at(phase.placement, extents);
  const auto on_lanes = [](const AxisMap& map) { return place::group_lanes(map) > 1; };
  std::vector<AxisId> all = phase.instance_axes;  // slow to fast
  // A reduction over an axis of the instances has a loop of its own over all of it.
  std::vector<AxisId> again;
  if (in_order) {
    std::copy_if(axes.begin(), axes.end(), std::back_inserter(again), [&](AxisId axis) { return has(all, axis); });
    std::erase_if(all, [&](AxisId axis) { return has(axes, axis); });
  }
  std::erase_if(axes, [&](AxisId axis) { return has(all, axis); });
  // Instances are bound first, and take the lanes of every nest inside them.
  const AxisMap* taker = nullptr;
  for (const AxisMap& map : counted.axes)
    if (has(all, map.axis) && on_lanes(map)) taker = &map;
  for (const AxisMap& map : counted.axes)
    if (!taker && !in_order && has(axes, map.axis) && on_lanes(map)) {
      taker = &map;
      const auto it = std::find(axes.begin(), axes.end(), map.axis);
      std::rotate(it, it + 1, axes.end());
    }
  all.insert(all.end(), axes.begin(), axes.end());

  Placement p;
  std::map<Res, std::int64_t> end{{Res::reg, 1}, {Res::step, 1}};
  for (auto axis = all.rbegin(); axis != all.rend(); ++axis) {
    const AxisMap* map = has(again, *axis) ? nullptr : counted.find(*axis);
    AxisMap own = map ? *map : AxisMap{*axis, {place::digit(Res::step, 1, extents[axis->index])}};
    const bool plain = (on_lanes(own) && map != taker) || (in_order && has(axes, *axis));
    for (Digit& d : own.digits) {
      if (plain && (d.res == Res::lane || d.res == Res::subgroup || d.res == Res::reg)) d.res = Res::step;
      if (d.res != Res::reg && d.res != Res::step) continue;
      d.pos = {end[d.res], {}};
      end[d.res] *= place::number(d.size);
    }
    p.axes.push_back(std::move(own));
  }
  return p;
}

}  // namespace cosmati::plan
