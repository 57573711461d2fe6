// candidate: what a program allows of one mapping. Program facts are proven once and given; the rest is integer arithmetic on
// digits, so that a planner may ask for each of its candidates.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <utility>
#include <vector>

#include "place/collective.h"

namespace cosmati::prove {

// Whether a reduction may merge its elements where and in the order that the digits of `axes` (slow to fast) give them. A tree
// may be any tree; from the left is one worker that takes the registers of a step by their coordinates, and its steps as they
// count. Refused: ordered.
place::Verdict reorderable(ir::Order order, const place::Placement& operand, const std::vector<ir::AxisId>& axes);

// Who stores: the worker whose index is 0 in each of these segments, once for every element.
// Refused: no_such_axis (an instance axis that the value is not placed along: all its workers would store), unsettled, and what
// place::ownership refuses.
place::Result<std::vector<place::Segment>> store_owner(const ir::Program& program, const ir::Store& store,
                                                       const place::Placement& value, const place::Counts& counts,
                                                       const place::Extents& extents);

// Whether every element of an access is within 2^(bits - 1) bytes of its first: `extents` and `strides` (in elements) of the
// dimensions that one base serves. Refused: offset_overflow.
place::Verdict offsets_fit(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                           std::int64_t element_bytes, int bits = 32);

// An exchange as it stands in the code of a group.
struct ExchangeSite {
  place::Exchange exchange;
  std::vector<ir::AxisId> loops;  // around it in each worker, the innermost last
  bool by_parity = false;         // its partials are doubled: two turns of the loop use different ones
  std::int64_t other_fences = 0;  // of the group, that every turn of the innermost loop passes beside its own
};
struct Packing {
  place::Placement instances;  // of the program axes
  place::Counts counts;
  place::Extents extents;
  std::vector<ExchangeSite> exchanges;
  std::set<std::pair<ir::TensorId, ir::TensorId>> aliases;  // (in, out) that are exactly the same memory
};
struct GroupLimits {
  std::int64_t workers = 1024;
  std::int64_t lanes = 32;  // of a subgroup
};
struct Admitted {
  // Instances beyond the extent of these axes run as the last valid one, so that fences stay unconditional: they read and
  // compute, and their stores are predicated.
  std::vector<ir::AxisId> replayed;
};
// Several instances in a group that meets at fences. Refused: group_too_large, partial_subgroup, shared_trip, single_partials,
// replay_alias.
place::Result<Admitted> admit(const ir::Program& program, const Packing& packing, const GroupLimits& limits);

}  // namespace cosmati::prove
