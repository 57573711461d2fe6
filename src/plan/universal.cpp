// Phases run in this order: values that a reduction over program axes needs, those reductions, the instances themselves, and the
// stores of what was reduced. The instances come last but one because everything before them reads inputs that they may overwrite
// (inout parameters and exact aliases).
// SPDX-License-Identifier: Apache-2.0
#include "plan/universal.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/describe.h"
#include "ir/inline_replaces.h"
#include "prove/prove.h"
#include "prove/stores.h"
#include "support/check.h"

namespace cosmati::plan {
namespace {

using ir::AxisId;
using ir::AxisSet;
using ir::StreamId;
using ir::TensorId;
using ir::ValueId;
using place::Reason;
using place::Refused;

class Universal {
 public:
  Universal(const ir::Program& program, const Knobs& knobs, const Aliases& aliases)
      : p_(program), knobs_(knobs), aliases_(aliases) {}

  place::Result<Mapping> run() {
    find_ranks();
    find_crosses();
    choose_splits();
    if (refused_) return *refused_;
    split(false);
    if (!accumulates_beside_instances()) keep_what_crosses_need();
    split(true);
    keep_crosses();
    keep_what_is_overwritten();
    store_phases();
    choose_passes();
    choose_homes();
    if (refused_) return *refused_;
    name_phases();
    return std::move(mapping_);
  }

 private:
  // ---- facts -----------------------------------------------------------------------------------------------------------
  const ir::Reduce* as_reduce(ValueId v) const {
    if (const auto* part = std::get_if<ir::Part>(&p_[v].node))
      if (const auto* of = std::get_if<ValueId>(&part->of)) return std::get_if<ir::Reduce>(&p_[*of].node);
    return std::get_if<ir::Reduce>(&p_[v].node);
  }
  bool is_stream_result(ValueId v) const {
    const auto* part = std::get_if<ir::Part>(&p_[v].node);
    return part && std::holds_alternative<StreamId>(part->of);
  }
  // A value that holds one element per point (the tuple of a reducer with several results is only reached through its parts).
  bool is_single(ValueId v) const {
    const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
    return !reduce || ir::result_count(p_, *reduce) == 1;
  }
  bool crosses(ValueId v) const {
    const ir::Reduce* reduce = as_reduce(v);
    if (!reduce) return false;
    return std::any_of(reduce->axes.begin(), reduce->axes.end(), [&](AxisId axis) { return p_[axis].program; });
  }
  // An array over these axes has a size known at launch, and a range known where an instance starts.
  bool has_hull(const AxisSet& axes) const {
    return std::all_of(axes.begin(), axes.end(), [&](AxisId axis) {
      if (p_[axis].piece || ir::launch_level(p_, axis)) return true;
      for (AxisId on : ir::range_axes(p_, axis))
        if (!p_[on].program) return false;
      return hulls_.of(axis).has_value();
    });
  }
  bool in_lambda_or_body(ValueId v) const {
    return !p_[v].axes.empty() &&
           std::any_of(p_[v].axes.begin(), p_[v].axes.end(), [&](AxisId a) { return p_[a].piece.has_value(); });
  }

