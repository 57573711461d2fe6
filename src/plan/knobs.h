// Planner knobs: the rows of knobs.def, parsed from `--set name=value`.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

#include "place/refused.h"

namespace cosmati::plan {

using Knobs = std::map<std::string, std::string>;  // full name ("home.score") -> value

// Throws Error{unknown_knob} for a name no row has, naming the ones there are. Refused: outside_values.
place::Verdict values_fit(const Knobs& knobs);
// The Error{bad_knob} that a refusal becomes where a user set the knobs.
Error refusal(const place::Refused& refused);

}  // namespace cosmati::plan
