// Which elements a program touches: every load with the environment it is evaluated in, and whether it stays in its extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/prove.h"
#include "prove/terms.h"

namespace cosmati::prove {

struct LoadSite {
  ir::ValueId value;  // the Load
  Env env;
  bool settled = false;  // inside a reduction whose result no longer depends on anything but the instance
};
struct ReplaceSite {
  ir::ValueId value;  // the Replace
  Env env;
};
struct Sites {
  std::vector<LoadSite> loads;
  std::vector<ReplaceSite> replaces;
};

// What evaluating `roots` reads; stream bodies are roots of their own.
Sites sites_of(Terms& terms, const std::vector<ir::ValueId>& roots, const Env& env);
// Everything the program evaluates.
std::vector<ir::ValueId> all_roots(const ir::Program& program);

// One polynomial per component that an index names (one per factor where the factors are named), and the extents beside them.
struct Place {
  std::vector<Poly> index, extents;
};
Place place_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env);
// The element as one number per dimension.
std::vector<Poly> element_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env);
// What is known wherever an instance runs: no program axis is empty.
std::vector<Poly> instance_facts(Terms& terms, const Env& env);

void check_loads(Terms& terms, std::vector<Refusal>& refusals);
// The same for the index of a store.
void check_store_bounds(Terms& terms, const ir::Store& store, std::vector<Refusal>& refusals);

}  // namespace cosmati::prove
