// Placements: where each coordinate of a value lives, written as mixed-radix digits over hardware resources.
// The coordinate of an axis is the mixed-radix number of its digits, fast to slow; a digit reads (index of resource / pos) mod
// size; in memory its pos is a stride in bytes. Sizes and positions may contain run-time extents: the rules of this folder ask
// with the extents at hand (`at`) and count in integers. What a value means is none of this folder's business.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::place {

// Parallel: grid (which group), cluster (which group of a cluster), subgroup (of a group), lane (of a subgroup).
// Of one worker: reg (which of its registers), step (a run-time loop). Of memory: addr.
enum class Res : std::uint8_t { grid, cluster, subgroup, lane, reg, step, addr };
constexpr int resource_count = 7;
constexpr bool is_hardware(Res res) { return res <= Res::lane; }
std::string_view name(Res res);

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
// What a size without run-time extents is.
std::int64_t number(const Size& size);

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

// What the workers along a segment of a hardware resource hold that no axis uses: all the same value, each a part of it that
// `reducer` has yet to merge, or only the first of them the value.
enum class Held : std::uint8_t { same, part, first };
struct Partial {
  Res res;
  Size pos, size;
  Held held = Held::same;
  ir::ReducerId reducer = {};  // of a part
  bool operator==(const Partial&) const = default;
};

struct Placement {
  std::vector<AxisMap> axes;
  std::vector<Partial> rest;
  bool operator==(const Placement&) const = default;
  const AxisMap* find(ir::AxisId axis) const;
};

// The size of an axis's digits on a resource whose sizes are constants (lane, reg); 1 where it has none.
std::int64_t constant_size(const AxisMap& map, Res res);
// The lanes of a group that tell its elements apart, over all subgroups.
std::int64_t group_lanes(const AxisMap& map);
// Neighbours that each lane has side by side: its registers faster than the lanes.
std::int64_t side_by_side(const AxisMap& map);

// Merges neighbouring digits of one resource whose positions continue, and neighbouring free segments that hold alike; drops
// what has size 1. Placements that mean the same have equal normal forms.
Placement normal_form(Placement p);

// The placement with every run-time size counted.
Placement at(Placement p, const std::vector<std::int64_t>& extent_of_axis);

// Why the placement of a nest of loops is not well formed, or empty: per resource, sorted by position, each next position is a
// multiple of the previous one times its size (no overlap), and the sizes of an axis multiply to at least its extent. Registers
// and steps are counted by each loop for itself. What `ownership` asks of a value is more.
std::string ill_formed(const Placement& p, const std::vector<std::int64_t>& extent_of_axis);

// The number of indices of a resource that the placement uses.
Size count(const Placement& p, Res res);

std::string print(const Placement& p, const ir::Program& names);

}  // namespace cosmati::place
