// Lanes on every axis that can have them; one to eight vectors of it in registers; beside them neighbours of one more axis, where
// that lets a loaded value serve several times, or makes whole lines of what is read across; axes in parts; values evaluated
// again.
// SPDX-License-Identifier: Apache-2.0
#include "plan/candidates.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ir/describe.h"

namespace cosmati::plan {
namespace {

using ir::AxisId;
using ir::ValueId;

constexpr const char* lane_tiles[] = {"1", "2", "4", "8"};
constexpr const char* wide_tile = "16";  // a kilobyte at a time of rows that lie pages apart
constexpr const char* other_tiles[] = {"2", "4", "6", "8", "16"};
constexpr const char* instances_at_once[] = {"8", "4"};
constexpr std::pair<const char*, const char*> chains_at_once[] = {{"4", "4"}, {"2", "8"}, {"1", "8"}};
constexpr const char* accumulated_copies[] = {"8", "4", "1"};
constexpr const char* part_counts[] = {"8", "64"};
constexpr const char* group_counts[] = {"4", "16", "64", "256"};  // of a GPU, that share a row
constexpr std::size_t most_axes = 3;
constexpr int held_copies[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}, most_apart = 16;

class Candidates {
 public:
  Candidates(const ir::Program& p, const Mapping& m, const Lanes& lanes, const Facts& facts, const Knobs& fixed)
      : p_(p), m_(m), rule_(lanes), facts_(facts), fixed_(fixed) {
    for (const Phase& phase : m.phases) live_.merge(values_of(p, m, phase));
  }

  // On a GPU: how many lanes, and whether they hold the axis that they are along.
  std::vector<Knobs> of_groups() {
    add(fixed_);
    if (rule_.axes.empty()) return std::move(all_);
    const std::string& axis = p_[rule_.axes.front()].name;
    const auto lanes = [&](int n, int side) {
      const Knobs knobs = with(fixed_, "lanes", std::to_string(n));
      return side > 1 ? with(knobs, "vector." + axis, std::to_string(side)) : knobs;
    };
    std::vector<int> sides = {1};
    if (const int most = at_once(rule_.axes.front()); most > 1) sides.push_back(most);
    for (const int n : {32, 64, 128, 256, 512, 1024})
      for (const int side : sides) {
        int before = 0;
        for (const int copies : held_copies) {
          if (copies % side != 0 || (side == 1 && copies > most_apart)) continue;
          const int full = std::exchange(before, copies);
          if (n > 32 && copies < 4) continue;  // fewer lanes hold as many
          const Knobs held = with(with(lanes(n, side), "tile." + axis, std::to_string(copies / side)), "resident", axis);
          for (const int whole : {copies, full}) {
            const Knobs tight = whole > 0 ? with(held, "full." + axis, std::to_string(whole)) : held;
            add(tight);
            if (n == 32) add(with(tight, "packed", "4"));
          }
        }
        if (n <= 512) add(lanes(n, side));
      }
    add(with(lanes(32, 1), "packed", "4"));
    for (AxisId cut : axes())
      if (reduced(cut))
        for (const char* parts : group_counts)
          for (const int side : sides) add(with(lanes(256, side), "split." + p_[cut].name, parts));
    return std::move(all_);
  }
  // Elements of the narrowest array along an axis that are moved at once.
  int at_once(AxisId axis) const {
    if (std::none_of(m_.phases.begin(), m_.phases.end(),
                     [&](const Phase& phase) { return bool(can_have_vectors(p_, m_, phase, axis)); }))
      return 1;
    int narrowest = kernel::aligned_bytes;
    const auto look = [&](ir::TensorId tensor, const std::vector<ir::Index>& index) {
      if (is_along(tensor, index, axis)) narrowest = std::min(narrowest, std::max(1, byte_size(p_[tensor].dtype)));
    };
    for (const ir::Store& store : p_.stores) look(store.tensor, store.index);
    for (ValueId v : live_)
      if (const auto* load = std::get_if<ir::Load>(&p_[v].node)) look(load->tensor, load->index);
    return kernel::aligned_bytes / narrowest;
  }

