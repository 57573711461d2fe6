// lanes: puts axes of a mapping's phases on the lanes of a group and into registers, as digits of their placements. What is
// legal is decided here, phase by phase; what is good is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "place/refused.h"
#include "plan/mapping.h"

namespace cosmati::plan {

struct Lanes {
  int lanes = 1;                   // of a group
  std::vector<ir::AxisId> axes;    // which take them, the preferred ones first
  int subgroup = 0;                // of so many lanes each, where there are more; 0: one
  std::set<ir::AxisId> resident;   // which a group holds whole: lanes and copies cover them
  std::map<ir::AxisId, int> full;  // of those, how many of the copies need no test
  std::map<ir::AxisId, int> tile;  // how many neighbours, times the lanes on a lane axis, a worker holds in registers; absent: 1
  std::map<ir::AxisId, int> vector;  // how many neighbours each lane of a lane axis has side by side; absent: 1
  std::map<ir::AxisId, int> chunk;   // how many of those a worker runs one after the other, where the grid has the rest
};

// Whether the instances of a phase add to states in memory (AccumulateRoot).
bool accumulates(const Phase& phase);
// Whether registers can hold neighbours along `axis` in this phase. Refused: not_in_any_phase (here, at least), steered_loop,
// late_range. Lanes also: one_at_a_time.
place::Verdict can_have_copies(const ir::Program& p, const Mapping& m, const Phase& phase, ir::AxisId axis);
place::Verdict can_have_lanes(const ir::Program& p, const Mapping& m, const Phase& phase, ir::AxisId axis);
// Whether each lane can have neighbours side by side. Refused beside what lanes are: late_range.
place::Verdict can_have_vectors(const ir::Program& p, const Mapping& m, const Phase& phase, ir::AxisId axis);
// Whether the lanes of a group can hold the whole axis in this phase. Refused beside what lanes are: not_whole.
place::Verdict can_be_resident(const ir::Program& p, const Mapping& m, const Phase& phase, ir::AxisId axis);
// Those of `axes` that get the lanes of this phase, the preferred ones first. An axis that tells instances apart takes them
// whole, so it gets them alone, and where it is the first that can have them.
std::vector<ir::AxisId> lane_axes(const ir::Program& p, const Mapping& m, const Phase& phase,
                                  const std::vector<ir::AxisId>& axes);
// The values that the roots of the phase evaluate.
std::set<ir::ValueId> values_of(const ir::Program& p, const Mapping& m, const Phase& phase);
// Rewrites the placement of every phase.
void put_on_lanes(const ir::Program& p, Mapping& m, const Lanes& lanes);

}  // namespace cosmati::plan
