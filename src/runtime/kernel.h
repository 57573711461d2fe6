// What a Kernel is inside: code, what launching it needs to know, and the facts that it relies on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cosmati/launch.h>

#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "plan/facts.h"
#include "runtime/bind.h"

namespace cosmati::runtime {

struct KernelImage {
  std::string name, plan, explanation;
  std::vector<std::string> domain;
  kernel::Kernel interface;  // params, buffers and their sizes; the phases have no bodies
};

}  // namespace cosmati::runtime

namespace cosmati {

struct Kernel::Impl {
  runtime::KernelImage image;
  plan::Facts facts;
  std::unique_ptr<kernel::Executable> executable;
  // In place of an executable: reads and writes the arguments themselves.
  std::function<void(const ir::Program& program, const oracle::Inputs& inputs, const Fraction& progress)> interpret;
};

}  // namespace cosmati

namespace cosmati::runtime {

// All that holds for these arguments.
plan::Facts facts_of(const std::vector<TensorView>& tensors, const Aliases& aliases);
// What code for them relies on: in each tensor one dimension of stride 1, and one of a single element only where there is no
// other.
plan::Facts relied_on(plan::Facts facts, const std::vector<TensorView>& tensors);

// Whether it begins where a Param of unaligned is 0.
bool is_aligned(const TensorView& view);
kernel::Shape shape_of(const ir::Program& program, const oracle::Inputs& inputs);

// The first condition of the kernel's domain that arguments with these facts do not keep.
std::optional<std::string> outside_domain(const Kernel::Impl& kernel, const ir::Program& program, const plan::Facts& facts);

}  // namespace cosmati::runtime