  // The most promising first: there may be room for some only.
  std::vector<Knobs> run() {
    add(fixed_);
    const auto all = lists();
    for (const auto& [list, first] : all) add(on(list));
    // One pass over memory for all results; several instances at once would be as many bodies.
    if (const auto& first = all[0].second)
      for (AxisId axis : axes())
        if (reduced_beside(*first, axis) && !shares(axis, *first))
          for (const char* parts : part_counts)
            for (const char* copies : accumulated_copies)
              if (!p_[axis].program || copies == std::string_view("1"))
                add(with(with(fixed_, "accumulate." + p_[axis].name, parts), "tile." + p_[axis].name, copies));
    // Chains of a reduction beside each other, where lanes keep a result each.
    for (const auto& [list, first] : all)
      for (AxisId axis : axes())
        if (first && along_results(*first) && reduces_each(axis, *first) && !shares(*first, axis) && !crosses(*first, axis))
          for (const auto& [tile, copies] : chains_at_once)
            add(with(with(on(list), "tile." + p_[*first].name, tile), "tile." + p_[axis].name, copies));
    if (const auto& [list, first] = all[0]; first)
      for (const char* tile : lane_tiles) add(with(on(list), "tile." + p_[*first].name, tile));
    // Lanes settle what they reduced in steps that wait for each other: those of several instances do so beside each other.
    for (const auto& [list, first] : all)
      for (AxisId axis : axes())
        if (first && p_[axis].program && reduces_each(*first, axis))
          for (const char* copies : instances_at_once)
            add(with(with(on(list), "tile." + p_[*first].name, "1"), "tile." + p_[axis].name, copies));
    // Elements of 64 bits take two registers for all lanes, and more steps to settle.
    for (const auto& [list, first] : all)
      if (first && rule_.lanes > 2 && !fixed_.contains("lanes") && reduces_wide(*first)) {
        const Knobs half = with(with(on(list), "lanes", std::to_string(rule_.lanes / 2)), "tile." + p_[*first].name, "1");
        add(half);
        for (AxisId axis : axes())
          if (p_[axis].program && reduces_each(*first, axis)) add(with(half, "tile." + p_[axis].name, instances_at_once[0]));
      }
    // Squares of what lies across the lanes, turned around in registers. Where a loaded value serves several times, blocks of
    // other sizes do as much with less code.
    for (const auto& [list, first] : all)
      for (AxisId other : axes())
        if (first && other != *first && rule_.lanes > 1 && crosses(*first, other) && !shares(*first, other) &&
            !shares(other, *first))
          add(with(with(on(list), "tile." + p_[*first].name, "1"), "tile." + p_[other].name, std::to_string(rule_.lanes)));
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return all[i].second && along_results(*all[i].second); });
    for (const std::size_t i : order) {
      const auto& [list, first] = all[i];
      if (!first) continue;
      for (const char* tile : lane_tiles) add(with(on(list), "tile." + p_[*first].name, tile));
      if (reduced_beside(*first, std::nullopt)) add(with(on(list), "tile." + p_[*first].name, wide_tile));
      for (AxisId other : beside(*first))
        for (const char* tile : lane_tiles)
          for (const char* copies : other_tiles)
            add(with(with(on(list), "tile." + p_[*first].name, tile), "tile." + p_[other].name, copies));
      if (i > 0) continue;
      for (AxisId axis : axes())
        if (reduced(axis))
          for (const char* parts : part_counts) {
            // Rows that are cut are long: all accumulators that there is room for.
            if (first) add(with(with(fixed_, "split." + p_[axis].name, parts), "tile." + p_[*first].name, "8"));
            add(with(fixed_, "split." + p_[axis].name, parts));
          }
      for (const auto& [name, value] : p_.names) {
        const auto home = m_.homes.find(value);
        if (home != m_.homes.end() && home->second == Home::worker && !ir::is_automatic_name(name))
          add(with(fixed_, "home." + name, "reload"));
      }
    }
    return std::move(all_);
  }

 private:
  Knobs on(const std::string& list) const { return list.empty() ? fixed_ : with(fixed_, "lane_axes", list); }
  Knobs with(Knobs knobs, const std::string& name, const std::string& value) const {
    if (!fixed_.contains(name)) knobs[name] = value;
    return knobs;
  }
  void add(const Knobs& knobs) {
    if (seen_.insert(knobs).second) all_.push_back(knobs);
  }

