// move: how a value gets from where it is made to where it is needed: nothing, other registers, shuffles between lanes, a round
// trip through shared memory, or the shared memory of a cluster. Groups of one phase exchange nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "place/memory.h"

namespace cosmati::place {

enum class MoveKind : std::uint8_t {
  none,
  rename,   // other registers of the same worker
  keep,     // other steps of the same worker: an array of its own
  shuffle,  // lanes of a subgroup
  shared,   // subgroups, or lanes at other steps: stored, one fence, loaded
  cluster,  // the same in distributed shared memory
};

// One round of a subgroup: lane l publishes register publish[l], reads what lane from[l] publishes, and keeps it in register
// into[l]; -1 where it does not.
struct Round {
  std::vector<std::int64_t> publish, from, into;
  std::optional<std::int64_t> mask;  // every lane that reads does so from lane ^ mask; 0 needs no shuffle
};
// A number that also depends on where the worker is: + ((index of segment.res / pos) mod size) * stride.
struct Select {
  Segment segment;
  std::int64_t stride;
};
struct Trip {
  Home home;
  Access store, load;
  std::int64_t store_turns = 0, load_turns = 0;  // of all subgroups of a group
  std::int64_t least_turns = 0;                  // what the two would take without conflicts
  std::int64_t fences = 1;                       // one more before the home is filled again
};
struct Move {
  MoveKind kind = MoveKind::none;
  std::vector<Round> rounds;         // rename, shuffle
  std::vector<Select> selects;       // of every published register
  std::vector<Select> lane_selects;  // of every lane that is read
  std::int64_t shuffles = 0;         // rounds that are none of a lane with itself
  std::optional<Trip> trip;          // shared, cluster
};
struct MoveFacts {
  std::int64_t element_bytes = 4;
  std::int64_t widest = 16;
  Banks banks;
};
// Both placements are complete on `counts`. Refused: between_groups, unsettled, indivisible, no_such_axis.
Result<Move> move(const Placement& from, const Placement& to, const Counts& counts, const Extents& extents,
                  const MoveFacts& facts);

// The round trip by itself, also where a nearer move exists: the home, of the linear orders of the axes with and without a
// swizzle or padding, that takes the fewest turns by some of its accesses (its own turns are counted by all of them); the first
// of equals, plain ones before padded, padded before swizzled.
Result<Trip> through_shared(const Placement& from, const Placement& to, const Counts& counts, const Extents& extents,
                            const MoveFacts& facts);

}  // namespace cosmati::place
