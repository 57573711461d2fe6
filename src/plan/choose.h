// choose: which axes take the lanes, how many neighbours a worker holds and how many a group runs, by the knobs lanes, lane_axes,
// tile and chunk, and by a rule where they are silent.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "plan/facts.h"
#include "plan/knobs.h"
#include "plan/lanes.h"
#include "plan/target.h"

namespace cosmati::plan {

// Refused: a knob that this program cannot have.
place::Result<Lanes> choose_lanes(const ir::Program& p, const Mapping& m, const Facts& facts, const Target& target,
                                  const Knobs& knobs);

// Whether every set knob shows in some phase of the finished mapping. Refused: one_at_a_time, not_on_lanes.
place::Verdict all_used(const ir::Program& p, const Mapping& m, const Knobs& knobs);

}  // namespace cosmati::plan
