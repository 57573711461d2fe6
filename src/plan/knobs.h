// Planner knobs: the rows of knobs.def, parsed from `--set name=value`.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

namespace cosmati::plan {

using Knobs = std::map<std::string, std::string>;  // full name ("home.score") -> value

// Throws Error{unknown_knob} for a name no row has, naming the ones there are, and Error{bad_knob} for a value outside the row's.
void check_knobs(const Knobs& knobs);

}  // namespace cosmati::plan
