// The rule: lanes go to the axis along which most elements that are touched are neighbours. Two vectors a step hide latencies in
// bodies with transcendental functions, four in others.
// SPDX-License-Identifier: Apache-2.0
#include "plan/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace cosmati::plan {
namespace {

constexpr int most_held = 64;  // elements that a lane has of an axis

using ir::AxisId;
using ir::ValueId;
using place::Legal;
using place::Reason;
using place::Refused;
using place::Result;
using place::Verdict;

// How many more accesses touch neighbours along an axis than elements far apart. Stores count double: what they touch is read and
// written.
std::vector<int> neighbours(const ir::Program& p, const std::set<ValueId>& live, const Facts& facts) {
  std::vector<int> score(p.axes.size(), 0);
  const auto access = [&](ir::TensorId tensor, const std::vector<ir::Index>& index, int weight) {
    // An access over more axes touches more elements: an axis counts like 16 of them.
    ir::AxisSet over;
    for (const ir::Index& i : index)
      for (ValueId part : i) over = ir::set_union(over, p[part].axes);
    weight <<= 4 * std::min<std::size_t>(over.size(), 5);
    for (std::uint32_t a = 0; a < p.axes.size(); ++a) {
      int touched = 0;
      for (std::size_t d = 0; d < index.size(); ++d)
        for (std::size_t f = 0; f < index[d].size(); ++f) {
          if (!ir::contains(p[index[d][f]].axes, AxisId{a})) continue;
          const bool fastest = f + 1 == index[d].size() && facts.unit_stride[tensor.index][d];
          const bool itself = std::holds_alternative<ir::Coord>(p[index[d][f]].node);
          touched += fastest && (itself || p[index[d][f]].axes.size() == 1) ? weight : -2 * weight;
        }
      score[a] += std::clamp(touched, -weight, weight);
    }
  };
  for (ValueId v : live)
    if (const auto* load = std::get_if<ir::Load>(&p[v].node)) access(load->tensor, load->index, 1);
  for (const ir::Store& store : p.stores) access(store.tensor, store.index, 2);
  return score;
}

bool has_expanded(const ir::Program& p, const std::set<ValueId>& live) {
  return std::any_of(live.begin(), live.end(), [&](ValueId v) {
    const auto* e = std::get_if<ir::Elementwise>(&p[v].node);
    return e && e->op != ops::Op::cast && ops::info(e->op).kind == ops::Kind::expanded;
  });
}

Result<AxisId> axis_named(const ir::Program& p, const std::string& knob, const std::string& name) {
  std::string known;
  for (std::uint32_t a = 0; a < p.axes.size(); ++a) {
    if (p.axes[a].piece) continue;
    if (p.axes[a].name == name) return AxisId{a};
    known += (known.empty() ? "" : ", ") + p.axes[a].name;
  }
  return Refused{Reason::names_nothing, knob, fmt::format("the program has no axis {}, its axes are {}", name, known)};
}

// In at least one phase.
template <class InPhase>
Verdict in_some_phase(const InPhase& can, const ir::Program& p, const Mapping& m, AxisId axis, const std::string& knob) {
  Verdict last = Legal{};
  for (const Phase& phase : m.phases) {
    last = can(p, m, phase, axis);
    if (last) return last;
  }
  if (last) return last;
  Refused refused = last.refused();
  refused.where = fmt::format("{} names {}", knob, p[axis].name);
  return refused;
}

// Whether every axis of a list gets lanes in at least one phase.
Verdict all_have_room(const ir::Program& p, const Mapping& m, const std::vector<AxisId>& axes) {
  for (AxisId axis : axes) {
    const Phase* full = nullptr;
    AxisId taker = axis;
    for (const Phase& phase : m.phases) {
      const std::vector<AxisId> taken = lane_axes(p, m, phase, axes);
      if (std::find(taken.begin(), taken.end(), axis) != taken.end()) {
        full = nullptr;
        break;
      }
      if (!full && !taken.empty() && can_have_lanes(p, m, phase, axis)) full = &phase, taker = taken.front();
    }
    if (!full) continue;
    const auto& instances = full->instance_axes;
    const AxisId whole = std::find(instances.begin(), instances.end(), axis) != instances.end() ? axis : taker;
    return Refused{
        Reason::lanes_taken, fmt::format("lane_axes names {}", p[axis].name),
        fmt::format("{} comes first in phase {}, and {} tells instances apart there", p[taker].name, full->name, p[whole].name),
        p[axis].where};
  }
  return Legal{};
}

// The axes of a list of names. Refused: whatever one of them is.
Result<std::vector<AxisId>> axes_named(const ir::Program& p, const Mapping& m, const std::string& list) {
  std::vector<AxisId> axes;
  for (std::size_t at = 0; list != "none" && at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const Result<AxisId> axis = axis_named(p, "lane_axes", list.substr(at, comma - at));
    if (!axis) return axis.refused();
    if (const Verdict lanes = in_some_phase(can_have_lanes, p, m, *axis, "lane_axes"); !lanes) return lanes.refused();
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end())
      return Refused{Reason::named_twice, "lane_axes", fmt::format("it names {} twice", p[*axis].name), p[*axis].where};
    axes.push_back(*axis);
    at = comma + 1;
  }
  if (const Verdict room = all_have_room(p, m, axes); !room) return room.refused();
  return axes;
}

}  // namespace

