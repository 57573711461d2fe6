// The oracle's questions about a program on small seeded arguments: cuts, merges, reducer laws.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "ir/program.h"

namespace cosmati::library {

// Throws Error{cut_dependent, reducer_law, ...}.
void check_by_oracle(const ir::Program& p, std::uint64_t seed);

}  // namespace cosmati::library
