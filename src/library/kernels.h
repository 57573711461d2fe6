// The kernels of one Function: from memory, else from the disk cache, else planned, lowered and compiled, once per (types,
// facts, plan). Which plan is asked for every shape. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cosmati/runtime.h>

#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "library/disk_cache.h"
#include "plan/planner.h"
#include "runtime/bind.h"
#include "runtime/kernel.h"
#include "runtime/once_map.h"

namespace cosmati::library {

// Thread-safe. Different kernels are made in parallel; who asks for one that is being made waits for it.
class Kernels {
 public:
  Kernels(Device device, const Options& options);

  struct Got {
    std::shared_ptr<const Kernel::Impl> kernel;
    bool compiled;  // by this call
  };
  Got get(const runtime::Instance& instance, const plan::Facts& facts, const kernel::Shape& shape);
  // The plan for these facts and this shape, and that plan as kernel IR. Nothing is compiled.
  plan::Plan planned(const runtime::Instance& instance, const plan::Facts& facts, const kernel::Shape& shape);
  kernel::Kernel lowered(const runtime::Instance& instance, const plan::Plan& plan) const;

  std::size_t compiles() const { return compiles_; }
  const plan::Target& target() const { return target_; }

 private:
  // One that is asked for: what it is of, and how it is planned.
  struct Wanted {
    const runtime::Instance& instance;
    const plan::Facts& facts;
    const kernel::Shape& shape;
    plan::Knobs knobs;
  };
  std::shared_ptr<const plan::Planner> planner(const runtime::Instance& instance, const plan::Facts& facts,
                                               const kernel::Shape& shape);
  std::shared_ptr<const plan::Planner> planner(const runtime::Instance& instance, const plan::Facts& facts,
                                               plan::Planner::Search search);
  void require_offsets(const runtime::Instance& instance, const kernel::Shape& shape) const;
  plan::Knobs choice(const runtime::Instance& instance, const plan::Facts& facts, const kernel::Shape& shape);
  Got make(const Wanted& wanted);
  std::shared_ptr<const Kernel::Impl> made_before(const Wanted& wanted);
  std::shared_ptr<const Kernel::Impl> compile(const Wanted& wanted, const std::string& key);
  std::shared_ptr<const Kernel::Impl> from_disk(const plan::Facts& facts, const std::string& key);
  std::string key_of(const runtime::Instance& instance, const plan::Facts& facts) const;

  const Device device_;
  const Options& options_;
  const plan::Target target_;
  const std::shared_ptr<DiskCache> disk_;  // null: none
  runtime::OnceMap<Kernel::Impl> kernels_;
  runtime::OnceMap<plan::Planner> planners_;
  std::map<std::string, plan::Knobs> choices_;  // by types, facts and shape
  std::atomic<std::size_t> compiles_ = 0;
};

}  // namespace cosmati::library
