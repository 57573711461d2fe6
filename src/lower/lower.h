// lower: writes a Mapping down as kernel IR. It decides nothing: phases, grid digits, loops and homes are the Mapping's.
// In: a program without replaces, a mapping of it, facts. Out: verified kernel IR with transcendental operations not yet
// expanded.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/program.h"
#include "kernel/kernel.h"
#include "plan/facts.h"
#include "plan/mapping.h"

namespace cosmati::lower {

kernel::Kernel lower(const ir::Program& program, const plan::Mapping& mapping, const plan::Facts& facts);

}  // namespace cosmati::lower
