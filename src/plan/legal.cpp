// Extents are known when a launch starts: a mapping is held to a few of them, one for each way in which a digit may be cut.
// SPDX-License-Identifier: Apache-2.0
#include "plan/legal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/describe.h"
#include "plan/lanes.h"
#include "plan/nest.h"
#include "prove/accesses.h"
#include "prove/candidate.h"
#include "support/check.h"

namespace cosmati::plan {
namespace {

using ir::AxisId;
using place::Refused;

// The instances are told apart once for all nests; of the other axes every nest places its own.
void check_well_formed(const ir::Program& program, const Phase& phase, const place::Extents& extents) {
  std::vector<place::Placement> parts(1);
  for (const place::AxisMap& map : phase.placement.axes) {
    const auto& instances = phase.instance_axes;
    if (std::find(instances.begin(), instances.end(), map.axis) != instances.end())
      parts[0].axes.push_back(map);
    else
      parts.push_back({{map}});
  }
  for (const place::Placement& part : parts) {
    const std::string wrong = place::ill_formed(part, extents);
    COSMATI_CHECK(wrong.empty(), "phase {}: {}: {}", phase.name, place::print(part, program), wrong);
  }
}

class Legality {
 public:
  Legality(const ir::Program& p, const Mapping& m, const Facts& facts, const Target& target)
      : p_(p), m_(m), facts_(facts), target_(target) {}

  place::Verdict run() {
    // Extents whose product is a number.
    const auto largest = static_cast<std::int64_t>(std::exp2(60.0 / static_cast<double>(p_.axes.size() + 1)));
    for (const Phase& phase : m_.phases) {
      const std::set<ir::ValueId> values = values_of(p_, m_, phase);
      for (const std::int64_t extent :
           {std::int64_t{1}, std::min<std::int64_t>(7, largest), std::min<std::int64_t>(1000, largest)}) {
        place::Extents extents(p_.axes.size(), extent);
        for (const place::AxisMap& map : phase.placement.axes)
          if (const auto whole = held_whole(phase, map.axis)) extents[map.axis.index] = std::min(extent, *whole);
        check_well_formed(p_, phase, extents);
        if (place::Verdict v = group(phase, extents); !v) return v;
        for (const Root& root : phase.roots)
          if (const auto* store = std::get_if<StoreRoot>(&root))
            if (place::Verdict v = owned(phase, p_.stores[store->store], extents); !v) return v;
        for (const ir::ValueId value : values)
          if (place::Verdict v = ordered(phase, value, extents); !v) return v;
      }
    }
    return place::Legal{};
  }

 private:
  // A subgroup may have fewer lanes than the device's, and what is packed meets at fences of its own: nobody waits for another
  // instance, and nothing is replayed.
  place::Verdict group(const Phase& phase, const place::Extents& extents) const {
    place::Counts counts = workers_of(phase, extents);
    if (counts[place::Res::lane] > 1) counts[place::Res::subgroup] *= m_.packed;
    const place::Result<prove::Admitted> admitted =
        prove::admit(p_, {nest(phase, {}, false, extents), counts, extents, {}, facts_.aliases},
                     {target_.most_workers_of_group, counts[place::Res::lane]});
    if (!admitted) return named(admitted.refused(), phase, "");
    COSMATI_CHECK(admitted->replayed.empty(), "phase {} replays instances, and has no fence", phase.name);
    return place::Legal{};
  }

  place::Verdict owned(const Phase& phase, const ir::Store& store, const place::Extents& extents) const {
    ir::AxisSet axes = p_[store.value].axes;
    for (const ir::Index& index : store.index)
      for (const ir::ValueId part : index) axes = ir::set_union(axes, p_[part].axes);
    const place::Counts counts = workers_of(phase, extents);
    place::Placement value = nest(phase, {axes.begin(), axes.end()}, false, extents);
    std::erase_if(value.axes, [&](const place::AxisMap& map) { return !ir::contains(axes, map.axis); });
    const auto whole = place::complete(value, counts);
    if (!whole) return named(whole.refused(), phase, p_[store.tensor].name);
    const auto owner = prove::store_owner(p_, store, *whole, counts, extents);
    if (!owner) return named(owner.refused(), phase, p_[store.tensor].name);
    // Lanes that hold the same store once; groups do not know of each other.
    for (const place::Segment& s : *owner)
      if (s.res == place::Res::grid)
        return named({place::Reason::no_such_axis, "", fmt::format("{} groups would store each element", s.size)}, phase,
                     p_[store.tensor].name);
    return place::Legal{};
  }

  place::Verdict ordered(const Phase& phase, ir::ValueId value, const place::Extents& extents) const {
    const auto* reduce = std::get_if<ir::Reduce>(&p_[value].node);
    if (!reduce || reduce->order == ir::Order::tree) return place::Legal{};
    std::vector<AxisId> axes;
    for (const AxisId axis : reduce->axes)
      if (!p_[axis].piece) axes.push_back(axis);
    std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
    const place::Verdict verdict = prove::reorderable(reduce->order, nest(phase, axes, true, extents), axes);
    if (verdict) return verdict;
    Refused refused = named(verdict.refused(), phase, ir::describe(p_, value));
    refused.at = p_[value].where;
    return refused;
  }

  static Refused named(Refused refused, const Phase& phase, const std::string& what) {
    refused.where = fmt::format("{}{}phase {}", what, what.empty() ? "" : " in ", phase.name);
    return refused;
  }

  const ir::Program& p_;
  const Mapping& m_;
  const Facts& facts_;
  const Target& target_;
};

}  // namespace

place::Verdict legal(const ir::Program& program, const Mapping& mapping, const Facts& facts, const Target& target) {
  return Legality(program, mapping, facts, target).run();
}

place::Verdict offsets_fit(const ir::Program& program, const kernel::Shape& shape, const Target& target) {
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const ir::Tensor& tensor = program.tensors[t];
    std::vector<std::int64_t> extents(tensor.dims.size(), 1);
    for (std::size_t d = 0; d < extents.size(); ++d)
      for (const ir::Factor& factor : tensor.dims[d])
        extents[d] *= factor.axis ? shape.extents[factor.axis.index] + factor.offset : factor.offset;
    const place::Verdict fit = prove::offsets_fit(extents, shape.strides[t], byte_size(tensor.dtype), target.offset_bits);
    if (!fit) {
      Refused refused = fit.refused();
      refused.where = fmt::format("{} of {}", refused.where, tensor.name);
      return refused;
    }
  }
  return place::Legal{};
}

}  // namespace cosmati::plan
