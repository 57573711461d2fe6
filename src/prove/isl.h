// The integer set library behind one question. Everything else about it stays in isl.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cosmati::prove {

// Whether the set, in isl's own notation, has no integer point. Nothing when isl gave up or did not understand.
std::optional<bool> isl_empty(const std::string& set);
// Whether every point of `whole` is in one of the parts.
std::optional<bool> isl_covered(const std::string& whole, const std::vector<std::string>& parts);

}  // namespace cosmati::prove
