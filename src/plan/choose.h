// choose: which axes take the lanes, how many neighbours a worker holds and how many a group runs, by the knobs lanes, lane_axes,
// tile and chunk, and by a rule where they are silent.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "plan/facts.h"
#include "plan/knobs.h"
#include "plan/lanes.h"
#include "plan/target.h"

namespace cosmati::plan {

// Throws Error{bad_knob} for a knob that this program cannot have.
Lanes choose_lanes(const ir::Program& p, const Mapping& m, const Facts& facts, const Target& target, const Knobs& knobs);

// Refuses a set knob that no phase of the finished mapping shows.
void require_used(const ir::Program& p, const Mapping& m, const Knobs& knobs);

}  // namespace cosmati::plan
