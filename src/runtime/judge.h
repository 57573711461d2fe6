// Results held against the oracle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <cosmati/runtime.h>

#include "oracle/oracle.h"

namespace cosmati::runtime {

// `got` are views of the outputs (outs and inouts in declared order). inputs.tensors hold the arguments as they were before the
// run.
std::vector<Judgement> judge(const ir::Program& p, const oracle::Inputs& inputs, const std::vector<TensorView>& got);

// Copies an oracle result into a view, cast to its dtype. `from` is the dtype of the oracle's scalars (that of the tensor).
void write(const oracle::Array& array, const TensorView& view);

}  // namespace cosmati::runtime
