// What a Function is inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <cosmati/runtime.h>

#include "library/kernels.h"
#include "runtime/callable.h"

namespace cosmati {

struct Function::Impl : runtime::Callable {
  Impl(Program program, Device on, Options with);

  // Arguments that need no memory and no outputs, with what a plan depends on.
  struct Sketch {
    runtime::Bound bound;
    plan::Facts facts;
    kernel::Shape shape;
  };
  Sketch sketch(runtime::Matched matched) const;
  std::string emit(const Sketch& sketch, const std::string& as);

  const Options options;
  library::Kernels kernels;

 protected:
  std::shared_ptr<const Kernel::Impl> kernel_of(const runtime::Bound& bound, const plan::Facts& facts) override {
    const kernel::Shape shape = runtime::shape_of(bound.instance->program, bound.inputs);
    return kernels.get(*bound.instance, runtime::relied_on(facts, bound.inputs.tensors), shape).kernel;
  }
};

}  // namespace cosmati
