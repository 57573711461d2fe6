// choose: which axes take the lanes and how many neighbours a worker holds, where no knob says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "plan/facts.h"
#include "plan/knobs.h"
#include "plan/lanes.h"
#include "plan/target.h"

namespace cosmati::plan {

// Throws Error{bad_knob} for a knob that this program cannot have.
Lanes choose_lanes(const ir::Program& p, const Mapping& m, const Facts& facts, const Target& target, const Knobs& knobs);

}  // namespace cosmati::plan
