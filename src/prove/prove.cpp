// The order of the questions about a program, and which refusal is told.
// SPDX-License-Identifier: Apache-2.0
#include "prove/prove.h"

#include <algorithm>

#include "prove/stores.h"

namespace cosmati::prove {
namespace {

Refusal too_large(const Where& where, const std::string& what) {
  return {ErrorCode::not_supported, where, what + " multiplies too many extents, or too large numbers, to be proved",
          "declare more dimensions with fewer factors each", ""};
}

void ask_everything(const ir::Program& program, std::vector<Refusal>& refusals) {
  Terms terms(program);
  check_loads(terms, refusals);
  std::vector<char> sound(program.tensors.size(), 1);
  auto ask = [&](ir::TensorId tensor, const Where& where, auto question) {
    const std::size_t before = refusals.size();
    try {
      question();
    } catch (const TooLarge&) {
      refusals.push_back(too_large(where, "the index of " + program[tensor].name));
    }
    if (refusals.size() > before) sound[tensor.index] = 0;
  };
  for (std::size_t k = 0; k < program.stores.size(); ++k) {
    const ir::Store& s = program.stores[k];
    ask(s.tensor, s.where, [&] { check_store_bounds(terms, s, refusals); });
    ask(s.tensor, s.where, [&] { check_injective(terms, s, refusals); });
    for (std::size_t j = 0; j < k; ++j)
      if (program.stores[j].tensor == s.tensor)
        ask(s.tensor, s.where, [&] { check_disjoint(terms, program.stores[j], s, refusals); });
  }
  for (std::uint32_t k = 0; k < program.tensors.size(); ++k) {
    const ir::TensorId t{k};
    if (program[t].access == ir::Access::out && sound[k]) check_covered(terms, t, refusals);
    if (program[t].access == ir::Access::inout) ask(t, program[t].where, [&] { check_inout_reads(terms, t, refusals); });
  }
}

}  // namespace

Proof prove_program(const ir::Program& program) {
  std::vector<Refusal> refusals;
  try {
    ask_everything(program, refusals);
  } catch (const TooLarge&) {
    refusals.push_back(too_large(program.tensors.empty() ? Where{} : program.tensors[0].where, program.name));
  }
  if (refusals.empty()) return {};
  return {*std::min_element(refusals.begin(), refusals.end(), [](const Refusal& a, const Refusal& b) {
    return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
  })};
}

void require_proven(const ir::Program& program) {
  if (const Proof proof = prove_program(program); !proof)
    throw Error(proof.refusal->code, proof.refusal->where, proof.refusal->message, proof.refusal->hint, proof.refusal->origin);
}

}  // namespace cosmati::prove
