// Flattens lambdas in value order: operands come before their users in the arena, so a scan over the reachable values is a
// schedule and depth costs no stack.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/tape.h"

#include <algorithm>
#include <unordered_map>

#include "support/check.h"

namespace cosmati::oracle {

Num literal(const ir::Value& value, bool wide) {
  const auto& c = std::get<ir::Const>(value.node);
  if (!is_float(value.dtype)) return {0, c.i, 0};
  const double rounded = ops::round_to(value.dtype, c.f);
  if (!wide) return {rounded, 0, 0};
  if (!std::isfinite(c.f)) return {rounded, 0, 0};
  return {c.f, 0, std::isfinite(rounded) ? std::fabs(rounded - c.f) : infinity};
}

Tape::Tape(const ir::Program& program, const ir::Lambda& lambda, bool wide, const Outer& outer) : wide_(wide) {
  std::vector<ir::ValueId> reachable, stack = lambda.results;
  std::unordered_map<ir::ValueId, std::uint32_t> registers;
  while (!stack.empty()) {
    const ir::ValueId v = stack.back();
    stack.pop_back();
    if (!registers.emplace(v, 0).second) continue;
    reachable.push_back(v);
    if (const auto* e = std::get_if<ir::Elementwise>(&program[v].node)) stack.insert(stack.end(), e->args.begin(), e->args.end());
  }
  std::sort(reachable.begin(), reachable.end());
  std::vector<bool> rounds;  // per register
  for (const ir::ValueId v : reachable) {
    const auto r = static_cast<std::uint32_t>(registers_.size());
    registers[v] = r;
    registers_.emplace_back();
    rounds.push_back(false);
    const ir::Value& value = program[v];
    if (const auto* e = std::get_if<ir::Elementwise>(&value.node)) {
      Step s{e->op, program[e->args.back()].dtype, value.dtype, {}, static_cast<std::uint8_t>(e->args.size())};
      rounds[r] = is_float(value.dtype) && (e->op == ops::Op::cast || ops::info(e->op).ulp > 0);
      for (std::size_t k = 0; k < e->args.size(); ++k) {
        s.args[k] = registers[e->args[k]];
        rounds[r] = rounds[r] || rounds[s.args[k]];
      }
      steps_.push_back(s);
      targets_.push_back(r);
    } else if (const auto* a = std::get_if<ir::Arg>(&value.node)) {
      inputs_.emplace_back(r, a->slot);
    } else if (std::holds_alternative<ir::Const>(value.node)) {
      registers_[r] = literal(value, wide);
    } else {
      registers_[r] = outer(v);
    }
  }
  for (std::size_t k = 0; k < lambda.results.size(); ++k) {
    results_.push_back(registers[lambda.results[k]]);
    rounds_.push_back(rounds[results_.back()]);
    const auto* a = std::get_if<ir::Arg>(&program[lambda.results[k]].node);
    identity_ = identity_ && a && a->slot == k;
  }
}

void Tape::run(const Num* args, Num* results) {
  for (const auto& [r, slot] : inputs_) registers_[r] = args[slot];
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& s = steps_[k];
    Num operands[3];
    for (int a = 0; a < s.arity; ++a) operands[a] = registers_[s.args[a]];
    registers_[targets_[k]] =
        wide_ ? apply_wide(s.op, s.argument, s.result, operands) : apply_typed(s.op, s.argument, s.result, operands);
  }
  for (std::size_t k = 0; k < results_.size(); ++k) results[k] = registers_[results_[k]];
}

}  // namespace cosmati::oracle
