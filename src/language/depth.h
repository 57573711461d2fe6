// How many operations in a row a value depends on. Later walks recurse over them, so both forms of a program limit them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace cosmati::language {

// Extends `depths`, one a value, to the values of p that are new. Throws Error{not_supported} where one is too deep: at `where`,
// else where that value was made.
void limit_depth(const ir::Program& p, std::vector<std::uint32_t>& depths, const Where* where);

}  // namespace cosmati::language
