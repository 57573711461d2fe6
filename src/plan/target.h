// Target: what the planner knows of the machine that a plan is for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cosmati::plan {

struct Target {
  std::string name;
  int lanes;  // 32-bit elements of one vector register
};
// "cpu" is this processor, "sim" the same on every machine. Anything else has no lanes.
Target target_named(const std::string& name);

}  // namespace cosmati::plan
