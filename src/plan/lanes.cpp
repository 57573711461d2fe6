// An instance axis on the lanes binds them for the whole phase. Of the other axes every one with lane digits may take them, each
// in the nests where it comes first.
// SPDX-License-Identifier: Apache-2.0
#include "plan/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace cosmati::plan {
namespace {

using ir::AxisId;
using ir::AxisSet;
using ir::StreamId;
using ir::ValueId;
using place::Digit;
using place::Reason;
using place::Refused;
using place::Res;
using place::Size;

template <class T>
bool has(const std::vector<T>& list, const T& x) {
  return std::find(list.begin(), list.end(), x) != list.end();
}

// Everything that the roots of a phase evaluate: values, the axes of loops, streams.
struct Reach {
  const ir::Program& p;
  const Mapping& m;
  std::set<ValueId> values;
  std::set<AxisId> axes;
  std::set<StreamId> streams;
  std::set<ValueId> kept;  // by earlier phases; what later ones keep is evaluated here

  void value(ValueId v, bool root = false) {
    if (!root && kept.count(v)) {
      add(p[v].axes);
      return;
    }
    if (!values.insert(v).second) return;
    add(p[v].axes);
    for (ValueId operand : ir::operands(p[v].node)) value(operand);
    if (const auto* reduce = std::get_if<ir::Reduce>(&p[v].node)) add(reduce->axes);
    if (const auto* part = std::get_if<ir::Part>(&p[v].node))
      if (const auto* s = std::get_if<StreamId>(&part->of)) stream(*s);
    if (const auto* replace = std::get_if<ir::Replace>(&p[v].node))
      for (const auto& [axis, index] : replace->binds) add({axis});
  }
  void stream(StreamId s) {
    if (!streams.insert(s).second) return;
    add({p[s].axis});
    for (const ir::Carry& carry : p[s].carries) {
      value(carry.init);
      value(carry.next);
    }
    for (const ir::Store& st : p.stores)
      if (st.stream == s) store(st);
  }
  void store(const ir::Store& s) {
    value(s.value);
    for (const ir::Index& index : s.index)
      for (ValueId part : index) value(part);
  }
  void add(const AxisSet& more) {
    for (AxisId axis : more) {
      if (p[axis].piece || !axes.insert(axis).second) continue;
      for (const auto& bound : {p[axis].lo, p[axis].hi})
        if (bound) value(*bound);
    }
  }
  void root(const Root& r) {
    if (const auto* s = std::get_if<StoreRoot>(&r)) store(p.stores[s->store]);
    if (const auto* k = std::get_if<KeepRoot>(&r)) value(k->value, true);
    if (const auto* k = std::get_if<PartRoot>(&r)) value(k->reduce, true);
    if (const auto* k = std::get_if<AccumulateRoot>(&r)) value(k->reduce, true);
    if (const auto* s = std::get_if<StreamRoot>(&r)) stream(s->stream);
    if (const auto* f = std::get_if<FillRoot>(&r)) value(f->value);
  }
};

Reach reach(const ir::Program& p, const Mapping& m, const Phase& phase) {
  Reach r{p, m, {}, {}, {}, {}};
  for (const Phase& earlier : m.phases) {
    if (&earlier == &phase) break;
    for (const Root& root : earlier.roots)
      if (const auto* k = std::get_if<KeepRoot>(&root)) r.kept.insert(k->value);
  }
  for (const Root& root : phase.roots) r.root(root);
  return r;
}

// How many instances along a lane axis a group runs where nothing says otherwise: enough that entering it costs little.
constexpr std::int64_t instance_chunk = 1024;
// The same where it runs several along another axis too: a block about as wide as high stays in few pages and lines.
constexpr std::int64_t block_chunk = 32;

// The split axes that a phase reduces part by part.
std::map<AxisId, int> split_here(const ir::Program& p, const Mapping& m, const Phase& phase) {
  std::map<AxisId, int> splits;
  for (const Root& root : phase.roots) {
    const auto* part = std::get_if<PartRoot>(&root);
    const auto* accumulate = std::get_if<AccumulateRoot>(&root);
    if (!part && !accumulate) continue;
    for (const auto& [axis, parts] : m.splits)
      if (ir::contains(std::get<ir::Reduce>(p[part ? part->reduce : accumulate->reduce].node).axes, axis)) splits[axis] = parts;
  }
  return splits;
}

// The placement of a phase whose instances sit on the grid, but for what `lanes` gives to each axis.
place::Placement place_all(const Phase& phase, const std::map<AxisId, int>& splits, const std::vector<AxisId>& all,
                           const Lanes& lanes, const std::set<AxisId>& on_lanes) {
  place::Placement placement;
  const auto digits = [&](AxisId axis) {
    std::vector<Digit> list;
    std::int64_t over = 1;
    const auto vector = lanes.vector.find(axis);
    const int side = on_lanes.count(axis) && vector != lanes.vector.end() ? vector->second : 1;
    if (side > 1) list.push_back({Res::reg, {}, {side, {}}});
    if (on_lanes.count(axis)) {
      const int subgroups = lanes.subgroup > 0 && lanes.lanes > lanes.subgroup ? lanes.lanes / lanes.subgroup : 1;
      list.push_back({Res::lane, {}, {lanes.lanes / subgroups, {}}});
      if (subgroups > 1) list.push_back({Res::subgroup, {}, {subgroups, {}}});
      over = static_cast<std::int64_t>(side) * lanes.lanes;
    }
    if (auto tile = lanes.tile.find(axis); tile != lanes.tile.end() && tile->second > 1) {
      list.push_back({Res::reg, {side, {}}, {tile->second, {}}});
      over *= tile->second;
    }
    return std::pair(list, over);
  };
  // The lane axes in their order, so that a nest of loops finds the preferred one first.
  std::vector<AxisId> order;
  for (AxisId axis : lanes.axes)
    if (on_lanes.count(axis)) order.push_back(axis);
  for (auto it = phase.instance_axes.rbegin(); it != phase.instance_axes.rend(); ++it)
    if (!has(order, *it)) order.push_back(*it);
  for (AxisId axis : all)
    if (!has(order, axis)) order.push_back(axis);

  for (AxisId axis : order) {
    auto [list, over] = digits(axis);
    if (const auto split = splits.find(axis); split != splits.end()) {
      list.push_back({Res::step, {}, {1, {{axis, over * split->second}}}});
      list.push_back({Res::grid, {}, {split->second, {}}});
      placement.axes.push_back({axis, std::move(list)});
      continue;
    }
    if (!has(phase.instance_axes, axis)) {
      if (lanes.resident.count(axis) && on_lanes.count(axis)) {
        placement.axes.push_back({axis, std::move(list)});
        continue;
      }
      list.push_back({Res::step, {}, {1, {{axis, over}}}});
      placement.axes.push_back({axis, std::move(list)});
      continue;
    }
    if (on_lanes.count(axis)) {
      const auto chunk = lanes.chunk.find(axis);
      const bool block = std::any_of(phase.instance_axes.begin(), phase.instance_axes.end(), [&](AxisId other) {
        const auto tile = lanes.tile.find(other);
        return other != axis && tile != lanes.tile.end() && tile->second > 1;
      });
      const std::int64_t usual = std::max<std::int64_t>(1, (block ? block_chunk : instance_chunk) / over);
      const std::int64_t steps = chunk != lanes.chunk.end() ? chunk->second : usual;
      list.push_back({Res::step, {}, {steps, {}}});
      over *= steps;
    }
    list.push_back({Res::grid, {}, {1, {{axis, over}}}});
    placement.axes.push_back({axis, std::move(list)});
  }
  // A group that follows another goes to the next part of a split axis, else goes on beside it along axes of which it has a point
  // or a few, and last along those on the lanes, of which it has had a stretch.
  Size pos;
  const auto rank = [&](AxisId axis) { return splits.count(axis) ? 0 : on_lanes.count(axis) ? 2 : 1; };
  for (const int now : {0, 1, 2})
    for (place::AxisMap& map : placement.axes) {
      Digit& digit = map.digits.back();
      if (digit.res != Res::grid || rank(map.axis) != now) continue;
      digit.pos = pos;
      pos = pos * digit.size;
    }
  return placement;
}

// The same questions where it is known what the phase reaches.
place::Verdict can_have_copies(const ir::Program& p, const Phase& phase, const Reach& r, AxisId axis) {
  if (!r.axes.count(axis))
    return Refused{Reason::not_in_any_phase, p[axis].name, fmt::format("phase {} has no {}", phase.name, p[axis].name),
                   p[axis].where};
  const auto steers = [&](AxisId other) { return other != axis && ir::contains(ir::range_axes(p, other), axis); };
  for (AxisId other : r.axes)
    if (steers(other))
      return Refused{Reason::steered_loop, p[axis].name,
                     fmt::format("the range of {} depends on {}", p[other].name, p[axis].name), p[axis].where};
  if (has(phase.instance_axes, axis) && !ir::launch_level(p, axis))
    return Refused{Reason::late_range, p[axis].name, fmt::format("that of {}", p[axis].name), p[axis].where};
  return place::Legal{};
}

// Lanes would add to one state at the same time.
place::Verdict can_have_lanes(const ir::Program& p, const Phase& phase, const Reach& r, AxisId axis) {
  if (accumulates(phase) && has(phase.instance_axes, axis))
    return Refused{Reason::one_at_a_time, p[axis].name, fmt::format("phase {} accumulates over {}", phase.name, p[axis].name),
                   p[axis].where};
  return can_have_copies(p, phase, r, axis);
}

// Whether an element is within the range is asked once for neighbours, so the range must be of whole ones, which is known where
// a launch starts.
place::Verdict can_have_vectors(const ir::Program& p, const Phase& phase, const Reach& r, AxisId axis) {
  if (place::Verdict lanes = can_have_lanes(p, phase, r, axis); !lanes) return lanes;
  if (!ir::launch_level(p, axis))
    return Refused{Reason::late_range, p[axis].name, fmt::format("that of {}", p[axis].name), p[axis].where};
  return place::Legal{};
}

place::Verdict can_be_resident(const ir::Program& p, const Phase& phase, const Reach& r, AxisId axis) {
  if (place::Verdict lanes = can_have_lanes(p, phase, r, axis); !lanes) return lanes;
  const auto no = [&](const std::string& why) {
    return Refused{Reason::not_whole, p[axis].name, fmt::format("phase {} {}", phase.name, why), p[axis].where};
  };
  if (has(phase.instance_axes, axis)) return no("has its points in different groups");
  if (p[axis].program) return no("reduces over all instances");
  if (!ir::launch_level(p, axis)) return no("finds its range later than at the launch");
  for (StreamId s : r.streams) {
    if (p[s].axis == axis) return no("streams along it");
    for (const ir::Carry& carry : p[s].carries)
      if (ir::contains(carry.axes, axis)) return no("carries a value over it");
  }
  for (ValueId v : r.values)
    if (const auto* reduce = std::get_if<ir::Reduce>(&p[v].node))
      if (reduce->order != ir::Order::tree && ir::contains(reduce->axes, axis)) return no("reduces it in order");
  return place::Legal{};
}

std::vector<AxisId> lane_axes(const ir::Program& p, const Phase& phase, const Reach& r, const std::vector<AxisId>& axes) {
  std::vector<AxisId> taken;
  for (AxisId axis : axes) {
    if (!can_have_lanes(p, phase, r, axis)) continue;
    if (has(phase.instance_axes, axis)) {
      if (taken.empty()) return {axis};
      continue;
    }
    taken.push_back(axis);
  }
  return taken;
}

}  // namespace

