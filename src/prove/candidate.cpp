// A fence is reached by all workers of a group or by none, and what is written before it is read before it is written again.
// SPDX-License-Identifier: Apache-2.0
#include "prove/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "prove/accesses.h"

namespace cosmati::prove {
namespace {

using place::Digit;
using place::number;
using place::Placement;
using place::Reason;
using place::Refused;
using place::Res;

// Instances along the axis that one group holds.
std::int64_t in_group(const Placement& instances, ir::AxisId axis) {
  std::int64_t n = 1;
  if (const place::AxisMap* map = instances.find(axis))
    for (const Digit& d : map->digits)
      if (d.res == Res::lane || d.res == Res::subgroup || d.res == Res::cluster) n *= number(d.size);
  return n;
}

std::int64_t covered(const Placement& instances, ir::AxisId axis) {
  std::int64_t n = 1;
  for (const Digit& d : instances.find(axis)->digits) n *= number(d.size);
  return n;
}

// Workers wait for each other at these; lanes of a subgroup meet anyway, and groups do not wait.
bool waits(const place::Exchange& e) { return e.level == Res::subgroup || e.level == Res::cluster; }

// The tensor that a replayed instance might read while another worker stores it.
std::optional<Refused> read_and_stored(const ir::Program& program, const Packing& packing) {
  for (const auto& [in, out] : packing.aliases)
    return Refused{Reason::replay_alias, program[in].name, fmt::format("{} is the same memory", program[out].name)};
  for (const ir::Value& value : program.values)
    if (const auto* load = std::get_if<ir::Load>(&value.node))
      for (const ir::Store& store : program.stores)
        if (store.tensor == load->tensor)
          return Refused{Reason::replay_alias, program[load->tensor].name, "it is read and stored"};
  return std::nullopt;
}

std::optional<Refused> loop_refusal(const ir::Program& program, const Packing& packing, const ExchangeSite& site) {
  for (const ir::AxisId loop : site.loops)
    for (const ir::AxisId axis : ir::range_axes(program, loop))
      if (const std::int64_t n = in_group(packing.instances, axis); n > 1)
        return Refused{Reason::shared_trip, program[loop].name,
                       fmt::format("its range depends on {}, of which a group holds {}", program[axis].name, n)};
  const bool repeats = std::any_of(site.loops.begin(), site.loops.end(), [&](ir::AxisId loop) {
    return !ir::range_axes(program, loop).empty() || packing.extents[loop.index] > 1;
  });
  if (repeats && site.exchange.way == place::Way::partials && !site.by_parity && site.other_fences == 0)
    return Refused{Reason::single_partials, program[site.loops.back()].name, "one fence a turn"};
  return std::nullopt;
}

}  // namespace

place::Verdict reorderable(ir::Order order, const Placement& operand, const std::vector<ir::AxisId>& axes) {
  if (order == ir::Order::tree) return place::Legal{};
  bool stepped = false;
  std::int64_t last_step = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const place::AxisMap* map = operand.find(*axis);
    if (!map) return Refused{Reason::no_such_axis, fmt::format("axis {}", axis->index), ""};
    for (const Digit& d : map->digits) {
      const auto refuse = [&](const char* why) {
        return Refused{Reason::ordered, fmt::format("axis {}", axis->index),
                       fmt::format("({}, {}, {}) {}", name(d.res), number(d.pos), number(d.size), why)};
      };
      if (number(d.size) == 1) continue;
      if (place::is_hardware(d.res)) return refuse("spreads it over workers");
      if (d.res == Res::reg && stepped) return refuse("is slower than a step");
      if (d.res != Res::step) continue;
      if (number(d.pos) < last_step) return refuse("counts before a faster step");
      stepped = true;
      last_step = number(d.pos);
    }
  }
  return place::Legal{};
}

place::Result<std::vector<place::Segment>> store_owner(const ir::Program& program, const ir::Store& store, const Placement& value,
                                                       const place::Counts& counts, const place::Extents& extents) {
  for (const ir::AxisId axis : instance_axes(program, store))
    if (!value.find(axis)) return Refused{Reason::no_such_axis, program[axis].name, "all its workers would store"};
  place::Result<place::Ownership> owners = place::ownership(value, counts, extents);
  if (!owners) return owners.refused();
  std::vector<place::Segment> first;
  for (const place::Partial& free : owners->free) {
    if (free.held == place::Held::part)
      return Refused{Reason::unsettled, program[store.tensor].name, fmt::format("parts of {}", program[free.reducer].name)};
    first.push_back({free.res, number(free.pos), number(free.size)});
  }
  return first;
}

place::Verdict offsets_fit(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                           std::int64_t element_bytes, int bits) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return place::Legal{};
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() >> (64 - bits);  // the largest that fits
  std::int64_t up = 0, down = 0;                                                       // bytes from the first element, either way
  for (std::size_t d = 0; d < extents.size(); ++d) {
    std::int64_t bytes = 0;
    std::int64_t& side = strides[d] < 0 ? down : up;
    if (__builtin_mul_overflow(extents[d] - 1, strides[d], &bytes) || __builtin_mul_overflow(bytes, element_bytes, &bytes) ||
        bytes < -limit || __builtin_add_overflow(side, std::abs(bytes), &side) || side > limit)
      return Refused{Reason::offset_overflow, fmt::format("dimension {}", d),
                     fmt::format("{} elements of stride {} and {} bytes", extents[d], strides[d], element_bytes)};
  }
  return place::Legal{};
}

place::Result<Admitted> admit(const ir::Program& program, const Packing& packing, const GroupLimits& limits) {
  const std::int64_t lanes = packing.counts[Res::lane], subgroups = packing.counts[Res::subgroup];
  if (lanes != limits.lanes) return Refused{Reason::partial_subgroup, "", fmt::format("{} lanes of {}", lanes, limits.lanes)};
  if (subgroups * lanes > limits.workers)
    return Refused{Reason::group_too_large, "", fmt::format("{} workers, the limit is {}", subgroups * lanes, limits.workers)};
  bool meets = false;
  for (const ExchangeSite& site : packing.exchanges) {
    if (!waits(site.exchange)) continue;
    meets = true;
    if (const std::optional<Refused> refused = loop_refusal(program, packing, site)) return *refused;
  }
  Admitted admitted;
  for (const place::AxisMap& map : packing.instances.axes)
    if (meets && in_group(packing.instances, map.axis) > 1 &&
        covered(packing.instances, map.axis) > packing.extents[map.axis.index])
      admitted.replayed.push_back(map.axis);
  if (!admitted.replayed.empty())
    if (const std::optional<Refused> refused = read_and_stored(program, packing)) return *refused;
  return admitted;
}

}  // namespace cosmati::prove
