// What a misspelt name may have meant.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::support {

// "did you mean NAME" for the nearest candidate, or nothing when none is near.
std::string suggest(std::string_view name, const std::vector<std::string>& candidates);
// The same for the name of an element type, which C and NumPy call otherwise: float32, int, half.
std::string suggest_dtype(std::string_view name, const std::vector<std::string>& others = {});

}  // namespace cosmati::support
