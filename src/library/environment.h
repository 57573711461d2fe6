// The environment of a plan held against this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cosmati::library {

// Warns where the plan carries an environment and it is not this one. A plan that is no JSON is for others to refuse.
void warn_of_another_environment(const std::string& plan);

}  // namespace cosmati::library
