// Placements: where each coordinate of a value lives, written as mixed-radix digits over hardware resources.
// The coordinate of an axis is the mixed-radix number of its digits, fast to slow; a digit reads (index of resource / pos) mod
// size. Sizes and positions may contain run-time extents. What is well formed and what it covers is integer arithmetic here;
// what a value means is none of this folder's business.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::place {

// grid: which group. lane: which lane of the group. reg: which of a worker's registers. step: a run-time loop of one worker.
enum class Res : std::uint8_t { grid, lane, reg, step };

// factor * product of the run-time extents in `parts`, each divided by `over` and rounded up.
struct Part {
  ir::AxisId axis;
  std::int64_t over = 1;
  auto operator<=>(const Part&) const = default;
};
struct Size {
  std::int64_t factor = 1;
  std::vector<Part> parts;  // sorted
  bool operator==(const Size&) const = default;
  bool is_constant() const { return parts.empty(); }
};
Size operator*(const Size& a, const Size& b);

struct Digit {
  Res res;
  Size pos;  // product of the sizes of the faster digits on the same resource
  Size size;
  bool operator==(const Digit&) const = default;
};

struct AxisMap {
  ir::AxisId axis;
  std::vector<Digit> digits;  // fast to slow
  bool operator==(const AxisMap&) const = default;
};

struct Placement {
  std::vector<AxisMap> axes;
  bool operator==(const Placement&) const = default;
  const AxisMap* find(ir::AxisId axis) const;
};

// The size of an axis's digits on a resource whose sizes are constants (lane, reg); 1 where it has none.
std::int64_t constant_size(const AxisMap& map, Res res);

// Merges neighbouring digits of one resource whose positions continue, and drops digits of size 1. Placements that mean the same
// have equal normal forms.
Placement normal_form(Placement p);

// Why a placement is not well formed, or empty: per resource, sorted by position, each next position is the previous one times
// its size (no overlap, no gap), and the sizes of an axis multiply to at least its extent.
std::string ill_formed(const Placement& p, const std::vector<std::int64_t>& extent_of_axis);

// The number of indices of a resource that the placement uses.
Size count(const Placement& p, Res res);

std::string print(const Placement& p, const ir::Program& names);

}  // namespace cosmati::place