  // ---- liveness --------------------------------------------------------------------------------------------------------
  template <class Visit>
  void walk(ValueId v, std::set<ValueId>& seen, const Visit& visit) const {
    if (!seen.insert(v).second) return;
    if (!visit(v)) return;
    for (ValueId operand : ir::operands(p_[v].node)) walk(operand, seen, visit);
    if (const auto* part = std::get_if<ir::Part>(&p_[v].node))
      if (const auto* stream = std::get_if<StreamId>(&part->of)) walk_stream(*stream, seen, visit);
    if (const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node))
      for (AxisId axis : reduce->axes) walk_range(axis, seen, visit);
    if constexpr (requires { visit.leave(v); }) visit.leave(v);
  }
  template <class Visit>
  void walk_range(AxisId axis, std::set<ValueId>& seen, const Visit& visit) const {
    for (const auto& bound : {p_[axis].lo, p_[axis].hi})
      if (bound) walk(*bound, seen, visit);
  }
  template <class Visit>
  void walk_stream(StreamId s, std::set<ValueId>& seen, const Visit& visit) const {
    walk_range(p_[s].axis, seen, visit);
    for (const ir::Carry& carry : p_[s].carries) {
      walk(carry.init, seen, visit);
      walk(carry.next, seen, visit);
    }
    for (const ir::Store& store : p_.stores)
      if (store.stream == s) walk_store(store, seen, visit);
  }
  template <class Visit>
  void walk_store(const ir::Store& store, std::set<ValueId>& seen, const Visit& visit) const {
    walk(store.value, seen, visit);
    for (const ir::Index& index : store.index)
      for (ValueId part : index) walk(part, seen, visit);
  }
  template <class Visit>
  void walk_live(const Visit& visit) const {
    std::set<ValueId> seen;
    for (const ir::Store& store : p_.stores) {
      walk_store(store, seen, visit);
      if (store.stream) walk_stream(*store.stream, seen, visit);
    }
  }
  // Those that something needs, and those that they stand in. The others are not printed: what a plan may be does not depend on
  // them.
  std::set<StreamId> live_streams() const {
    std::set<StreamId> live;
    const auto add = [&](std::optional<StreamId> s) {
      for (; s && live.insert(*s).second; s = p_[*s].parent) {
      }
    };
    for (const ir::Store& store : p_.stores) add(store.stream);
    walk_live([&](ValueId v) {
      if (const auto* part = std::get_if<ir::Part>(&p_[v].node))
        if (const auto* stream = std::get_if<StreamId>(&part->of)) add(*stream);
      return true;
    });
    return live;
  }

  // ---- orders ----------------------------------------------------------------------------------------------------------
  // Values by a walk from the stores that leaves operands first, and axes by name: numbers in the arena may be others after a
  // program is printed and read back, and a plan must not depend on them.
  void find_ranks() {
    struct Ranks {
      std::vector<std::size_t>& of;
      std::size_t& next;
      bool operator()(ValueId) const { return true; }
      void leave(ValueId v) const { of[v.index] = next++; }
    };
    ranks_.assign(p_.values.size(), p_.values.size());
    std::size_t next = 0;
    walk_live(Ranks{ranks_, next});
  }
  // The parts of one reduction stand together.
  std::vector<ValueId> in_order(const std::set<ValueId>& values) const {
    const auto key = [&](ValueId v) {
      const auto* part = std::get_if<ir::Part>(&p_[v].node);
      const auto* of = part ? std::get_if<ValueId>(&part->of) : nullptr;
      return of ? std::pair(ranks_[of->index], part->slot + 1) : std::pair(ranks_[v.index], std::uint32_t{0});
    };
    std::vector<ValueId> list(values.begin(), values.end());
    std::stable_sort(list.begin(), list.end(), [&](ValueId a, ValueId b) { return key(a) < key(b); });
    return list;
  }
  // Program axes first, in their own order.
  std::vector<AxisId> in_order(const AxisSet& axes) const {
    const auto key = [&](AxisId axis) {
      return std::pair(std::find(p_.program_axes.begin(), p_.program_axes.end(), axis), std::string_view(p_[axis].name));
    };
    std::vector<AxisId> list(axes.begin(), axes.end());
    std::stable_sort(list.begin(), list.end(), [&](AxisId a, AxisId b) { return key(a) < key(b); });
    return list;
  }

  // ---- reductions over program axes ------------------------------------------------------------------------------------
  void find_crosses() {
    walk_live([&](ValueId v) {
      if (crosses(v) && is_single(v)) crosses_.insert(v);
      return true;
    });
  }

  void keep_what_crosses_need() {
    std::set<ValueId> kept, seen;
    for (ValueId cross : crosses_) {
      for (ValueId arg : as_reduce(cross)->args)
        walk(arg, seen, [&](ValueId v) {
          if (crosses_.count(v)) return false;  // kept by its own phase
          if ((as_reduce(v) && !crosses(v)) || is_stream_result(v)) {
            if (is_single(v) && has_hull(p_[v].axes) && !in_lambda_or_body(v)) {
              kept.insert(v);
              return false;
            }
          }
          return true;
        });
    }
    for (ValueId v : in_order(kept)) keep(v, "keep", [&](AxisId axis) { return p_[axis].program; });
  }
  void keep_crosses() {
    for (ValueId cross : in_order(crosses_))
      if (!only_stored(cross)) keep(cross, "reduce", [](AxisId) { return true; });
  }

