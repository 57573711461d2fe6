// Stores: each element of an output is written once, and where it must be, at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "prove/accesses.h"

namespace cosmati::prove {

// If the element that `site` reads is one that `store` writes, both are at the same point of `axes`.
bool reads_own(Terms& terms, const LoadSite& site, const ir::Store& store, const ir::AxisSet& axes);
// No element is both read there and written by the store.
bool reads_other(Terms& terms, const LoadSite& site, const ir::Store& store);

// Whatever element `site` reads in a step of the store's stream, only later steps store. The steps run in order.
bool reads_ahead(Terms& terms, const LoadSite& site, const ir::Store& store);
// The same of every place where the program evaluates a load.
bool reads_ahead(const ir::Program& program, ir::ValueId load, const ir::Store& store);

void check_injective(Terms& terms, const ir::Store& store, std::vector<Refusal>& refusals);
void check_disjoint(Terms& terms, const ir::Store& first, const ir::Store& second, std::vector<Refusal>& refusals);
void check_covered(Terms& terms, ir::TensorId tensor, std::vector<Refusal>& refusals);
void check_inout_reads(Terms& terms, ir::TensorId tensor, std::vector<Refusal>& refusals);

}  // namespace cosmati::prove
