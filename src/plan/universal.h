// universal: the mapping that accepts every program on every device. Program axes sit on the grid, one worker an instance; every
// other axis is a loop. It decides the phases, what each keeps for later ones, and which values get a home instead of being
// evaluated again.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/knobs.h"
#include "plan/mapping.h"

namespace cosmati::plan {

// Pairs (in, out) of tensors that are exactly the same memory at launch.
using Aliases = std::set<std::pair<ir::TensorId, ir::TensorId>>;

// `program` has its replaces inlined. Throws Error{bad_knob} for a home that is impossible.
Mapping universal(const ir::Program& program, const Knobs& knobs, const Aliases& aliases);

}  // namespace cosmati::plan
