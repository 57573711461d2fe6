// Which values differ between the lanes of a group. What does not depend on the lane is uniform: it is computed once a group.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

struct Varying {
  std::vector<bool> exprs, vars;
  bool operator()(ExprId e) const { return exprs[e.index]; }
  bool operator()(VarId v) const { return vars[v.index]; }
};
// Of a kernel that keeps the laws up to K16.
Varying varying(const Kernel& k);

}  // namespace cosmati::kernel
