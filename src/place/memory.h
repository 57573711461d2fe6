// memory: how a placement reads and writes a home: the width of one access, what is loaded more than once, which edges need a
// guard, who stores; and which axes or whole moves need no coordinates of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "place/home.h"

namespace cosmati::place {

// exact: no guard. pack: an access is inside the extent or outside as a whole. element: each element is tested. replay: reads are
// clamped to the last instance, stores are predicated (what a planner may choose for a program axis).
enum class Edge : std::uint8_t { exact, pack, element, replay };
struct AxisEdge {
  ir::AxisId axis;
  Edge edge;
};

struct Access {
  std::int64_t width_bytes;        // of one instruction
  std::vector<Segment> registers;  // the digits of the register number that count along one instruction, fast to slow
  std::int64_t instructions = 1;   // of a worker
  std::vector<AxisEdge> edges;     // by axis of the value
  Counts copies;                   // by hardware resource: workers that load the same
  std::vector<Segment> multicast;  // free segments of the cluster, which one load may feed
  std::vector<Segment> owner;      // store: the worker whose index is 0 in each of these stores
};
struct MemoryFacts {
  std::int64_t align = 4;    // bytes that divide the first address
  std::int64_t widest = 16;  // bytes of the widest access
};
// The run of registers that is contiguous in memory, cut to what alignment and the machine allow. A placement whose digits the
// home's do not divide is loaded by elements. `p` is complete. Refused: no_such_axis, unsettled, not_first.
Result<Access> load(const Placement& p, const Home& home, const Extents& extents, const MemoryFacts& facts);
// Refused: unsettled (a part is stored nowhere), no_such_axis.
Result<Access> store(const Placement& p, const Home& home, const Extents& extents, const MemoryFacts& facts);

// Groups of axes, slow to fast, that count as one in every access: `strides[access][axis]`, 0 where the access has no such axis.
// An axis of extent 1 joins any group. Groups come in the order of their first axis in `axes`.
std::vector<std::vector<ir::AxisId>> collapse(const std::vector<ir::AxisId>& axes, const Extents& extents,
                                              const std::vector<std::vector<std::int64_t>>& strides);

// A move between homes of the same linear order: bytes are copied in any width, without coordinates. Refused: not_linear.
struct Flat {
  std::int64_t bytes, width_bytes;
};
Result<Flat> flat(const Home& from, const Home& to, const Extents& extents, std::int64_t widest = 16);

}  // namespace cosmati::place
