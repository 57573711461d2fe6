// What the interpreter knows about a program before it runs: which axes and streams each value depends on, which axes ranges
// depend on, and what belongs to which stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "ir/program.h"

namespace cosmati::oracle {

// A slot is something an environment binds: an axis, or (after all axes) a stream with its carried values.
using Slots = std::vector<std::uint32_t>;  // ascending

struct Facts {
  explicit Facts(const ir::Program& program);
  std::uint32_t slot(ir::StreamId s) const { return axis_count + s.index; }

  std::uint32_t axis_count = 0;
  std::vector<Slots> value;          // per value: what its evaluation reads
  std::vector<Slots> stream;         // per stream, seen from outside
  std::vector<Slots> range;          // per axis: what its bounds read
  std::vector<char> bounds_a_range;  // per axis: some range depends on it
  std::vector<char> only_summed;     // per value: a product that only sums read
  std::vector<ir::AxisSet> rebound;  // per stream: program axes that its body reduces or replaces on values that carry state
  std::vector<char> stores;          // per stream: its body, or one inside it, stores
  std::vector<char> ambient;         // per value: evaluated in an instance's own environment, not only under replacements
};

Slots slots_union(const Slots& a, const Slots& b);
Slots slots_minus(const Slots& a, const Slots& b);
// The product that a sum or mean reads, if its operand is one.
const ir::Elementwise* summed_product(const ir::Program& program, const ir::Reduce& reduce);

}  // namespace cosmati::oracle