  // ---- axes that are cut into parts ------------------------------------------------------------------------------------
  void choose_splits() {
    for (const auto& [name, value] : knobs_) {
      const bool accumulate = name.starts_with("accumulate.");
      if ((!accumulate && !name.starts_with("split.")) || value == "1") continue;
      // Values that nothing uses may have axes of the same name: one that can be cut is meant.
      std::optional<Refused> refused;
      bool cut = false;
      for (std::uint32_t a = 0; a < p_.axes.size(); ++a)
        if (!p_.axes[a].piece && p_.axes[a].name == name.substr(name.find('.') + 1)) {
          const AxisId axis{a};
          std::optional<Refused> no = no_split(axis, accumulate);
          if (!no && mapping_.splits.count(axis)) no = Refused{Reason::cut_twice, "", "axis " + p_[axis].name};
          if (accumulate) mapping_.accumulated.insert(axis);
          if (!no && accumulate && !accumulates_something()) no = Refused{Reason::one_result, "", "axis " + p_[axis].name};
          if (no) {
            if (accumulate) mapping_.accumulated.erase(axis);
            if (!refused) refused = Refused{no->reason, name, no->witness, p_[axis].where};
            continue;
          }
          mapping_.splits[axis] = std::stoi(value);
          cut = true;
        }
      if (refused && !cut) {
        refused_ = std::move(refused);
        return;
      }
    }
  }

  // The axis that a reduction goes through once for all its results, adding to states in memory.
  std::optional<AxisId> accumulated_axis(ValueId v) const {
    const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
    if (!reduce || reduce->axes.size() != 1 || reduce->order != ir::Order::tree || p_[v].axes.empty()) return std::nullopt;
    return mapping_.accumulated.count(reduce->axes[0]) ? std::optional(reduce->axes[0]) : std::nullopt;
  }
  bool accumulates_something() const {
    bool found = false;
    walk_live([&](ValueId v) {
      found = found || accumulated_axis(v);
      return true;
    });
    return found;
  }

  // Why an axis cannot be cut. Its reductions then finish in phases of their own, before anything is stored.
  std::optional<Refused> no_split(AxisId axis, bool accumulate) const {
    const std::string& name = p_[axis].name;
    std::optional<Refused> found;
    const auto refuse = [&](Reason reason, std::string witness) {
      if (!found) found = Refused{reason, "", std::move(witness)};
    };
    if (!ir::launch_level(p_, axis)) refuse(Reason::late_range, "that of " + name);
    std::vector<const ir::Store*> in_place;
    for (const ir::Store& store : p_.stores)
      if (read_by_program(store.tensor)) in_place.push_back(&store);
    if (in_place.size() > 1 || (in_place.size() == 1 && !reads_itself_after(axis, *in_place[0])))
      refuse(Reason::stored_and_read, fmt::format("{} is both", p_[in_place[0]->tensor].name));
    for (StreamId s : live_streams()) {
      if (p_[s].axis == axis) refuse(Reason::streamed, fmt::format("a stream runs over {}", name));
      for (const ir::Carry& carry : p_[s].carries)
        if (ir::contains(carry.axes, axis)) refuse(Reason::streamed, fmt::format("a stream carries a value over {}", name));
    }
    bool reduced = false;
    walk_live([&](ValueId v) {
      if (const auto* replace = std::get_if<ir::Replace>(&p_[v].node))
        for (const auto& [replaced, index] : replace->binds)
          if (replaced == axis) refuse(Reason::other_place, "axis " + name);
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      if (!reduce || !ir::contains(reduce->axes, axis)) return true;
      reduced = true;
      for (AxisId own : p_[v].axes)
        if (p_[own].piece || !ir::launch_level(p_, own))
          refuse(Reason::late_range, fmt::format("a reduction over {} is a value over {}", name, p_[own].name));
      std::set<ValueId> inside;
      for (ValueId arg : reduce->args)
        walk(arg, inside, [&](ValueId u) {
          const AxisSet& axes = p_[u].axes;
          const bool piece = std::any_of(axes.begin(), axes.end(), [&](AxisId own) { return p_[own].piece.has_value(); });
          if (piece || std::holds_alternative<ir::Carried>(p_[u].node) || is_stream_result(u))
            refuse(Reason::streamed, fmt::format("a reduction over {} is inside a stream, or of its results", name));
          // Results are looped over where elements are added to them; what is kept for all of them is complete before.
          for (AxisId own : axes)
            for (AxisId on : ir::range_axes(p_, own))
              if (accumulate && ir::contains(p_[v].axes, on))
                refuse(Reason::late_range, fmt::format("a reduction over {} goes through {}, whose range depends on {}", name,
                                                       p_[own].name, p_[on].name));
          return true;
        });
      return true;
    });
    if (!reduced) refuse(Reason::not_reduced, "axis " + name);
    return found;
  }

