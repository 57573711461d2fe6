// The kernels of one Function: from memory, else from the disk cache, else planned, lowered and compiled, once per (types,
// facts). SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <cosmati/runtime.h>

#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "plan/plan.h"
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
  Got get(const Instance& instance, const plan::Facts& facts);
  // The plan for these facts, and that plan as kernel IR. Nothing is kept and nothing compiled.
  plan::Plan planned(const Instance& instance, const plan::Facts& facts) const;
  kernel::Kernel lowered(const Instance& instance, const plan::Plan& plan) const;

  std::size_t compiles() const { return compiles_; }

 private:
  Got make(const Instance& instance, const plan::Facts& facts);
  std::shared_ptr<const Kernel::Impl> compile(const Instance& instance, const plan::Facts& facts, const std::string& key);
  std::shared_ptr<const Kernel::Impl> from_disk(const plan::Facts& facts, const std::string& key);
  std::string key_of(const Instance& instance, const plan::Facts& facts) const;

  const Device device_;
  const Options& options_;
  const std::shared_ptr<DiskCache> disk_;  // null: none
  OnceMap<Kernel::Impl> kernels_;
  std::atomic<std::size_t> compiles_ = 0;
};

}  // namespace cosmati::runtime
