// Whether a polynomial is >= 0 because facts that are >= 0 add up to it: bad monomials are cancelled by facts one by one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/terms.h"

namespace cosmati::prove {

bool follows(const Terms& terms, const Poly& p, const std::vector<Poly>& facts);

}  // namespace cosmati::prove