  // Whether all that an element of a store reads of the memory it is stored in is itself, when the reductions over `axis` are
  // done.
  bool reads_itself_after(AxisId axis, const ir::Store& store) const {
    bool itself = ir::contains(store_axes(store), axis) && !store.stream;
    std::set<ValueId> seen;
    walk_store(store, seen, [&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      if (reduce && ir::contains(reduce->axes, axis)) return false;
      std::set<ValueId> inside;
      if (reduce)
        for (ValueId arg : reduce->args)
          walk(arg, inside, [&](ValueId u) {
            const auto* load = std::get_if<ir::Load>(&p_[u].node);
            itself = itself && !(load && same_memory(load->tensor, store.tensor));
            return true;
          });
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      itself = itself && !(load && same_memory(load->tensor, store.tensor) && load->index != store.index);
      return true;
    });
    return itself;
  }

  // A phase for each reduction over a split axis, over program axes or over others, in the order of the program; those that
  // accumulate over one axis and do not need each other share one.
  void split(bool over_program_axes) {
    std::set<ValueId> reductions;
    walk_live([&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      if (reduce && cuts(reduce->axes) && crosses(v) == over_program_axes) reductions.insert(v);
      return true;
    });
    for (ValueId v : in_order(reductions)) {
      const std::optional<AxisId> axis = accumulated_axis(v);
      Phase* last = mapping_.phases.empty() ? nullptr : &mapping_.phases.back();
      if (!axis)
        mapping_.phases.push_back({"part_" + name_of(v), in_order(p_[v].axes), {}, {PartRoot{v}}});
      else if (last && std::holds_alternative<AccumulateRoot>(last->roots[0]) && last->instance_axes[0] == *axis &&
               !needs(v, *last))
        last->roots.push_back(AccumulateRoot{v});
      else
        mapping_.phases.push_back({"accumulate_" + name_of(v), {*axis}, {}, {AccumulateRoot{v}}});
    }
  }
  bool cuts(const AxisSet& axes) const {
    return std::any_of(axes.begin(), axes.end(), [&](AxisId axis) { return mapping_.splits.count(axis) > 0; });
  }
  // Whether the instances themselves accumulate: they go by in the parts of their axis, each reduction over it is only stored,
  // and nothing that is read is overwritten.
  bool accumulates_beside_instances() const {
    if (p_.program_axes.size() != 1 || mapping_.splits.size() != 1 || !mapping_.accumulated.count(p_.program_axes[0]))
      return false;
    return live_streams().empty() &&
           std::all_of(crosses_.begin(), crosses_.end(), [&](ValueId v) { return accumulated_axis(v) && only_stored(v); }) &&
           std::none_of(p_.stores.begin(), p_.stores.end(), [&](const ir::Store& s) { return read_by_program(s.tensor); });
  }
  // Whether a reduction needs what a phase accumulates.
  bool needs(ValueId v, const Phase& phase) const {
    bool found = false;
    std::set<ValueId> seen;
    walk(v, seen, [&](ValueId u) {
      found = found || std::find(phase.roots.begin(), phase.roots.end(), Root{AccumulateRoot{u}}) != phase.roots.end();
      return true;
    });
    return found;
  }
  bool is_split(const AxisSet& axes) const {
    return cuts(axes) && !accumulates_beside_instances();  // there an instance is whole
  }

  // A reduction over program axes that is only stored needs no home: the phase of the store evaluates it.
  bool only_stored(ValueId cross) const {
    int stores = 0, uses = 0;
    for (const ir::Store& store : p_.stores) {
      if (store.value == cross && overwritten(store)) return false;
      stores += store.value == cross && !store.stream;
    }
    walk_live([&](ValueId v) {
      for (ValueId operand : ir::operands(p_[v].node)) uses += operand == cross;
      return true;
    });
    return stores == 1 && uses == 0;
  }

