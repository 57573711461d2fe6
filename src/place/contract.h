// contract: the placements of a contraction's operands and result, made of the digits of an atom (one instruction) and of the
// digits that tile it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "place/layout.h"

namespace cosmati::place {

// The three axes of a contraction, as an atom writes them.
constexpr ir::AxisId atom_m{0}, atom_n{1}, atom_k{2};
struct Atom {
  Placement a, b, c;  // over m and k, k and n, m and n
};
// k's digits in another order, in both operands alike: the same sum, from elements that lie elsewhere. Refused: mismatched_atom
// (the operands cut k differently).
Result<Atom> relabelled(const Atom& atom, const std::vector<std::size_t>& order);

// A digit beyond the atom, of one of its axes; on reg every operand that has the axis holds that many more.
struct Tile {
  ir::AxisId axis;  // atom_m, atom_n or atom_k
  Res res;
  std::int64_t size;
};
struct Contraction {
  Placement a, b, c;
  std::int64_t atoms = 1;  // instructions of a subgroup in one step
  std::int64_t steps = 1;
};
// `tiles` fast to slow; positions follow in that order, on registers for each operand by itself. k on registers and steps folds,
// k on hardware leaves parts of `sum` in c. Refused: mismatched_atom.
Result<Contraction> contract(const Atom& atom, const std::vector<Tile>& tiles, ir::AxisId m, ir::AxisId n, ir::AxisId k,
                             ir::ReducerId sum);

// What the edges of a contraction ask. Beyond k both operands are zero, for 0 * NaN is NaN; beyond m and n they may hold anything
// and the result is not stored.
struct Tails {
  bool zero_k = false;  // in a and in b
  bool guard_m = false, guard_n = false;
};
// `k_is_partial`: fewer elements of k are used than its extent says.
Tails tails(const Contraction& c, ir::AxisId m, ir::AxisId n, ir::AxisId k, const Extents& extents, bool k_is_partial = false);

}  // namespace cosmati::place
