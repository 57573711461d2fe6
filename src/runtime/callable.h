// Callable: what calls and launches are made of. A function makes the kernels that it needs; a package has one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <cosmati/launch.h>

#include "runtime/bind.h"
#include "runtime/device.h"
#include "runtime/prepared.h"

namespace cosmati::runtime {

class Callable {
 public:
  Callable(Instances instances, Device on) : instances(std::move(instances)), device(std::move(on)) {}
  virtual ~Callable() = default;
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  // Everything a call checks, and the kernel of it.
  std::shared_ptr<const Prepared> prepare(Matched matched, const kernel::Queue* queue = nullptr);
  // On `queue`, or null for the device's own, which is waited for.
  void call(Matched matched, const kernel::Queue* queue, const Fraction& progress = {});
  // The same; arguments that are left out at the end are not given.
  void call_in_order(Matched given, const kernel::Queue* queue = nullptr);
  // Throws Error{bad_argument} for a stream of another device.
  const kernel::Queue* queue_of(const Stream& stream) const;
  const language::Signature& signature() const { return instances.program().source().signature(); }

  const Instances instances;
  const Device device;

 protected:
  // The kernel of arguments with these facts. Throws Error where there is none.
  virtual std::shared_ptr<const Kernel::Impl> kernel_of(const Bound& bound, const plan::Facts& facts) = 0;

 private:
  std::shared_ptr<ScratchPool> scratch_behind(const kernel::Queue* queue) const;

  PreparedTable table_;
};

// Checks as a call does. The arguments are copied.
Launch make_launch(std::shared_ptr<Callable> callable, Matched given);

}  // namespace cosmati::runtime