Result<Lanes> choose_lanes(const ir::Program& p, const Mapping& m, const Facts& facts, const Target& target, const Knobs& knobs) {
  std::set<ValueId> live;
  for (const Phase& phase : m.phases) live.merge(values_of(p, m, phase));
  Lanes lanes;
  lanes.lanes = target.lanes;
  lanes.subgroup = target.subgroup;
  if (auto knob = knobs.find("lanes"); knob != knobs.end()) lanes.lanes = std::stoi(knob->second);
  if (lanes.lanes > target.most_workers_of_group)
    return Refused{Reason::group_too_large, "lanes",
                   fmt::format("{} lanes, the limit is {}", lanes.lanes, target.most_workers_of_group)};
  if (target.subgroup > 0 && lanes.lanes > target.subgroup && lanes.lanes % target.subgroup != 0)
    return Refused{Reason::partial_subgroup, "lanes", fmt::format("{} lanes, {} a subgroup", lanes.lanes, target.subgroup)};
  if (auto knob = knobs.find("lane_axes"); knob != knobs.end()) {
    const Result<std::vector<AxisId>> axes = axes_named(p, m, knob->second);
    if (!axes) return axes.refused();
    lanes.axes = *axes;
  } else {
    const std::vector<int> score = neighbours(p, live, facts);
    for (std::uint32_t a = 0; a < p.axes.size(); ++a)
      if (score[a] > 0 && !p.axes[a].piece) lanes.axes.push_back(AxisId{a});
    std::stable_sort(lanes.axes.begin(), lanes.axes.end(), [&](AxisId a, AxisId b) {
      // Among equals by name, so that a program is planned alike after it is printed and read back.
      return std::tuple(-score[a.index], p[a].program, p[a].name) < std::tuple(-score[b.index], p[b].program, p[b].name);
    });
    if (lanes.axes.size() > 3) lanes.axes.resize(3);
  }
  if (auto knob = knobs.find("resident"); knob != knobs.end()) {
    for (std::size_t at = 0; knob->second != "none" && at <= knob->second.size();) {
      const std::size_t comma = std::min(knob->second.find(',', at), knob->second.size());
      const Result<AxisId> axis = axis_named(p, "resident", knob->second.substr(at, comma - at));
      if (!axis) return axis.refused();
      if (const Verdict whole = in_some_phase(can_be_resident, p, m, *axis, "resident"); !whole) return whole.refused();
      lanes.resident.insert(*axis);
      at = comma + 1;
    }
  }
  const int tile = has_expanded(p, live) ? 2 : 4;
  if (lanes.lanes > 1 && !lanes.axes.empty() && !knobs.contains("lane_axes")) lanes.tile[lanes.axes.front()] = tile;
  for (const auto& [name, value] : knobs) {
    const bool tile = name.starts_with("tile."), chunk = name.starts_with("chunk."), full = name.starts_with("full."),
               vector = name.starts_with("vector.");
    if (!tile && !chunk && !full && !vector && !name.starts_with("split.") && !name.starts_with("accumulate.")) continue;
    const Result<AxisId> axis = axis_named(p, name, name.substr(name.find('.') + 1));
    if (!axis) return axis.refused();
    if (tile && value != "1")
      if (const Verdict copies = in_some_phase(can_have_copies, p, m, *axis, name); !copies) return copies.refused();
    if (vector && value != "1")
      if (const Verdict vectors = in_some_phase(can_have_vectors, p, m, *axis, name); !vectors) return vectors.refused();
    if (tile) lanes.tile[*axis] = std::stoi(value);
    if (vector) lanes.vector[*axis] = std::stoi(value);
    if (chunk) lanes.chunk[*axis] = std::stoi(value);
    if (!full) continue;
    if (!lanes.resident.count(*axis)) return Refused{Reason::not_whole, name, p[*axis].name + " is not resident", p[*axis].where};
    lanes.full[*axis] = std::stoi(value);
  }
  const auto of = [](const std::map<AxisId, int>& counts, AxisId axis) { return counts.contains(axis) ? counts.at(axis) : 1; };
  for (const auto& [axis, full] : lanes.full) {
    const int side = of(lanes.vector, axis), copies = side * of(lanes.tile, axis);
    if (full > copies || full % side != 0)
      return Refused{Reason::outside_values, "full." + p[axis].name,
                     fmt::format("{} of {} copies{}", full, copies, side > 1 ? fmt::format(", {} side by side", side) : ""),
                     p[axis].where};
  }
  for (const auto& [axis, side] : lanes.vector)
    if (const int copies = side * of(lanes.tile, axis); copies > most_held)
      return Refused{Reason::too_many_held, "vector." + p[axis].name, fmt::format("{} of {}", copies, p[axis].name),
                     p[axis].where};
  const auto several = [&] {
    return std::count_if(lanes.tile.begin(), lanes.tile.end(), [](const auto& t) { return t.second > 1; });
  };
  if (several() > 3 && !lanes.axes.empty() && !knobs.contains("tile." + p[lanes.axes.front()].name))
    lanes.tile.erase(lanes.axes.front());
  if (several() > 3) return Refused{Reason::too_many_copies, "tile", fmt::format("{} axes", several())};
  return lanes;
}

