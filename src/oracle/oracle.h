// The meaning of programs, executed directly on tile IR. Every test compares with this.
//  wide   float64 with a running error bound per element: how far a correct device result (declared types, each operation
//         within its ulp bound, any reduction tree) may be from the value.
//  typed  the declared types, each elementwise operation correctly rounded, float reductions accumulated in float64 and
//         rounded once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <cosmati/tensor.h>

#include "ir/program.h"

namespace cosmati::oracle {

// Arguments in the order of Program::tensors and Program::scalars; `extents` one per Program::axes (launch-level axes only are
// read; already checked against the arguments by the caller).
struct Inputs {
  std::vector<TensorView> tensors;   // outs may be empty views
  std::vector<ops::Scalar> scalars;  // of the declared dtype
  std::vector<std::int64_t> extents;
};

enum class Mode : std::uint8_t { wide, typed };

// How a `stream tile` is cut: given the range lo .. hi of one execution, the cut points strictly inside it, ascending.
using Cuts = std::function<std::vector<std::int64_t>(std::int64_t lo, std::int64_t hi)>;

struct Options {
  Mode mode = Mode::wide;
  Cuts cuts;                                  // absent: one piece
  std::optional<ir::ValueId> probe;           // also returns this value
  bool merge_streams = false;                 // run every stream with a merge as pieces started from the initial state and merged
  std::function<void(double)> progress = {};  // told the fraction done, 0 .. 1
};

struct Array {  // dense, row-major
  std::vector<std::int64_t> shape;
  std::vector<ops::Scalar> values;
  std::vector<double> error;  // wide: absolute bound per element (inf: unjudged); booleans and integers: 0 or > 0 (uncertain)
  std::vector<std::uint8_t> stored;  // outputs: whether the program stored it
};
struct Result {
  std::vector<Array> outputs;  // one per out and inout tensor, in declared order
  std::optional<Array> probe;  // over the value's axes, program axes first in parallel order
};

// Throws Error{contract_broken} for data outside a contract, a broken require, and Error{out_of_bounds} for an access outside its
// extents (which a proven program never does).
Result run(const ir::Program& program, const Inputs& inputs, const Options& options = {});

// The promises about the arguments alone: contracts on integer tensors and requires. Throws Error{contract_broken} naming the
// first element.
void check_contracts(const ir::Program& program, const Inputs& inputs);

// identity, associativity and (unless order: left) commutativity of every user reducer of the program on random lifts, and of
// every stream merge; throws Error{reducer_law} or Error{cut_dependent}.
void check_laws(const ir::Program& program, std::uint64_t seed);
// Cuts of 1, all and random give the same within the bounds; throws Error{cut_dependent} naming the carried value and axis.
void check_cuts(const ir::Program& program, const Inputs& inputs, std::uint64_t seed);

}  // namespace cosmati::oracle
