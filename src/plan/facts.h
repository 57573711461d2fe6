// Facts: what a compiled kernel may rely on about its arguments, beyond the program. They are read from the arguments, printed as
// part of the plan's domain, and checked at every launch by being recomputed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "plan/universal.h"

namespace cosmati::plan {

struct Facts {
  // per tensor and dimension: the stride is exactly one element
  std::vector<std::vector<bool>> unit_stride;
  Aliases aliases;
  bool operator==(const Facts&) const = default;
};

}  // namespace cosmati::plan