Verdict all_used(const ir::Program& p, const Mapping& m, const Knobs& knobs) {
  const auto somewhere = [&](AxisId axis, const auto& holds) {
    return std::any_of(m.phases.begin(), m.phases.end(), [&](const Phase& phase) {
      const place::AxisMap* map = phase.placement.find(axis);
      return map && holds(*map);
    });
  };
  const auto has_digit = [](const place::AxisMap& map, place::Res res) {
    return std::any_of(map.digits.begin(), map.digits.end(), [&](const place::Digit& d) { return d.res == res; });
  };
  for (const auto& [name, value] : knobs) {
    if (name == "resident" && value != "none" && std::none_of(m.phases.begin(), m.phases.end(), [&](const Phase& phase) {
          return std::any_of(phase.placement.axes.begin(), phase.placement.axes.end(),
                             [&](const place::AxisMap& map) { return held_whole(phase, map.axis).has_value(); });
        }))
      return Refused{Reason::not_on_lanes, name, value};
    const bool tile = name.starts_with("tile."), chunk = name.starts_with("chunk."), vector = name.starts_with("vector.");
    if ((!tile && !chunk && !vector) || value == "1") continue;
    const Result<AxisId> axis = axis_named(p, name, name.substr(name.find('.') + 1));
    if (!axis) return axis.refused();
    if (tile && !somewhere(*axis, [&](const auto& map) { return has_digit(map, place::Res::reg); }))
      return Refused{Reason::one_at_a_time, name, fmt::format("{} tells them apart", p[*axis].name), p[*axis].where};
    if (vector && !somewhere(*axis, [&](const auto& map) { return place::side_by_side(map) > 1; }))
      return Refused{Reason::not_on_lanes, name, p[*axis].name, p[*axis].where};
    if (chunk &&
        !somewhere(*axis, [&](const auto& map) { return has_digit(map, place::Res::lane) && has_digit(map, place::Res::grid); }))
      return Refused{Reason::not_on_lanes, name, p[*axis].name, p[*axis].where};
  }
  return Legal{};
}

}  // namespace cosmati::plan
