// A refusal becomes an Error here: nobody asks further.
// SPDX-License-Identifier: Apache-2.0
#include "library/proofs.h"

#include <fmt/format.h>

#include "prove/prove.h"

namespace cosmati::library {
namespace {

void require_alias(const ir::Program& p, ir::TensorId in, ir::TensorId out) {
  const prove::Proof proof = prove::prove_exact_alias(p, in, out);
  if (!proof)
    throw Error(ErrorCode::overlap, proof.refusal->where,
                fmt::format("{} is exactly {}, and {} may not be computed in place: {}", p[out].name, p[in].name, p.name,
                            proof.refusal->message),
                "pass separate memory");
}

}  // namespace

runtime::Proofs proofs() { return {prove::require_proven, require_alias}; }

}  // namespace cosmati::library
