// The names that every text knows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/ops.h"

namespace cosmati::language {

// The operation that is called by this name. Operations with an operator are not callable.
std::optional<ops::Op> function_op(std::string_view name);
// Functions, reducers, types, and the calls with a meaning of their own (contract, extent, bits_f32, bits_u32).
bool is_builtin(std::string_view name);
const std::vector<std::string>& builtin_names();

}  // namespace cosmati::language