  // Axes by name, so that a program is planned alike after it is printed and read back.
  std::vector<AxisId> axes() const {
    std::vector<AxisId> list;
    for (std::uint32_t a = 0; a < p_.axes.size(); ++a)
      if (!p_.axes[a].piece) list.push_back(AxisId{a});
    std::stable_sort(list.begin(), list.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
    return list;
  }

  // Lists of lane axes with the first of each; no list: the rule's.
  std::vector<std::pair<std::string, std::optional<AxisId>>> lists() const {
    std::vector<std::pair<std::string, std::optional<AxisId>>> all;
    const std::optional<AxisId> preferred = rule_.axes.empty() ? std::nullopt : std::optional(rule_.axes.front());
    all.emplace_back("", preferred);
    if (fixed_.contains("lane_axes")) return all;
    for (AxisId axis : axes()) {
      if (axis == preferred) continue;
      if (std::none_of(m_.phases.begin(), m_.phases.end(),
                       [&](const Phase& ph) { return bool(can_have_lanes(p_, m_, ph, axis)); }))
        continue;
      std::string list = p_[axis].name;
      // Axes that tell instances apart share their lanes with no other.
      std::size_t count = p_[axis].program ? most_axes : 1;
      for (AxisId other : rule_.axes)
        if (other != axis && ++count <= most_axes) list += "," + p_[other].name;
      all.emplace_back(list, axis);
    }
    all.emplace_back("none", std::nullopt);
    return all;
  }

  bool reduced(AxisId axis) const {
    return std::any_of(live_.begin(), live_.end(), [&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      return reduce && ir::contains(reduce->axes, axis);
    });
  }

  // Whether something is reduced, over this axis alone where one is given, that has a result for each coordinate of `first`.
  bool reduced_beside(AxisId first, std::optional<AxisId> alone) const {
    return std::any_of(live_.begin(), live_.end(), [&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      return reduce && ir::contains(p_[v].axes, first) && (!alone || reduce->axes == ir::AxisSet{*alone});
    });
  }

  // Whether something is reduced over `axis` for each coordinate of `of`.
  bool reduces_each(AxisId axis, AxisId of) const {
    return std::any_of(live_.begin(), live_.end(), [&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      return reduce && ir::contains(reduce->axes, axis) && ir::contains(p_[v].axes, of);
    });
  }

  // Whether elements of 64 bits are reduced over it, or places that may need as many.
  bool reduces_wide(AxisId axis) const {
    return std::any_of(live_.begin(), live_.end(), [&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      if (!reduce || !ir::contains(reduce->axes, axis)) return false;
      return byte_size(p_[reduce->args[0]].dtype) == 8 || (p_[reduce->reducer].index && !ir::narrows_integers(p_));
    });
  }

  // Lanes on it keep a result each and store neighbours: what blocks of registers are made of.
  bool along_results(AxisId axis) const {
    return !reduced(axis) && std::any_of(p_.stores.begin(), p_.stores.end(),
                                         [&](const ir::Store& store) { return is_along(store.tensor, store.index, axis); });
  }
  // Axes of which several neighbours at once pay beside lanes on `first`, those that save loads of what is reduced before the
  // others.
  std::vector<AxisId> beside(AxisId first) const {
    std::vector<AxisId> list;
    for (AxisId axis : axes())
      if (axis != first && (shares(first, axis) || crosses(first, axis))) list.push_back(axis);
    std::stable_partition(list.begin(), list.end(), [&](AxisId axis) { return shares(first, axis) && !reduced(axis); });
    return list;
  }
  // Some load has one of the axes and not the other, and they meet in one value.
  bool shares(AxisId first, AxisId axis) const {
    bool without = false, meet = false;
    for (ValueId v : live_) {
      const bool has_first = ir::contains(p_[v].axes, first), has_axis = ir::contains(p_[v].axes, axis);
      meet = meet || (has_first && has_axis);
      without = without || (std::holds_alternative<ir::Load>(p_[v].node) && has_first && !has_axis);
    }
    return without && meet;
  }
  // Neighbours in memory lie along `axis` in some access that also has `first`.
  bool crosses(AxisId first, AxisId axis) const {
    const auto along = [&](ir::TensorId tensor, const std::vector<ir::Index>& index) {
      const bool has_first = std::any_of(index.begin(), index.end(), [&](const ir::Index& of_dim) {
        return std::any_of(of_dim.begin(), of_dim.end(), [&](ValueId v) { return ir::contains(p_[v].axes, first); });
      });
      return has_first && is_along(tensor, index, axis);
    };
    for (const ir::Store& store : p_.stores)
      if (along(store.tensor, store.index)) return true;
    return std::any_of(live_.begin(), live_.end(), [&](ValueId v) {
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      return load && along(load->tensor, load->index);
    });
  }

  // Whether neighbours of the axis are neighbours in memory.
  bool is_along(ir::TensorId tensor, const std::vector<ir::Index>& index, AxisId axis) const {
    for (std::size_t d = 0; d < index.size(); ++d)
      if (facts_.unit_stride[tensor.index][d] && !index[d].empty() && ir::contains(p_[index[d].back()].axes, axis)) return true;
    return false;
  }

  const ir::Program& p_;
  const Mapping& m_;
  const Lanes& rule_;
  const Facts& facts_;
  const Knobs& fixed_;
  std::set<ValueId> live_;
  std::vector<Knobs> all_;
  std::set<Knobs> seen_;
};

}  // namespace

std::vector<Knobs> candidate_knobs(const ir::Program& program, const Mapping& mapping, const Lanes& lanes, const Facts& facts,
                                   const Target& target, const Knobs& fixed) {
  if (target.subgroup > 0) return Candidates(program, mapping, lanes, facts, fixed).of_groups();
  return Candidates(program, mapping, lanes, facts, fixed).run();
}

}  // namespace cosmati::plan
