// An access is wide where registers count along addresses: a register digit whose stride in memory is the bytes before it.
// SPDX-License-Identifier: Apache-2.0
#include "place/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cosmati::place {
namespace {

std::string text(const Partial& p) { return fmt::format("({}, {}, {})", name(p.res), number(p.pos), number(p.size)); }

// The largest power of two that divides `bytes` and is at most `widest`.
std::int64_t power_in(std::int64_t bytes, std::int64_t widest) {
  std::int64_t width = 1;
  while (width * 2 <= widest && bytes % (width * 2) == 0) width *= 2;
  return width;
}

// The pieces of the longest run of registers that is contiguous in memory.
std::vector<Piece> longest_run(const std::vector<Piece>& all, std::int64_t element_bytes) {
  std::vector<Piece> run;
  for (std::int64_t bytes = element_bytes;;) {
    const auto next = std::find_if(all.begin(), all.end(), [&](const Piece& p) {
      return p.size > 1 && p.from.res == Res::reg && p.to.res == Res::addr && p.to.pos == bytes;
    });
    if (next == all.end()) return run;
    run.push_back(*next);
    bytes *= next->size;
  }
}

// The first pieces of the run that make exactly `n` elements, the last one cut; empty where none do.
std::vector<Piece> cut_to(const std::vector<Piece>& run, std::int64_t n) {
  std::vector<Piece> cut;
  for (Piece p : run) {
    if (n == 1) break;
    const std::int64_t size = std::gcd(n, p.size);
    if ((size < p.size && size < n) || p.from.size % size != 0) return {};
    p.size = p.from.size = p.to.size = size;
    cut.push_back(p);
    n /= size;
  }
  return n == 1 ? cut : std::vector<Piece>{};
}

std::vector<AxisEdge> edges_of(const Placement& p, const std::vector<Piece>& run, const Extents& extents) {
  std::vector<AxisEdge> edges;
  for (const AxisMap& map : p.axes) {
    const std::int64_t extent = extents[map.axis.index];
    std::int64_t covered = 1;
    for (const Digit& d : map.digits) covered *= number(d.size);
    Edge edge = covered == extent ? Edge::exact : Edge::pack;
    for (const Piece& piece : run)
      if (edge == Edge::pack && piece.axis == map.axis && extent % (piece.weight * piece.size) != 0) edge = Edge::element;
    edges.push_back({map.axis, edge});
  }
  return edges;
}

Result<Access> access(const Placement& p, const Home& home, const Extents& extents, const MemoryFacts& facts) {
  for (const AxisMap& map : p.axes)
    if (!home.map.find(map.axis))
      return Refused{Reason::no_such_axis, fmt::format("axis {}", map.axis.index), "the home lacks it"};
  Access a;
  a.width_bytes = home.element_bytes;
  std::vector<Piece> run;
  if (Result<std::vector<Piece>> all = pieces(normal_form(p), normal_form(home.map), extents)) {
    const std::vector<Piece> longest = longest_run(*all, home.element_bytes);
    std::int64_t length = 1, common = std::gcd(facts.align, home.swizzle.bits ? std::int64_t{1} << home.swizzle.base : 0);
    for (const Piece& piece : longest) length *= piece.size;
    for (const Piece& piece : *all)
      if (piece.to.res == Res::addr && std::none_of(longest.begin(), longest.end(), [&](const Piece& q) {
            return q.axis == piece.axis && q.weight == piece.weight;
          }))
        common = std::gcd(common, piece.to.pos);
    std::int64_t width = power_in(std::gcd(common, length * home.element_bytes), facts.widest);
    for (; width > home.element_bytes; width /= 2) {
      run = cut_to(longest, width / home.element_bytes);
      if (!run.empty()) break;
    }
    a.width_bytes = std::max(width, home.element_bytes);
  }
  for (const Piece& piece : run) a.registers.push_back(piece.from);
  a.instructions = number(count(p, Res::reg)) * home.element_bytes / a.width_bytes;
  a.edges = edges_of(p, run, extents);
  for (const Res res : {Res::grid, Res::cluster, Res::subgroup, Res::lane}) a.copies[res] = 1;
  return a;
}

}  // namespace

