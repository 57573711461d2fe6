// The order of the questions about a program, and which refusal is told.
// SPDX-License-Identifier: Apache-2.0
#include "prove/prove.h"

#include <algorithm>

#include "prove/stores.h"

namespace cosmati::prove {

Proof prove_program(const ir::Program& program) {
  Terms terms(program);
  std::vector<Refusal> refusals;
  check_loads(terms, refusals);
  std::vector<char> sound(program.tensors.size(), 1);
  auto ask = [&](ir::TensorId tensor, auto question) {
    const std::size_t before = refusals.size();
    question();
    if (refusals.size() > before) sound[tensor.index] = 0;
  };
  for (std::size_t k = 0; k < program.stores.size(); ++k) {
    const ir::Store& s = program.stores[k];
    ask(s.tensor, [&] { check_store_bounds(terms, s, refusals); });
    ask(s.tensor, [&] { check_injective(terms, s, refusals); });
    for (std::size_t j = 0; j < k; ++j)
      if (program.stores[j].tensor == s.tensor) ask(s.tensor, [&] { check_disjoint(terms, program.stores[j], s, refusals); });
  }
  for (std::uint32_t k = 0; k < program.tensors.size(); ++k) {
    const ir::TensorId t{k};
    if (program[t].access == ir::Access::out && sound[k]) check_covered(terms, t, refusals);
    if (program[t].access == ir::Access::inout) check_inout_reads(terms, t, refusals);
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
