// Target: what the planner knows of the machine that a plan is for, as data.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernel/work.h"

namespace cosmati::plan {

struct Target {
  std::string name;
  int lanes = 1;     // 32-bit elements of one vector register, or the usual threads of a group
  int subgroup = 0;  // lanes go apart in subgroups of so many; 0: they go together. Of such a target a worker runs several
                     // groups at once:
  double threads_of_worker = 2048, registers_of_worker = 65536, most_groups_of_worker = 32;
  double schedulers = 4;        // that issue an instruction of a subgroup each cycle
  double groups_per_us = 1600;  // that are started
  double about_equal = 1.15;    // candidates within that of the cheapest are not told apart
  int workers = 1;              // that run groups at the same time
  std::int64_t most_workers_of_group = 32;
  int most_packed = 1;                  // groups that share a thread group
  int offset_bits = 64;                 // in which offsets inside a parameter are computed
  std::string prices = "common cores";  // where the rates are from
  // Without rates nothing is priced: the rule chooses.
  bool priced = false;
  kernel::Rates rates = {};
  double cycles_per_us = 0;
  double start_us = 0;               // until other workers have begun
  double task_cycles = 0;            // the least work that is given to another worker
  kernel::Bytes caches = {};         // bytes that one worker has of each level
  kernel::Bytes bytes_per_us = {};   // from beyond each level, to one worker
  kernel::Bytes shared_per_us = {};  // and to all of them together
};
// "cpu" is this processor, "sim" the same on every machine; anything else has no lanes. workers: 0 for all.
Target target_named(const std::string& name, int workers = 0);
// Four cores of 256-bit vectors, the same on every machine: for pages and tests about prices.
Target example_target();

}  // namespace cosmati::plan
