// Results held against the oracle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include <cosmati/runtime.h>

#include "oracle/oracle.h"

namespace cosmati::library {

// What the oracle says that a run writes.
struct Reference {
  oracle::Result wide;
  std::optional<oracle::Result> typed;  // where some output is not floating-point
};
// inputs.tensors hold the arguments as they were before the run.
Reference reference(const ir::Program& p, const oracle::Inputs& inputs, const Fraction& progress = {});
// `got` are views of the outputs (outs and inouts in declared order), of the shapes that `reference` has.
std::vector<Judgement> judge(const ir::Program& p, const Reference& reference, const std::vector<TensorView>& got);

// Copies an oracle result into a view, cast to its dtype. `from` is the dtype of the oracle's scalars (that of the tensor).
void write(const oracle::Array& array, const TensorView& view);

}  // namespace cosmati::library
