// Counterexamples by trying small extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/evaluation.h"

namespace cosmati::prove {

// Whether a point is a counterexample, by what the program computes there.
using Confirm = std::function<bool(const Evaluation&)>;

// Values for the atoms of all these polynomials, facts included, where one of `violated` is negative, for a launch that is
// possible and a point that is confirmed. Small distinct extents first, so that the example reads well. What `point` mentions has
// a value too, and the extents in `shape`.
std::optional<Assignment> find_witness(Terms& terms, const std::vector<Poly>& violated, const std::vector<Poly>& point,
                                       const std::vector<Poly>& shape, const std::vector<Poly>& given, const Confirm& confirm);
// An element of 0 .. dims that none of the index tuples reaches in a launch that is possible; nothing where data take part.
std::optional<std::vector<std::int64_t>> find_unreached(Terms& terms, const std::vector<Poly>& dims,
                                                        const std::vector<std::vector<Poly>>& tuples);
// "i = 0, col = 6": the coordinates, scalars and loaded values that `of` mentions.
std::string describe_point(const Terms& terms, const Assignment& values, const std::vector<Poly>& of);

}  // namespace cosmati::prove
