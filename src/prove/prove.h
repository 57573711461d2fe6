// What must be true of a program on every legal argument, asked once per program. A negative answer is a value with a witness.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::prove {

struct Refusal {
  ErrorCode code;
  Where where;
  std::string message;  // the text of the language page, with the user's names
  std::string hint, origin;
};
// Proven, or refused with the reason. Unknown is refused.
struct Proof {
  std::optional<Refusal> refusal;
  explicit operator bool() const { return !refusal; }
};

// A launch-level bound on an index expression: sum of coefficient * product of extents and scalars.
struct LinearTerm {
  std::int64_t coefficient;
  std::vector<ir::ValueId> factors;  // Extent and ScalarRef nodes
};
using Bound = std::vector<LinearTerm>;

// All program facts: accesses in bounds (out_of_bounds, unproved_gather), stores injective and disjoint (store_conflict), outs
// covered (partial_out), one reader per stored inout element (store_conflict). The first refusal, in text order.
Proof prove_program(const ir::Program& program);
// The same as an exception.
void require_proven(const ir::Program& program);

// lo and hi over all instances of the range of an axis that depends on program axes: values that every coordinate satisfies
// lo <= t < hi, in launch-level terms; nullopt where nothing bounds it.
struct Hull {
  Bound lo, hi;
};
std::optional<Hull> hull(const ir::Program& program, ir::AxisId axis);
// The same, each axis asked once: a proof takes longer than what most passes do with its result.
class Hulls {
 public:
  explicit Hulls(const ir::Program& program) : program_(program) {}
  const std::optional<Hull>& of(ir::AxisId axis) {
    const auto [known, fresh] = known_.try_emplace(axis);
    if (fresh) known->second = hull(program_, axis);
    return known->second;
  }

 private:
  const ir::Program& program_;
  std::map<ir::AxisId, std::optional<Hull>> known_;
};

// Whether `out` may be exactly the same memory as `in` (same pointer, strides and extents): every instance reads of `in` only
// elements that it alone stores in `out`, and reads them before it stores any of them.
Proof prove_exact_alias(const ir::Program& program, ir::TensorId in, ir::TensorId out);

}  // namespace cosmati::prove
