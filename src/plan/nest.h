// nest: where the points of one nest of loops sit, from the placement of its phase. It says what lowering makes of a placement,
// for proofs and pictures. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "place/layout.h"
#include "plan/mapping.h"

namespace cosmati::plan {

// Indices of groups and of lanes that the phase has.
place::Counts workers_of(const Phase& phase, const place::Extents& extents);
// The points of the instances and of `axes`, slow to fast, with every size counted. in_order: by a reduction that takes its
// elements in their order, one by one.
place::Placement nest(const Phase& phase, std::vector<ir::AxisId> axes, bool in_order, const place::Extents& extents);

}  // namespace cosmati::plan