std::set<ValueId> values_of(const ir::Program& p, const Mapping& m, const Phase& phase) { return reach(p, m, phase).values; }

bool accumulates(const Phase& phase) {
  return std::any_of(phase.roots.begin(), phase.roots.end(),
                     [](const Root& root) { return std::holds_alternative<AccumulateRoot>(root); });
}

place::Verdict can_have_copies(const ir::Program& p, const Mapping& m, const Phase& phase, AxisId axis) {
  return can_have_copies(p, phase, reach(p, m, phase), axis);
}

place::Verdict can_have_lanes(const ir::Program& p, const Mapping& m, const Phase& phase, AxisId axis) {
  return can_have_lanes(p, phase, reach(p, m, phase), axis);
}

place::Verdict can_have_vectors(const ir::Program& p, const Mapping& m, const Phase& phase, AxisId axis) {
  return can_have_vectors(p, phase, reach(p, m, phase), axis);
}

place::Verdict can_be_resident(const ir::Program& p, const Mapping& m, const Phase& phase, AxisId axis) {
  return can_be_resident(p, phase, reach(p, m, phase), axis);
}

std::optional<std::int64_t> held_whole(const Phase& phase, AxisId axis) {
  const place::AxisMap* map = phase.placement.find(axis);
  if (!map || has(phase.instance_axes, axis)) return std::nullopt;
  std::int64_t size = 1;
  for (const Digit& d : map->digits) {
    if (d.res == Res::step || d.res == Res::grid) return std::nullopt;
    size *= d.size.factor;
  }
  return size;
}

