// legal: what the placements of a finished mapping must satisfy, asked of the rules of place and the proofs of prove: digits are
// well formed, groups fit the device, every element has one owner that stores it, and ordered reductions stay in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernel/launch.h"
#include "plan/facts.h"
#include "plan/mapping.h"
#include "plan/target.h"

namespace cosmati::plan {

place::Verdict legal(const ir::Program& program, const Mapping& mapping, const Facts& facts, const Target& target);
// Whether offsets inside every parameter fit what the target computes them in. Refused: offset_overflow.
place::Verdict offsets_fit(const ir::Program& program, const kernel::Shape& shape, const Target& target);

}  // namespace cosmati::plan
