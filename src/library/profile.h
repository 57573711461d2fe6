// The planner's target on a device: measured rates where this environment has a profile, else those of common cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/device.h>

#include "plan/target.h"

namespace cosmati::library {

// Never throws over a profile: one that is broken, or of another environment, costs a warning a process.
plan::Target target_of(const Device& device);

}  // namespace cosmati::library
