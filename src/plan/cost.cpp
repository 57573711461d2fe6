// Arithmetic and memory overlap, but not fully: between their sum and the larger one lies a root of their powers.
// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.h"

#include <algorithm>
#include <cmath>

namespace cosmati::plan {
namespace {

// 1 would be their sum, infinity the larger one.
constexpr double overlapping = 2, taking_turns = 1.2;

// What is beyond a cache comes in streams; where an access goes elsewhere, so many bytes could have come.
constexpr kernel::Bytes bytes_of_a_jump = {0, 160, 256};
constexpr double line = 64;

double together(double compute, double memory, double power) {
  return std::pow(std::pow(compute, power) + std::pow(memory, power), 1 / power);
}

}  // namespace

Cost cost(const std::vector<kernel::Work::Phase>& phases, const Target& t, Traffic traffic) {
  Cost c;
  const std::size_t last = t.caches.size() - 1;
  for (const kernel::Work::Phase& phase : phases) {
    if (phase.groups == 0) continue;
    // Not rounded: of two candidates the one with more work must not be cheaper because it gets one worker more.
    const double wanted = std::max(1.0, phase.groups * phase.cycles / t.task_cycles);
    const double tasks = std::min({static_cast<double>(t.workers), phase.groups, wanted});
    const double compute = std::max(1.0, phase.groups / tasks) * phase.cycles / t.cycles_per_us;
    double memory = 0;
    const double all = kernel::bytes(phase.footprint);
    for (std::size_t level = 0; level <= last; ++level) {
      const bool found = all <= t.caches[level] * (level == last ? 1 : tasks);  // by a launch that follows another
      double bytes = 0;
      for (const kernel::Touched& touched : phase.footprint) {
        // Only whole lines go past the caches.
        const double piece = touched.piece > 0 ? touched.piece : touched.visit;
        const bool past = touched.stored && traffic.past_caches && piece >= line && !touched.ragged;
        if (found && !(past && level == last)) continue;
        // What is stored is read first, unless it goes past the caches, which only memory sees; what would have been found in a
        // cache is read by somebody from memory then.
        const double jumps = 1 + bytes_of_a_jump[level] / std::max(touched.visit, line);
        if (!past || level == last) bytes += touched.beyond[level] * jumps * (touched.stored && (!past || found) ? 2 : 1);
      }
      memory = std::max(memory, bytes / std::min(tasks * t.bytes_per_us[level], t.shared_per_us[level]));
    }
    const double start = std::min(1.0, tasks - 1) * t.start_us;
    // What is fetched ahead must stay until its turn.
    const bool stays = phase.turn <= t.caches[1] / 2;
    const bool waits = traffic.turns && !(traffic.ahead && stays);
    c.compute_us += compute;
    c.memory_us += memory;
    c.start_us += start;
    c.total_us += start + together(compute, memory, waits ? taking_turns : overlapping);
  }
  return c;
}

Cost cost(const kernel::Work& work, const Shape& shape, const Target& target, Traffic traffic) {
  return cost(work(params_of(work.kernel(), shape), target.caches), target, traffic);
}

}  // namespace cosmati::plan
