// The Mapping: everything lowering writes down and nothing it decides. Phases in order, what each phase produces, where the
// instances of a phase sit (digits), and the home of every value that is stored between its definition and its uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "place/placement.h"

namespace cosmati::plan {

enum class Home : std::uint8_t {
  reload,  // evaluated again at every use, from memory and from values with homes
  worker,  // an array over its step axes in the worker's scratch, filled before the first use
  launch,  // an array over all its axes in the launch's scratch, filled by the phase that keeps it
};

struct StoreRoot {
  std::uint32_t store;  // index into Program::stores (a store outside streams)
  bool operator==(const StoreRoot&) const = default;
};
struct KeepRoot {
  ir::ValueId value;  // its home is launch
  bool operator==(const KeepRoot&) const = default;
};
struct StreamRoot {
  ir::StreamId stream;  // a stream run for the stores in its body
  bool operator==(const StreamRoot&) const = default;
};
struct FillRoot {
  ir::ValueId value;  // evaluated now (into its home, if it has one), for a store further down the list
  bool operator==(const FillRoot&) const = default;
};
struct PartRoot {
  ir::ValueId reduce;  // its states over the group's part of a split axis; what reads it later merges them
  bool operator==(const PartRoot&) const = default;
};
struct AccumulateRoot {
  ir::ValueId reduce;  // the same, in memory from the start: each instance adds its element to the states of all results
  bool operator==(const AccumulateRoot&) const = default;
};
using Root = std::variant<StoreRoot, KeepRoot, StreamRoot, FillRoot, PartRoot, AccumulateRoot>;

struct Phase {
  std::string name;
  // The axes that tell the instances of this phase apart, slow to fast. They are bound before a root is evaluated: by the group
  // through their grid digits, and by loops of the worker around all roots through the others.
  std::vector<ir::AxisId> instance_axes;
  // Of instance axes and of those that roots loop over; an axis that is not listed is one step digit. In a nest of loops one axis
  // takes the lanes: the first one listed with lane digits, unless an instance axis has them; others then run as steps.
  place::Placement placement;
  std::vector<Root> roots;  // in order
  bool operator==(const Phase&) const = default;
};

struct Mapping {
  std::vector<Phase> phases;
  std::map<ir::ValueId, Home> homes;  // absent: reload
  std::map<ir::AxisId, int> splits;   // reduced axes that are cut into so many parts, a group each
  std::set<ir::AxisId> accumulated;   // those of them whose reductions go by AccumulateRoot where they can
  std::set<ir::ValueId> two_passes;   // reductions by mean_var that read their elements twice instead of merging moments
  std::map<ir::AxisId, int> full;     // of axes that lanes hold whole: how many of the copies are never beyond the extent
  bool apart = false;                 // lanes go apart, in subgroups
  int packed = 1;                     // so many groups of the kernel share a thread group, where lanes go apart
  bool past_caches = false;           // stores go past the caches
  bool ahead = false;                 // a group fetches what the next one reads
  bool operator==(const Mapping&) const = default;
};

// How many elements of an axis a group holds at once in this phase, without a loop; nothing: it loops over it, or has a point.
std::optional<std::int64_t> held_whole(const Phase& phase, ir::AxisId axis);

}  // namespace cosmati::plan
