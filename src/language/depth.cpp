// What a coordinate and a reduction depend on through the range of their axis, and a carried value through its next, counts too.
// SPDX-License-Identifier: Apache-2.0
#include "language/depth.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/overloaded.h"

namespace cosmati::language {
namespace {
constexpr std::uint32_t max_depth = 1000;
}

void limit_depth(const ir::Program& p, std::vector<std::uint32_t>& depths, const Where* where) {
  auto of = [&](ir::ValueId v) { return v.index < depths.size() ? depths[v.index] : 0; };
  auto of_range = [&](ir::AxisId axis) {
    const ir::Axis& a = p[axis];
    return std::max(a.lo ? of(*a.lo) : 0, a.hi ? of(*a.hi) : 0);
  };
  for (std::size_t i = depths.size(); i < p.values.size(); ++i) {
    const ir::Node& node = p.values[i].node;
    std::uint32_t below = 0;
    for (ir::ValueId v : ir::operands(node)) below = std::max(below, of(v));
    std::visit(support::overloaded{[&](const ir::Coord& n) { below = of_range(n.axis); },
                                   [&](const ir::Reduce& n) {
                                     for (ir::AxisId axis : n.axes) below = std::max(below, of_range(axis));
                                   },
                                   [&](const ir::Part& n) {
                                     const ir::StreamId* stream = std::get_if<ir::StreamId>(&n.of);
                                     if (!stream || stream->index >= p.streams.size()) return;
                                     for (const ir::Carry& carry : p[*stream].carries)
                                       below = std::max({below, of(carry.init), carry.next ? of(carry.next) : 0});
                                   },
                                   [](const auto&) {}},
               node);
    depths.push_back(below + 1);
    if (below >= max_depth)
      throw Error(ErrorCode::not_supported, where ? *where : p.values[i].where,
                  fmt::format("a value depends on more than {} operations in a row", max_depth),
                  "a recurrence over an axis is a stream");
  }
}

}  // namespace cosmati::language
