// What a Function is inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <cosmati/runtime.h>

#include "runtime/bind.h"
#include "runtime/kernels.h"
#include "runtime/prepared.h"

namespace cosmati {

struct Function::Impl {
  Impl(Program program, Device on, Options with);

  // Everything a call checks, and the kernel of it.
  std::shared_ptr<const runtime::Prepared> prepare(runtime::Matched matched);
  void call(runtime::Matched matched, const Fraction& progress = {});
  // Arguments that need no memory and no outputs, with what a plan depends on.
  struct Sketch {
    runtime::Bound bound;
    plan::Facts facts;
    plan::Shape shape;
  };
  Sketch sketch(runtime::Matched matched) const;
  const language::Signature& signature() const { return instances.program().source().signature(); }

  const runtime::Instances instances;
  const Device device;
  const Options options;
  runtime::Kernels kernels;
  runtime::PreparedTable table;
};

}  // namespace cosmati
