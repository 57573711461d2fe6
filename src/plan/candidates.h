// candidates: the settings of the knobs that are worth pricing, each complete, so that a plan which keeps them replays.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "plan/facts.h"
#include "plan/knobs.h"
#include "plan/lanes.h"
#include "plan/target.h"

namespace cosmati::plan {

// The first is what the rule makes of `fixed`; every one holds `fixed`, and all differ. Not all of them are legal. `mapping` and
// `lanes` are what the rule makes of `fixed`.
std::vector<Knobs> candidate_knobs(const ir::Program& program, const Mapping& mapping, const Lanes& lanes, const Facts& facts,
                                   const Target& target, const Knobs& fixed);

}  // namespace cosmati::plan