  // Whether the value of a store, evaluated in a phase of its own, may find what it reads overwritten.
  bool overwritten(const ir::Store& store) const {
    bool found = false;
    std::set<ValueId> seen;
    walk_store(store, seen, [&](ValueId v) {
      if (mapping_.homes.count(v)) return false;
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      for (const ir::Store& other : p_.stores)
        found = found || (load && same_memory(load->tensor, other.tensor) &&
                          (&other != &store || load->index != store.index || !reads_only_what_it_stores(store)));
      return true;
    });
    return found;
  }

  // The phases of stores come after everything else and one after the other: what they read is complete before.
  void keep_what_is_overwritten() {
    for (const ir::Store& store : p_.stores) {
      if (store.stream || p_[store.value].done.empty() || mapping_.homes.count(store.value) || !overwritten(store)) continue;
      if (!is_single(store.value) || !has_hull(p_[store.value].axes))
        throw Error(ErrorCode::not_supported, store.where,
                    fmt::format("{} is stored after what it reads has been overwritten", p_[store.tensor].name),
                    "store to another parameter");
      keep(store.value, "keep", [](AxisId) { return true; });
    }
  }

  template <class OnGrid>
  void keep(ValueId v, const char* what, const OnGrid& on_grid) {
    std::vector<AxisId> grid;
    for (AxisId axis : in_order(p_[v].axes))
      if (ir::launch_level(p_, axis) && on_grid(axis)) grid.push_back(axis);
    mapping_.homes[v] = Home::launch;
    Phase* last = mapping_.phases.empty() ? nullptr : &mapping_.phases.back();
    // The parts of one reduction share a phase, so that it is evaluated once.
    if (last && std::holds_alternative<KeepRoot>(last->roots.back()) &&
        as_reduce(std::get<KeepRoot>(last->roots.back()).value) == as_reduce(v) && as_reduce(v)) {
      last->roots.push_back(KeepRoot{v});
      return;
    }
    mapping_.phases.push_back({fmt::format("{}_{}", what, name_of(v)), grid, {}, {KeepRoot{v}}});
  }

  std::string name_of(ValueId v) const {
    if (const std::string* name = ir::name_of(p_, v)) return *name;
    const ir::Reduce* reduce = as_reduce(v);
    return reduce ? p_[reduce->reducer].name : "value";
  }

  // ---- the instances, and the stores of reduced values -------------------------------------------------------------------
  void store_phases() {
    Phase main{"instances", p_.program_axes, {}, {}};
    std::vector<Phase> split_stores;  // a phase each
    std::vector<Root> late;           // stores into memory that this phase also reads
    std::set<StreamId> streams, late_streams;
    std::vector<StreamId> running;
    for (std::uint32_t i = 0; i < p_.stores.size(); ++i) {
      const ir::Store& store = p_.stores[i];
      if (store.stream) {
        refuse_other_reads(store);
        StreamId outermost = *store.stream;
        while (p_[outermost].parent) outermost = *p_[outermost].parent;
        bool fresh = streams.insert(outermost).second;
        if (read_by_program(store.tensor))
          late_streams.insert(outermost);
        else if (fresh)
          running.push_back(outermost);
        continue;
      }
      if (!p_[store.value].done.empty()) continue;
      if (is_split(store_axes(store))) {
        std::vector<AxisId> grid = p_.program_axes;
        for (AxisId axis : in_order(store_axes(store)))
          if (mapping_.splits.count(axis) && !p_[axis].program) grid.push_back(axis);
        split_stores.push_back({"store_" + p_[store.tensor].name, grid, {}, {StoreRoot{i}}});
        continue;
      }
      if (read_by_program(store.tensor)) {
        if (!reads_only_what_it_stores(store)) early_.insert(store.value);
        late.push_back(StoreRoot{i});
      } else {
        main.roots.push_back(StoreRoot{i});
      }
    }
    for (StreamId s : running)
      if (!late_streams.count(s)) main.roots.push_back(StreamRoot{s});
    if (!late_streams.empty() && late.size() + late_streams.size() > 1)
      throw Error(ErrorCode::not_supported, p_[*late_streams.begin()].where,
                  "a stream stores into memory that the program also reads, and so does another store",
                  "store to another parameter");
    // With several such stores, each one's value is complete before the first of them writes.
    if (late.size() > 1)
      for (const Root& root : late) early_.insert(p_.stores[std::get<StoreRoot>(root).store].value);
    for (ValueId v : in_order(early_)) main.roots.push_back(FillRoot{v});
    main.roots.insert(main.roots.end(), late.begin(), late.end());
    for (StreamId s : late_streams) main.roots.push_back(StreamRoot{s});
    if (!main.roots.empty() && accumulates_beside_instances()) {
      Phase& beside = mapping_.phases.back();
      beside.name = main.name;
      beside.roots.insert(beside.roots.end(), main.roots.begin(), main.roots.end());
    } else if (!main.roots.empty()) {
      mapping_.phases.push_back(std::move(main));
    }
    // One of them may overwrite what the others read.
    std::stable_partition(split_stores.begin(), split_stores.end(), [&](const Phase& phase) {
      return !read_by_program(p_.stores[std::get<StoreRoot>(phase.roots[0]).store].tensor);
    });
    for (Phase& phase : split_stores) mapping_.phases.push_back(std::move(phase));
    for (std::uint32_t i = 0; i < p_.stores.size(); ++i) {
      const ir::Store& store = p_.stores[i];
      if (store.stream || p_[store.value].done.empty()) continue;
      std::vector<AxisId> grid;
      for (AxisId axis : in_order(store_axes(store)))
        if (ir::launch_level(p_, axis)) grid.push_back(axis);
      mapping_.phases.push_back({"store_" + p_[store.tensor].name, grid, {}, {StoreRoot{i}}});
    }
  }

