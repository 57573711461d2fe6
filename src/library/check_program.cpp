// A few seeded arguments are enough: cuts and laws are checked on every element of each.
// SPDX-License-Identifier: Apache-2.0
#include "library/check_program.h"

#include "library/random_inputs.h"
#include "oracle/oracle.h"

namespace cosmati::library {

void check_by_oracle(const ir::Program& p, std::uint64_t seed) {
  constexpr int wanted = 6, tries = 60;
  oracle::check_laws(p, seed);
  int done = 0;
  for (int i = 0; i < tries && done < wanted; ++i) {
    auto owned = random_inputs(p, seed + static_cast<std::uint64_t>(i));
    if (!owned) continue;
    oracle::check_cuts(p, owned->inputs, seed + static_cast<std::uint64_t>(i));
    ++done;
  }
}

}  // namespace cosmati::library
