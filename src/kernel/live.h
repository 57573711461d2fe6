// How many values of a lane are alive at once, in the order in which a kernel has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernel/kernel.h"
#include "kernel/varying.h"

namespace cosmati::kernel {

// In 32-bit registers, of floats that differ between lanes: integers and conditions follow from a few numbers.
double most_live(const Kernel& k, const Phase& phase, const Varying& varying);

}  // namespace cosmati::kernel
