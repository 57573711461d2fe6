// join: the placement of an elementwise operation, which is free where its operands agree, and what it does to operands of which
// each worker holds a part.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "place/layout.h"

namespace cosmati::place {

// Whether `op` passes parts that `fold` merges; `arguments` as in passes.def. `type` is that of the arguments.
bool passes(ops::Op fold, ops::Op op, std::string_view arguments, DType type);
// The same for a reducer: its state is its result, and one operation merges it (or the operation selects).
bool passes(const ir::Program& program, ir::ReducerId reducer, ops::Op op, std::string_view arguments, DType type);

struct Joined {
  Placement result;
  std::vector<bool> renamed;  // by operand: it is in other registers than the result
};
// Operands are complete placements on the same hardware, `type` that of their elements. The result has the axes of all of them,
// each placed as in the first operand that has it, and holds parts where an operand does.
// Refused: elsewhere, unsettled, not_first, does_not_pass, indivisible.
Result<Joined> join(const ir::Program& program, ops::Op op, DType type, const std::vector<Placement>& operands,
                    const Extents& extents);

// One use of a value inside the loop that carries it: the operation, and its arguments as in passes.def.
struct PassingUse {
  ops::Op op;
  std::string arguments;
  DType type;
};
// Whether the settle of a value may wait until after the loop that carries it: every use inside passes. Refused: does_not_pass.
Verdict settles_after(const ir::Program& program, ir::ReducerId reducer, const std::vector<PassingUse>& uses);

}  // namespace cosmati::place
