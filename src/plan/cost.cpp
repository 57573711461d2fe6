// Arithmetic and memory overlap, but not fully: between their sum and the larger one lies a root of their powers.
// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// Where a worker runs many groups at once, so that one computes while others wait: memory, instructions and what a group waits
// for by itself, wave by wave.
double threads_of(const kernel::Phase& p) {
  constexpr double usual_threads = 64;
  return p.apart ? p.lanes * p.packed : usual_threads;
}

Cost of_groups(const kernel::Kernel& k, const std::vector<kernel::Work::Phase>& phases, const Target& t) {
  constexpr double registers_of_any = 48, registers_of_value = 0.75;
  Cost c;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const kernel::Work::Phase& phase = phases[i];
    const kernel::Phase& p = k.phases[i];
    if (phase.groups == 0) continue;
    const double threads = threads_of(p), packed = p.apart ? p.packed : threads;
    const double registers = std::min(255.0, registers_of_any + registers_of_value * phase.live);
    const double at_once =
        std::max(1.0, std::floor(std::min({t.threads_of_worker / threads, t.registers_of_worker / (registers * threads),
                                           t.most_groups_of_worker})));
    const double blocks = phase.groups / packed, workers = std::min(blocks, static_cast<double>(t.workers));
    const double waves = std::max(1.0, blocks / (t.workers * at_once));
    const double chain = phase.latency / t.cycles_per_us;
    // One subgroup by itself issues an instruction in so many cycles; the first waits for most of what others overlap.
    constexpr double alone = 2.5, of_first = 0.7;
    const double own = alone * phase.busy / std::max(1.0, p.lanes / static_cast<double>(t.subgroup)) / t.cycles_per_us;
    // A thread that is alone takes the place of a subgroup.
    const double subgroups = p.apart ? 1 : 1.0 / t.subgroup;
    const double issue = phase.groups * subgroups * phase.busy / (t.schedulers * std::max(1.0, workers) * t.cycles_per_us);
    double all = 0, near = 0, far = 0;
    for (const kernel::Touched& touched : phase.footprint) {
      if (k.buffers[touched.buffer].kind == kernel::Buffer::Kind::worker_scratch) continue;  // on the chip
      all += kernel::bytes({touched});
      // What is the same for all groups stays near.
      if (const double own = kernel::bytes({touched}); touched.stored || own > t.caches[0] / 2) near += touched.beyond[0];
      far += touched.beyond[1];
    }
    if (all <= t.caches[1]) far = 0;
    // What is read again is found nearer, and takes its turn beside the rest in part.
    constexpr double beside = 0.25;
    const double again = std::max(0.0, near - (far > 0 ? far : all)) / t.shared_per_us[0] * beside;
    const double once = far > 0 ? far / t.shared_per_us[1] : std::min(near, all) / t.shared_per_us[0];
    const double memory = std::max(once + again, all / (workers * t.bytes_per_us[0]));
    const double waits = waves * chain;
    c.compute_us += std::sqrt(issue * issue + waits * waits);
    c.memory_us += memory;
    const double start = t.start_us + of_first * chain + (p.apart ? own : 0);
    c.start_us += start;
    // The last group begins when all before it have been started, and is by itself.
    c.total_us += std::max(start + std::sqrt(memory * memory + issue * issue + waits * waits),
                           start + chain / 2 + blocks / t.groups_per_us);
  }
  return c;
}

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

kernel::Bytes caches_of(const kernel::Kernel& k, const Target& t) {
  kernel::Bytes caches = t.caches;
  if (t.subgroup == 0) return caches;
  double most = 1;
  for (const kernel::Phase& p : k.phases)
    most = std::max(most, std::min(t.threads_of_worker / threads_of(p), t.most_groups_of_worker));
  caches[0] /= most;
  return caches;
}

const Cost impossible = {infinite, infinite, infinite, infinite};

Cost cost(const kernel::Kernel& k, const std::vector<kernel::Work::Phase>& phases, const Target& t, Traffic traffic) {
  if (t.subgroup > 0) return of_groups(k, phases, t);
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
  const std::vector<std::int64_t> params = params_of(work.kernel(), shape);
  if (!kernel::meets_conditions(work.kernel(), params)) return impossible;
  return cost(work.kernel(), work(params, caches_of(work.kernel(), target)), target, traffic);
}

}  // namespace cosmati::plan
