// What a misspelt name may have meant.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::support {

// "did you mean NAME" for the nearest candidate, or nothing when none is near.
std::string suggest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace cosmati::support