  AxisSet store_axes(const ir::Store& store) const {
    AxisSet axes = p_[store.value].axes;
    for (const ir::Index& index : store.index)
      for (ValueId part : index) axes = ir::set_union(axes, p_[part].axes);
    return axes;
  }

  bool same_memory(TensorId loaded, TensorId stored) const { return loaded == stored || aliases_.count({loaded, stored}); }

  bool read_by_program(TensorId stored) const {
    bool found = false;
    walk_live([&](ValueId v) {
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      found = found || (load && same_memory(load->tensor, stored));
      return true;
    });
    return found;
  }

  // A stream stores while it runs. Its body may read what it stores at the place of the store, which comes after its readers in
  // the step, at one that only later steps store, and through values of the whole instance, which are complete before the first
  // step. The other stores of an instance come before the stream, unless one needs what the stream carries.
  void refuse_other_reads(const ir::Store& store) const {
    const ir::Stream& stream = p_[*store.stream];
    const auto refuse = [&](ValueId v, const std::string& when) {
      throw Error(ErrorCode::not_supported, p_[v].where,
                  fmt::format("{} is read {} the stream over {} stores it", p_[store.tensor].name, when, p_[stream.axis].name),
                  "store to another parameter, or read in the stream what it stores, what later steps store, or what is reduced "
                  "over all steps");
    };
    const auto elsewhere = [&](ValueId v) {
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      return load && same_memory(load->tensor, store.tensor) && load->index != store.index;
    };
    for (StreamId s : live_streams()) {
      std::set<ValueId> seen;
      walk_stream(s, seen, [&](ValueId v) {
        if (s == *store.stream && of_instance(v)) return false;
        if (elsewhere(v) && !(s == *store.stream && prove::reads_ahead(p_, v, store))) refuse(v, "at another place while");
        return true;
      });
    }
    if (!ir::stores_in_order(p_, *store.stream, [&](TensorId a, TensorId b) { return same_memory(a, b); }))
      throw Error(
          ErrorCode::not_supported, store.where,
          fmt::format("{} is read in the step of the stream over {} that stores it, by another store that it would have to "
                      "come after and before",
                      p_[store.tensor].name, p_[stream.axis].name),
          "store to another parameter");
    bool brought_forward = false;
    std::optional<ValueId> outside;
    std::set<ValueId> seen;
    for (const ir::Store& other : p_.stores) {
      if (other.stream) continue;
      walk_store(other, seen, [&](ValueId v) {
        if (elsewhere(v)) outside = v;
        brought_forward = brought_forward || is_stream_result(v);
        return !is_stream_result(v);
      });
    }
    if (brought_forward && outside) refuse(*outside, "after");
  }

