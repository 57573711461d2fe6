// collective: reductions, which relabel and never communicate, and settles, which communicate and say by what.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "place/layout.h"

namespace cosmati::place {

// A reduction folds what a worker holds (registers and steps) and leaves parts on the hardware segments of its axes.
struct Reduced {
  Placement result;        // its registers and steps are counted anew, without those of the reduced axes
  std::int64_t fold = 1;   // registers that a worker merges into each of its results
  std::int64_t steps = 1;  // run-time steps, likewise
};
// Refused: no_such_axis, other_reducer (parts of another reducer), not_first.
Result<Reduced> reduce(const Placement& p, const ir::AxisSet& axes, ir::ReducerId reducer);

enum class Way : std::uint8_t {
  butterfly,  // lane: an xor shuffle a mask, every lane merges
  gather,     // lane: every lane reads the parts of all, in the order of their index
  scatter,    // lane: butterflies that halve what a lane keeps, then plain ones
  partials,   // subgroup: into shared memory, one fence, then every subgroup reads all and runs a second collective
  messages,   // cluster: each group stores its part in every other and arrives there; merged in the order of ranks
  ticket,     // grid: into scratch; the last group to arrive merges in the order of groups, and stands for the first
  phase,      // grid: into scratch; every group of the next phase merges in the order of groups
};
struct Exchange {
  Res level;
  std::vector<Segment> segments;  // of the level, whose parts are merged
  Way way;
  std::int64_t values = 1;  // components that travel together: states of reducers
  // Results that each subgroup has of one component: registers times the lanes that axes use.
  std::int64_t results = 1;
  std::vector<std::int64_t> masks;     // lanes to exchange with by xor, in order; of the second collective for partials
  std::vector<std::int64_t> distance;  // gather: the lane offsets of the parts from the first, in order
  std::int64_t shuffles = 0;           // instructions of one component, all results
  // Parts that a lane merges by itself: of the second collective, lane k of its lanes reads parts k * serial and on.
  std::int64_t serial = 1;
  std::int64_t slots = 0;   // of one component: shared memory of a group (partials, messages), scratch of the launch
  std::int64_t fences = 0;  // of the group
  // The merge is not the same both ways round: a lane whose bit of the mask is set puts the other's part first.
  bool ordered = false;
  Held leaves = Held::same;
};
struct Settled {
  Placement result;
  std::vector<Exchange> exchanges;  // the nearest level first
};
// Settles every part of `reducer` at the levels up to `farthest`; what is left behind is held as `to` says, or better. `p` is
// complete. A settle to the first is what a store needs. Refused: not_a_part.
Result<Settled> settle(const Placement& p, const ir::Program& program, ir::ReducerId reducer, Held to,
                       Level farthest = Level::grid);

// Settles parts on lanes and spreads the registers of an axis over these lanes on the way, as far as either goes: n registers
// cost n - 1 shuffles and one a remaining mask, where settling each would cost log2(lanes) of them.
// Refused: not_a_part, no_such_axis, indivisible (not powers of two).
Result<Settled> scatter(const Placement& p, const ir::Program& program, ir::ReducerId reducer, ir::AxisId axis);

// Settles at one point of the program: exchanges of the same segments are one, of a tuple.
std::vector<Exchange> together(const std::vector<Settled>& settles);

}  // namespace cosmati::place
