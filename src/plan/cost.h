// cost: what a launch is expected to take, by named terms in microseconds. It orders candidates; it does not foretell times.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "kernel/launch.h"
#include "kernel/work.h"
#include "plan/target.h"

namespace cosmati::plan {

// What the planner knows of the arguments beyond the facts, for the price only.
using kernel::Shape;

struct Cost {
  double compute_us = 0;  // of the worker that has most to do
  double memory_us = 0;   // bytes from beyond each cache over its bandwidth, the slowest level
  double start_us = 0;    // waking other workers, phase by phase
  double total_us = 0;    // start + root of compute squared + memory squared, phase by phase
};

Cost cost(const kernel::Work& work, const Shape& shape, const Target& target);

}  // namespace cosmati::plan