std::vector<AxisId> lane_axes(const ir::Program& p, const Mapping& m, const Phase& phase, const std::vector<AxisId>& axes) {
  return lane_axes(p, phase, reach(p, m, phase), axes);
}

void put_on_lanes(const ir::Program& p, Mapping& m, const Lanes& lanes) {
  for (Phase& phase : m.phases) {
    const Reach r = reach(p, m, phase);
    std::set<AxisId> on_lanes;
    if (lanes.lanes > 1)
      for (AxisId axis : lane_axes(p, phase, r, lanes.axes)) on_lanes.insert(axis);
    // Arrays of a worker have no room for the copies of an instance.
    bool arrays = !r.streams.empty();
    for (ValueId v : r.values)
      if (auto home = m.homes.find(v); home != m.homes.end() && home->second == Home::worker) arrays = true;
    std::vector<AxisId> all(r.axes.begin(), r.axes.end());
    std::stable_sort(all.begin(), all.end(), [&](AxisId a, AxisId b) { return p[a].name < p[b].name; });
    Lanes own = lanes;
    // One axis is held by the lanes; others go round it.
    std::erase_if(own.resident, [&](AxisId axis) { return !on_lanes.count(axis) || !can_be_resident(p, phase, r, axis); });
    if (!own.resident.empty()) {
      const auto first =
          std::find_if(lanes.axes.begin(), lanes.axes.end(), [&](AxisId axis) { return own.resident.count(axis); });
      own.resident = {*first};
      if (const auto full = lanes.full.find(*first); full != lanes.full.end()) m.full[*first] = full->second;
      on_lanes = own.resident;
    }
    for (AxisId axis : all) {
      const bool one = arrays && has(phase.instance_axes, axis);
      if (one || !can_have_copies(p, phase, r, axis)) own.tile.erase(axis);
      if (one || !can_have_vectors(p, phase, r, axis)) own.vector.erase(axis);
    }
    phase.placement = place_all(phase, split_here(p, m, phase), all, own, on_lanes);
  }
}

}  // namespace cosmati::plan
