// Which elements a program touches: every load with the environment it is evaluated in, and whether it stays in its extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/prove.h"
#include "prove/terms.h"

namespace cosmati::prove {

struct LoadSite {
  ir::ValueId value;  // the Load
  Env env;
  ir::AxisSet within;    // it is not evaluated where one of these is empty
  bool settled = false;  // inside a reduction whose result no longer depends on anything but the instance
};
struct ReplaceSite {
  ir::ValueId value;  // the Replace
  Env env;
  ir::AxisSet within;
};
struct Sites {
  std::vector<LoadSite> loads;
  std::vector<ReplaceSite> replaces;
};

// A value that is evaluated at every point of `within`.
struct Root {
  Root(ir::ValueId v, ir::AxisSet axes = {}) : value(v), within(std::move(axes)) {}  // NOLINT: a value alone is evaluated always
  ir::ValueId value;
  ir::AxisSet within;
};
// What evaluating `roots` reads; stream bodies are roots of their own.
Sites sites_of(Terms& terms, const std::vector<Root>& roots, const Env& env);
// Everything the program evaluates.
std::vector<Root> all_roots(const ir::Program& program);
// The axes of a store's instances: of its value and index, the program axes not reduced away, the pieces of enclosing streams.
ir::AxisSet instance_axes(const ir::Program& program, const ir::Store& store);

// One polynomial per component that an index names (one per factor where the factors are named), and the extents beside them.
struct Place {
  std::vector<Poly> index, extents;
};
Place place_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env);
// The element as one number per dimension.
std::vector<Poly> element_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env);
// What is known where none of the program axes among these is empty.
std::vector<Poly> instance_facts(Terms& terms, const Env& env, const ir::AxisSet& within);

void check_loads(Terms& terms, std::vector<Refusal>& refusals);
// The same for the index of a store.
void check_store_bounds(Terms& terms, const ir::Store& store, std::vector<Refusal>& refusals);

}  // namespace cosmati::prove
