// layout: who holds an element, who owns it, and how far it is from a worker that needs it. Sizes are counted (`at`).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "place/placement.h"
#include "place/refused.h"

namespace cosmati::place {

using Extents = std::vector<std::int64_t>;  // by axis

// One number a resource: how many there are, or which one.
class Counts {
 public:
  constexpr std::int64_t& operator[](Res res) { return n_[static_cast<std::size_t>(res)]; }
  constexpr std::int64_t operator[](Res res) const { return n_[static_cast<std::size_t>(res)]; }
  bool operator==(const Counts&) const = default;

 private:
  std::array<std::int64_t, resource_count> n_{};
};
constexpr Counts hardware(std::int64_t grid, std::int64_t cluster, std::int64_t subgroup, std::int64_t lane) {
  Counts n;
  n[Res::grid] = grid, n[Res::cluster] = cluster, n[Res::subgroup] = subgroup, n[Res::lane] = lane;
  return n;
}

// Positions pos, 2 pos, .. of a resource: the digit (index / pos) mod size.
struct Segment {
  Res res;
  std::int64_t pos, size;
  bool operator==(const Segment&) const = default;
};

Digit digit(Res res, std::int64_t pos, std::int64_t size);
Partial free_segment(Res res, std::int64_t pos, std::int64_t size, Held held = Held::same, ir::ReducerId reducer = {});

// Splits a digit into a fast one of that size and the rest.
Result<std::array<Digit, 2>> split(const Digit& d, std::int64_t fast);

// Lists what the placement leaves out of the hardware as held `same`. Refused: overlap, indivisible.
Result<Placement> complete(const Placement& p, const Counts& counts);

// Every element of a value in a complete placement has `holders` workers that hold it or a part of it; its owner is the one whose
// index is 0 in every segment of `free`. Refused: uncovered, overlap, gap.
struct Ownership {
  std::int64_t holders = 1;
  std::vector<Partial> free;
};
Result<Ownership> ownership(const Placement& p, const Counts& counts, const Extents& extents);

// A part of a coordinate, (coordinate / weight) mod size, that both of two placements keep in one digit each.
struct Piece {
  ir::AxisId axis;
  std::int64_t weight, size;
  Segment from, to;  // of the slowest piece of an axis they may be longer than the extent needs: `size` is what it needs
  // Every worker finds its piece where it looks for it.
  bool in_place() const { return from.res == to.res && from.pos == to.pos && to.size % from.size == 0; }
};
// The pieces of the axes of `from`, by axis and fast to slow.
Result<std::vector<Piece>> pieces(const Placement& from, const Placement& to, const Extents& extents);

// Where only index 0 holds anything: segments held `first`, and digits beyond the extent of their axis.
std::vector<Segment> only_first(const Placement& p, const Extents& extents);

// How far the elements that a worker needs under `to` are from it under `from`.
enum class Level : std::uint8_t { worker, lane, subgroup, cluster, grid };
constexpr Level level_of(Res res) { return static_cast<Level>(static_cast<int>(Res::lane) - static_cast<int>(res) + 1); }
struct Travel {
  Level level = Level::worker;
  bool registers = false;  // in other registers there
  bool steps = false;      // in other steps of its loops there
};
// `to` may have axes that `from` lacks. Refused: indivisible, unsettled (parts are not moved), no_such_axis.
Result<Travel> travel(const Placement& from, const Placement& to, const Extents& extents);
// Whether the value stays with its worker: producer and consumer agree on lane, subgroup, cluster and grid. Refused: elsewhere.
Result<Travel> stays(const Placement& from, const Placement& to, const Extents& extents);

// What a segment of a resource is to a placement: part of a digit, or free. Refused: indivisible.
struct Use {
  bool digit = false;
  Held held = Held::same;
  ir::ReducerId reducer = {};
  bool operator==(const Use&) const = default;
};
Result<Use> use_of(const Placement& p, const Segment& segment);
// The finest segments of the hardware that the placements tell apart, by resource and position. Refused: indivisible.
Result<std::vector<Segment>> segments(const std::vector<Placement>& placements);

}  // namespace cosmati::place