  // A value without axes of loops that no step of a stream takes part in: lowering puts it before them.
  bool of_instance(ValueId v) const {
    const auto program = [&](AxisId axis) { return p_[axis].program; };
    bool whole = std::all_of(p_[v].axes.begin(), p_[v].axes.end(), program);
    std::set<ValueId> seen;
    std::vector<ValueId> work{v};
    while (whole && !work.empty()) {
      const ValueId u = work.back();
      work.pop_back();
      if (!seen.insert(u).second) continue;
      whole = !std::holds_alternative<ir::Carried>(p_[u].node) && !is_stream_result(u) && !in_lambda_or_body(u);
      for (ValueId operand : ir::operands(p_[u].node)) work.push_back(operand);
    }
    return whole;
  }

  bool reads_only_what_it_stores(const ir::Store& store) const {
    bool same = true;
    std::set<ValueId> seen;
    walk(store.value, seen, [&](ValueId v) {
      const auto* load = std::get_if<ir::Load>(&p_[v].node);
      if (load && same_memory(load->tensor, store.tensor)) same = same && load->index == store.index;
      // A reduction that has no axis of the store's loops is complete before the first element is written.
      return !(as_reduce(v) && step_axes(p_[v].axes, p_.program_axes).empty());
    });
    return same;
  }

  // ---- homes -----------------------------------------------------------------------------------------------------------
  AxisSet step_axes(const AxisSet& axes, const std::vector<AxisId>& grid) const {
    AxisSet steps;
    for (AxisId axis : axes)
      if (std::find(grid.begin(), grid.end(), axis) == grid.end() && !p_[axis].piece) steps.push_back(axis);
    return steps;
  }

  // A context is a loop nest that evaluates a value: the axes it loops over. A value that is dear and would be evaluated by two
  // nests, or repeatedly by one that also loops over axes the value does not have, is kept in a worker array.
  void choose_homes() {
    std::vector<std::set<AxisSet>> contexts(p_.values.size());
    std::vector<int> nests(p_.values.size(), 0);
    auto enter = [&](ValueId v, const AxisSet& axes) {
      contexts[v.index].insert(axes);
      ++nests[v.index];
    };
    std::set<ValueId> live;
    walk_live([&](ValueId v) {
      live.insert(v);
      return true;
    });
    for (const ir::Store& store : p_.stores) enter(store.value, store_axes(store));
    for (ValueId v : live)
      if (const auto* part = std::get_if<ir::Part>(&p_[v].node))
        if (const auto* s = std::get_if<StreamId>(&part->of)) enter_stream(*s, enter);
    for (const ir::Store& store : p_.stores)
      if (store.stream) enter_stream(*store.stream, enter);
    for (ValueId v : early_) {
      if (!has_hull(p_[v].axes))
        throw Error(ErrorCode::not_supported, p_[v].where,
                    "this value must be complete before its memory is overwritten, but nothing bounds its range",
                    "bound the range by a contract, or store to another parameter");
      mapping_.homes.emplace(v, Home::worker);
    }
    // Users come after their operands in the arena, so walking backwards meets every context of a value before the value.
    for (auto it = live.rbegin(); it != live.rend(); ++it) {
      ValueId v = *it;
      decide(v, contexts[v.index], nests[v.index]);
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      AxisSet own;
      if (reduce) {
        own = p_[v].axes;
        for (ValueId arg : reduce->args) own = ir::set_union(own, ir::set_union(p_[arg].axes, reduce->axes));
      }
      bool boundary = reduce || mapping_.homes.count(v);
      for (ValueId operand : ir::operands(p_[v].node)) {
        if (boundary) {
          enter(operand, reduce ? own : p_[v].axes);
          if (mapping_.two_passes.count(v)) enter(operand, own);
        } else {
          contexts[operand.index].insert(contexts[v.index].begin(), contexts[v.index].end());
          nests[operand.index] += nests[v.index];
        }
      }
    }
  }

  template <class Enter>
  void enter_stream(StreamId s, const Enter& enter) {
    if (!entered_.insert(s).second) return;
    for (std::uint32_t slot = 0; slot < p_[s].carries.size(); ++slot) {
      enter(p_[s].carries[slot].init, p_[s].carries[slot].axes);
      enter(p_[s].carries[slot].next, ir::set_union(p_[s].carries[slot].axes, p_[p_[s].carries[slot].next].axes));
    }
    if (p_[s].parent) enter_stream(*p_[s].parent, enter);
  }

