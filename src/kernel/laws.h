// The laws of kernel IR as a question (verify.cpp lists them), and the typing of operations that they rest on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

struct BrokenLaw {
  std::string what;  // "K4: ..." with the names
  StmtId at;         // the innermost statement, where there is one
};
std::optional<BrokenLaw> broken_law(const Kernel& k);

// The result type of an operation other than cast and bits; there are as many arguments as its arity.
DType result_type(const Kernel& k, ops::Op op, const std::vector<ExprId>& args);

}  // namespace cosmati::kernel
