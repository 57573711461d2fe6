// A lambda (the parts of a reducer, the merge of a stream) as a straight list of scalar operations, run once per element.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "ir/program.h"
#include "oracle/number.h"

namespace cosmati::oracle {

class Tape {
 public:
  // `outer` gives the values that are no functions of the arguments (scalars, extents, literals).
  using Outer = std::function<Num(ir::ValueId)>;
  Tape(const ir::Program& program, const ir::Lambda& lambda, bool wide, const Outer& outer);

  // Reads args[slot]; writes one result per result of the lambda. `results` must not overlap `args`.
  void run(const Num* args, Num* results);
  std::size_t results() const { return results_.size(); }
  // The argument slots it reads.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& inputs() const { return inputs_; }
  // Whether the lambda just hands on its first arguments, one result each.
  bool is_identity() const { return identity_; }
  // Whether an operation on the way to result k may round.
  bool rounds(std::size_t k) const { return rounds_[k]; }

 private:
  struct Step {
    ops::Op op;
    DType argument, result;
    std::uint32_t args[3];
    std::uint8_t arity;
  };
  bool wide_;
  bool identity_ = true;
  std::vector<Num> registers_;                                   // constants are filled in once
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inputs_;  // register, slot
  std::vector<Step> steps_;                                      // step k writes targets_[k]
  std::vector<std::uint32_t> targets_, results_;
  std::vector<bool> rounds_;  // per result
};

// A literal in both modes.
Num literal(const ir::Value& value, bool wide);

}  // namespace cosmati::oracle