  bool dear(ValueId v, int depth = 0) const {
    if (as_reduce(v)) return true;
    const auto* e = std::get_if<ir::Elementwise>(&p_[v].node);
    if (!e) return false;
    if (e->op != ops::Op::cast && ops::info(e->op).kind == ops::Kind::expanded) return true;
    if (depth > 16) return false;
    return std::any_of(e->args.begin(), e->args.end(), [&](ValueId arg) {
      return !mapping_.homes.count(arg) && !step_axes(p_[arg].axes, p_.program_axes).empty() && dear(arg, depth + 1);
    });
  }

  void decide(ValueId v, const std::set<AxisSet>& contexts, int nests) {
    if (mapping_.homes.count(v) || !is_single(v)) return;
    AxisSet steps = step_axes(p_[v].axes, p_.program_axes);
    bool possible = !steps.empty() && !is_split(p_[v].axes) && has_hull(p_[v].axes) && p_[v].done.empty() &&
                    !std::holds_alternative<ir::Coord>(p_[v].node);
    for (const auto& [name, value] : p_.names) {
      auto knob = knobs_.find("home." + name);
      if (value != v || knob == knobs_.end()) continue;
      if (knob->second == "reload") return;
      if (!possible) {
        refused_ = Refused{Reason::nothing_to_keep, "home." + name, ir::describe(p_, v), p_[v].where};
        return;
      }
      mapping_.homes[v] = Home::worker;
      return;
    }
    if (!possible || !dear(v)) return;
    bool repeated = nests > 1 || std::any_of(contexts.begin(), contexts.end(), [&](const AxisSet& axes) {
                      return !ir::set_minus(step_axes(axes, p_.program_axes), p_[v].axes).empty();
                    });
    if (repeated) mapping_.homes[v] = Home::worker;
  }

  // Elements within an instance are near when they are read again; over program axes they are the whole of an argument.
  void choose_passes() {
    walk_live([&](ValueId v) {
      const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node);
      if (!reduce || !p_[reduce->reducer].builtin || p_[reduce->reducer].name != "mean_var") return true;
      const bool near =
          std::none_of(reduce->axes.begin(), reduce->axes.end(), [&](AxisId axis) { return p_[axis].program || p_[axis].piece; });
      if (near && reduce->order == ir::Order::tree && !is_split(reduce->axes)) mapping_.two_passes.insert(v);
      return true;
    });
  }

  // Phases are told apart by name: the second `store_y` is `store_y_2`.
  void name_phases() {
    std::set<std::string> taken;
    for (Phase& phase : mapping_.phases) {
      std::string unique = phase.name;
      for (int n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}_{}", phase.name, n);
      phase.name = unique;
    }
  }

  const ir::Program& p_;
  const Knobs& knobs_;
  const Aliases& aliases_;
  Mapping mapping_;
  mutable prove::Hulls hulls_{p_};
  std::vector<std::size_t> ranks_;  // by value
  std::set<ValueId> crosses_;
  std::set<ValueId> early_;  // stored values that must be complete before the first store of the instance
  std::set<StreamId> entered_;
  std::optional<Refused> refused_;
};

}  // namespace

bool decides_phases(const std::string& knob) {
  return knob.starts_with("home.") || knob.starts_with("split.") || knob.starts_with("accumulate.");
}

place::Result<Mapping> universal(const ir::Program& program, const Knobs& knobs, const Aliases& aliases) {
  for (const auto& [name, value] : knobs) {
    if (!name.starts_with("home.")) continue;
    const auto called = [&](const auto& named) { return "home." + named.first == name; };
    if (std::any_of(program.names.begin(), program.names.end(), called)) continue;
    std::string known;
    for (const auto& [own, of] : program.names) known += (known.empty() ? "" : ", ") + own;
    return Refused{Reason::names_nothing, name,
                   fmt::format("the program names no value `{}`, {}", name.substr(5),
                               known.empty() ? "it names none" : "its values are " + known)};
  }
  return Universal(program, knobs, aliases).run();
}

}  // namespace cosmati::plan