Result<Access> load(const Placement& p, const Home& home, const Extents& extents, const MemoryFacts& facts) {
  for (const Partial& free : p.rest)
    if (free.held == Held::part) return Refused{Reason::unsettled, text(free), "a load gives whole values"};
  Result<Access> a = access(p, home, extents, facts);
  if (!a) return a;
  Access loaded = *a;
  for (const Partial& free : p.rest) {
    if (free.held == Held::first) continue;
    loaded.copies[free.res] *= number(free.size);
    if (free.res == Res::cluster) loaded.multicast.push_back({free.res, number(free.pos), number(free.size)});
  }
  return loaded;
}

Result<Access> store(const Placement& p, const Home& home, const Extents& extents, const MemoryFacts& facts) {
  for (const Partial& free : p.rest)
    if (free.held == Held::part) return Refused{Reason::unsettled, text(free), "a part would be stored"};
  Result<Access> a = access(p, home, extents, facts);
  if (!a) return a;
  Access stored = *a;
  for (const Partial& free : p.rest) stored.owner.push_back({free.res, number(free.pos), number(free.size)});
  return stored;
}

std::vector<std::vector<ir::AxisId>> collapse(const std::vector<ir::AxisId>& axes, const Extents& extents,
                                              const std::vector<std::vector<std::int64_t>>& strides) {
  std::vector<std::vector<ir::AxisId>> groups;
  for (const ir::AxisId axis : axes) groups.push_back({axis});
  const auto size = [&](const std::vector<ir::AxisId>& group) {
    std::int64_t n = 1;
    for (const ir::AxisId axis : group) n *= extents[axis.index];
    return n;
  };
  // The axis by which a group advances: its fastest one that has more than one coordinate.
  const auto advancing = [&](const std::vector<ir::AxisId>& group) {
    for (auto axis = group.rbegin(); axis != group.rend(); ++axis)
      if (extents[axis->index] > 1) return *axis;
    return group.back();
  };
  const auto fuse = [&](const std::vector<ir::AxisId>& slow, const std::vector<ir::AxisId>& fast) {
    if (size(slow) == 1 || size(fast) == 1) return true;
    return std::all_of(strides.begin(), strides.end(), [&](const std::vector<std::int64_t>& of) {
      return of[advancing(slow).index] == of[advancing(fast).index] * size(fast);
    });
  };
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < groups.size() && !again; ++i)
      for (std::size_t j = 0; j < groups.size() && !again; ++j) {
        if (i == j || !fuse(groups[i], groups[j])) continue;
        std::vector<ir::AxisId> fused = groups[i];
        fused.insert(fused.end(), groups[j].begin(), groups[j].end());
        groups[std::min(i, j)] = std::move(fused);
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        again = true;
      }
  }
  return groups;
}

Result<Flat> flat(const Home& from, const Home& to, const Extents& extents, std::int64_t widest) {
  const auto refuse = [](std::string witness) { return Refused{Reason::not_linear, "", std::move(witness)}; };
  if (from.element_bytes != to.element_bytes || !(from.swizzle == to.swizzle)) return refuse("other elements or another swizzle");
  Result<std::vector<Piece>> all = pieces(normal_form(from.map), normal_form(to.map), extents);
  if (!all) return refuse(all.refused().witness);
  std::vector<Piece> sorted = *all;
  std::sort(sorted.begin(), sorted.end(), [](const Piece& a, const Piece& b) { return a.from.pos < b.from.pos; });
  std::int64_t bytes = from.element_bytes;
  for (const Piece& piece : sorted) {
    if (piece.from.res != Res::addr || piece.to.res != Res::addr) return refuse("a home that is spread over workers");
    if (piece.from.pos != bytes || piece.to.pos != bytes)
      return refuse(
          fmt::format("axis {} has strides of {} and {} bytes, after {}", piece.axis.index, piece.from.pos, piece.to.pos, bytes));
    bytes *= piece.size;
  }
  return Flat{bytes, power_in(std::gcd(from.align, to.align), widest)};
}

}  // namespace cosmati::place
