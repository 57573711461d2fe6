// universal: the phases of a program and the homes of its values, for every device: what each phase keeps for later ones, which
// axes tell its instances apart, and which values are stored instead of being evaluated again. Where axes go is decided by lanes.
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

// Whether a knob decides about phases and homes; universal() reads no other.
bool decides_phases(const std::string& knob);

// `program` has its replaces inlined. Refused: homes and splits that are impossible. Throws Error{not_supported} for a program
// that no mapping can run.
place::Result<Mapping> universal(const ir::Program& program, const Knobs& knobs, const Aliases& aliases);

}  // namespace cosmati::plan
