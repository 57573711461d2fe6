// Arithmetic and memory overlap, but not fully: between their sum and the larger one lies the root of their squares.
// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.h"

#include <algorithm>
#include <cmath>

namespace cosmati::plan {

Cost cost(const kernel::Work& work, const Shape& shape, const Target& t) {
  Cost c;
  for (const kernel::Work::Phase& phase : work(params_of(work.kernel(), shape), t.caches)) {
    if (phase.groups == 0) continue;
    const double wanted = std::max(1.0, phase.groups * phase.cycles / t.task_cycles);
    const double tasks = std::floor(std::min({static_cast<double>(t.workers), phase.groups, wanted}));
    const double compute = std::ceil(phase.groups / tasks) * phase.cycles / t.cycles_per_us;
    double memory = 0;
    const double all = kernel::bytes(phase.footprint);
    for (std::size_t level = 0; level < t.caches.size(); ++level) {
      const bool shared = level + 1 == t.caches.size();
      if (all <= t.caches[level] * (shared ? 1 : tasks)) continue;  // found there by a launch that follows another
      double bytes = 0;
      for (const kernel::Touched& touched : phase.footprint)
        bytes += touched.beyond[level] * (touched.stored ? 2 : 1);  // what is stored is read first
      memory = std::max(memory, bytes / std::min(tasks * t.bytes_per_us[level], t.shared_per_us[level]));
    }
    const double start = tasks > 1 ? t.start_us : 0;
    c.compute_us += compute;
    c.memory_us += memory;
    c.start_us += start;
    c.total_us += start + std::sqrt(compute * compute + memory * memory);
  }
  return c;
}

}  // namespace cosmati::plan
