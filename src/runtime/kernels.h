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
#include "plan/planner.h"
#include "runtime/bind.h"
#include "runtime/disk_cache.h"
#include "runtime/kernel_image.h"
#include "runtime/once_map.h"

namespace cosmati {

struct Kernel::Impl {
  runtime::KernelImage image;  // without the object
  plan::Facts facts;
  std::unique_ptr<kernel::Executable> executable;  // none on the oracle
};

}  // namespace cosmati

namespace cosmati::runtime {

plan::Facts facts_of(const std::vector<TensorView>& tensors, const Aliases& aliases);
plan::Shape shape_of(const ir::Program& program, const oracle::Inputs& inputs);

// The first condition of the kernel's domain that arguments with these facts do not keep.
std::optional<std::string> outside_domain(const Kernel::Impl& kernel, const ir::Program& program, const plan::Facts& facts);

// Thread-safe. Different kernels are made in parallel; who asks for one that is being made waits for it.
class Kernels {
 public:
  Kernels(Device device, const Options& options);

  struct Got {
    std::shared_ptr<const Kernel::Impl> kernel;
    bool compiled;  // by this call
  };
  Got get(const Instance& instance, const plan::Facts& facts, const plan::Shape& shape);
  // The plan for these facts and this shape, and that plan as kernel IR. Nothing is compiled.
  plan::Plan planned(const Instance& instance, const plan::Facts& facts, const plan::Shape& shape);
  kernel::Kernel lowered(const Instance& instance, const plan::Plan& plan) const;

  std::size_t compiles() const { return compiles_; }

 private:
  // One that is asked for: what it is of, and how it is planned.
  struct Wanted {
    const Instance& instance;
    const plan::Facts& facts;
    const plan::Shape& shape;
    plan::Knobs knobs;
  };
  std::shared_ptr<const plan::Planner> planner(const Instance& instance, const plan::Facts& facts, const plan::Shape& shape);
  std::shared_ptr<const plan::Planner> planner(const Instance& instance, const plan::Facts& facts, plan::Planner::Search search);
  plan::Knobs choice(const Instance& instance, const plan::Facts& facts, const plan::Shape& shape);
  Got make(const Wanted& wanted);
  std::shared_ptr<const Kernel::Impl> made_before(const Wanted& wanted);
  std::shared_ptr<const Kernel::Impl> compile(const Wanted& wanted, const std::string& key);
  std::shared_ptr<const Kernel::Impl> from_disk(const plan::Facts& facts, const std::string& key);
  std::string key_of(const Instance& instance, const plan::Facts& facts) const;

  const Device device_;
  const Options& options_;
  const std::shared_ptr<DiskCache> disk_;  // null: none
  OnceMap<Kernel::Impl> kernels_;
  OnceMap<plan::Planner> planners_;
  std::map<std::string, plan::Knobs> choices_;  // by types, facts and shape
  std::atomic<std::size_t> compiles_ = 0;
};

}  // namespace cosmati::runtime
