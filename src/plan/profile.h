// profile: a target with the rates that `cosmati calibrate` measured, instead of those of common cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "plan/target.h"

namespace cosmati::plan {

// `common` with the figures of the text of a profile. Throws Error{bad_argument} that says what is missing or impossible.
Target with_profile(Target common, const std::string& profile);

}  // namespace cosmati::plan
