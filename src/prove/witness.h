// Counterexamples by trying small extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/terms.h"

namespace cosmati::prove {

using Assignment = std::map<AtomId, std::int64_t>;

// Values for the atoms of all these polynomials, facts included, where one of `violated` is negative. Small distinct extents
// first, so that the example reads well. What `point` mentions has a value too, and the extents in `shape`.
std::optional<Assignment> find_witness(const Terms& terms, const std::vector<Poly>& violated, const std::vector<Poly>& point,
                                       const std::vector<Poly>& shape, const std::vector<Poly>& given);
// An element of 0 .. dims that none of the index tuples reaches; nothing where a loaded value takes part.
std::optional<std::vector<std::int64_t>> find_unreached(const Terms& terms, const std::vector<Poly>& dims,
                                                        const std::vector<std::vector<Poly>>& tuples);
std::int64_t evaluate(const Poly& p, const Assignment& values);
// "i = 0, col = 6": the coordinates, scalars and loaded values that `of` mentions.
std::string describe_point(const Terms& terms, const Assignment& values, const std::vector<Poly>& of);

}  // namespace cosmati::prove
