// choices: which knobs a program has and which of their values are worth trying, for whoever searches by measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/facts.h"
#include "plan/target.h"

namespace cosmati::plan {

struct Choice {
  std::string knob;                      // full name
  std::vector<std::string> values;       // each is legal with the other knobs automatic, or with the axis of a chunk on the lanes
  std::optional<std::string> automatic;  // what an absent knob means, where that is one of the values on every call
};

// In the order of knobs.def; a knob with less than two values is left out. `program` has its replaces inlined.
std::vector<Choice> choices(const ir::Program& program, const Target& target, const Facts& facts);

}  // namespace cosmati::plan
