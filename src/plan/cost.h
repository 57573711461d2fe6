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

// How a mapping uses the caches beyond what its loops touch.
struct Traffic {
  bool past_caches = false;  // results go to memory at once
  bool turns = false;        // loops that read and loops that compute take turns,
  bool ahead = false;        // unless what they read is fetched ahead
};

struct Cost {
  double compute_us = 0;  // of the worker that has most to do
  double memory_us = 0;   // bytes from beyond each cache over its bandwidth, the slowest level
  double start_us = 0;    // waking other workers, phase by phase
  double total_us = 0;    // start + compute and memory, which overlap in part, phase by phase
};

// What a group has of the caches, where several run at once.
kernel::Bytes caches_of(const kernel::Kernel& k, const Target& target);
// Of a kernel whose conditions the launch does not meet.
extern const Cost impossible;
// `k` is what the work is of.
Cost cost(const kernel::Kernel& k, const std::vector<kernel::Work::Phase>& phases, const Target& target, Traffic traffic = {});
Cost cost(const kernel::Work& work, const Shape& shape, const Target& target, Traffic traffic = {});

}  // namespace cosmati::plan
