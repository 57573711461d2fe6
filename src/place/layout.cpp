// Placements are compared piece by piece: both are cut where either has a boundary, which needs that one boundary divides the
// other, and then a piece is either where it is needed or not.
// SPDX-License-Identifier: Apache-2.0
#include "place/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "support/check.h"

namespace cosmati::place {
namespace {

constexpr Res hardware_resources[] = {Res::grid, Res::cluster, Res::subgroup, Res::lane};

Segment segment_of(const Digit& d) { return {d.res, number(d.pos), number(d.size)}; }
Segment segment_of(const Partial& free) { return {free.res, number(free.pos), number(free.size)}; }

bool contains(const Segment& outer, const Segment& s) {
  return outer.res == s.res && s.pos % outer.pos == 0 && (outer.pos * outer.size) % (s.pos * s.size) == 0;
}

std::string text(const Segment& s) { return fmt::format("({}, {}, {})", name(s.res), s.pos, s.size); }

// Digits and free segments of a resource, by position; what has size 1 occupies nothing.
std::vector<Segment> used(const Placement& p, Res res) {
  std::vector<Segment> list;
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits)
      if (d.res == res && number(d.size) != 1) list.push_back(segment_of(d));
  for (const Partial& free : p.rest)
    if (free.res == res && number(free.size) != 1) list.push_back(segment_of(free));
  std::sort(list.begin(), list.end(), [](const Segment& a, const Segment& b) { return a.pos < b.pos; });
  return list;
}

// The positions between the segments of `used`, up to `count` where it is given.
Result<std::vector<Segment>> gaps(const Placement& p, Res res, std::int64_t count) {
  std::vector<Segment> between;
  std::int64_t end = 1;
  auto up_to = [&](std::int64_t next, const std::string& what) -> Verdict {
    if (next < end) return Refused{Reason::overlap, std::string(name(res)), fmt::format("{} begins before {}", what, end)};
    if (next % end != 0)
      return Refused{Reason::indivisible, std::string(name(res)), fmt::format("{} is no multiple of {}", what, end)};
    if (next > end) between.push_back({res, end, next / end});
    return Legal{};
  };
  for (const Segment& s : used(p, res)) {
    if (Verdict v = up_to(s.pos, text(s)); !v) return v.refused();
    end = s.pos * s.size;
  }
  if (count > 0)
    if (Verdict v = up_to(count, fmt::format("the count {}", count)); !v) return v.refused();
  return between;
}

// The digits of an axis that tell its coordinates apart, with their weights.
struct Weighted {
  std::int64_t weight;
  Segment at;
};
std::vector<Weighted> weighted(const AxisMap& map, std::int64_t extent) {
  std::vector<Weighted> list;
  std::int64_t weight = 1;
  for (const Digit& d : map.digits) {
    if (weight >= extent) break;
    const Segment at = segment_of(d);
    if (at.size == 1) continue;
    list.push_back({weight, at});
    weight *= at.size;
  }
  return list;
}

// Where the digit ends. An address has no modulus: the last digit in memory may be cut anywhere.
constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
std::int64_t end_of(const Weighted& digit, std::int64_t extent) {
  const std::int64_t end = digit.weight * digit.at.size;
  return digit.at.res == Res::addr && end >= extent ? endless : end;
}

// The part of the digit from `weight` up to `end`, or to its own end where that is the extent.
Segment part_of(const Weighted& digit, std::int64_t weight, std::int64_t end, std::int64_t extent) {
  const std::int64_t own = digit.weight * digit.at.size;
  return {digit.at.res, digit.at.pos * (weight / digit.weight), ((end < extent ? end : own) + weight - 1) / weight};
}

}  // namespace

Digit digit(Res res, std::int64_t pos, std::int64_t size) { return {res, {pos, {}}, {size, {}}}; }
Partial free_segment(Res res, std::int64_t pos, std::int64_t size, Held held, ir::ReducerId reducer) {
  return {res, {pos, {}}, {size, {}}, held, reducer};
}

Result<std::array<Digit, 2>> split(const Digit& d, std::int64_t fast) {
  const Segment s = segment_of(d);
  if (fast < 1 || s.size % fast != 0)
    return Refused{Reason::indivisible, text(s), fmt::format("{} does not divide {}", fast, s.size)};
  return std::array{digit(s.res, s.pos, fast), digit(s.res, s.pos * fast, s.size / fast)};
}

Result<Placement> complete(const Placement& p, const Counts& counts) {
  Placement whole = p;
  for (const Res res : hardware_resources) {
    Result<std::vector<Segment>> between = gaps(p, res, counts[res]);
    if (!between) return between.refused();
    for (const Segment& s : *between) whole.rest.push_back(free_segment(s.res, s.pos, s.size));
  }
  return normal_form(std::move(whole));
}

Result<Ownership> ownership(const Placement& p, const Counts& counts, const Extents& extents) {
  for (const AxisMap& map : p.axes) {
    std::int64_t covered = 1;
    for (const Digit& d : map.digits) covered *= number(d.size);
    if (const std::int64_t extent = extents[map.axis.index]; covered < extent)
      return Refused{Reason::uncovered, fmt::format("axis {}", map.axis.index), fmt::format("{} of {}", covered, extent)};
  }
  for (int r = 0; r <= static_cast<int>(Res::step); ++r) {
    const Res res = static_cast<Res>(r);
    Result<std::vector<Segment>> between = gaps(p, res, is_hardware(res) ? counts[res] : 0);
    if (!between) return between.refused();
    // A value may sit in loops that are none of its axes.
    if (res != Res::step && !between->empty()) return Refused{Reason::gap, std::string(name(res)), text(between->front())};
  }
  Ownership owners;
  for (const Partial& free : normal_form(p).rest) {
    owners.free.push_back(free);
    if (free.held != Held::first) owners.holders *= number(free.size);
  }
  return owners;
}

Result<std::vector<Piece>> pieces(const Placement& from, const Placement& to, const Extents& extents) {
  std::vector<Piece> all;
  for (const AxisMap& map : from.axes) {
    const AxisMap* other = to.find(map.axis);
    if (!other) return Refused{Reason::no_such_axis, fmt::format("axis {}", map.axis.index), ""};
    const std::int64_t extent = extents[map.axis.index];
    const std::vector<Weighted> a = weighted(map, extent), b = weighted(*other, extent);
    std::size_t i = 0, j = 0;
    for (std::int64_t weight = 1; weight < extent;) {
      COSMATI_CHECK(i < a.size() && j < b.size(), "axis {} is not covered", map.axis.index);
      const std::int64_t ends[] = {end_of(a[i], extent), end_of(b[j], extent)};
      const std::int64_t end = std::min({ends[0], ends[1], extent});
      for (const std::int64_t other_end : ends)
        if (end < extent && (end % weight != 0 || (other_end != endless && other_end % end != 0)))
          return Refused{Reason::indivisible, fmt::format("axis {}", map.axis.index), fmt::format("{} and {}", ends[0], ends[1])};
      const std::int64_t size = end < extent ? end / weight : (extent + weight - 1) / weight;
      all.push_back({map.axis, weight, size, part_of(a[i], weight, end, extent), part_of(b[j], weight, end, extent)});
      if (ends[0] <= end) ++i;
      if (ends[1] <= end) ++j;
      weight = end;
    }
  }
  return all;
}

std::vector<Segment> only_first(const Placement& p, const Extents& extents) {
  std::vector<Segment> list;
  for (const AxisMap& map : p.axes) {
    std::int64_t weight = 1;
    for (const Digit& d : map.digits) {
      if (weight >= extents[map.axis.index] && number(d.size) != 1) list.push_back(segment_of(d));
      weight *= number(d.size);
    }
  }
  for (const Partial& free : p.rest)
    if (free.held == Held::first && number(free.size) != 1) list.push_back(segment_of(free));
  return list;
}

namespace {

// What keeps a worker from its elements, the farthest first to be seen.
struct Distance {
  Travel travel;
  std::optional<Refused> example;
};
Result<Distance> distance(const Placement& from, const Placement& to, const Extents& extents) {
  Distance d;
  const Placement want = normal_form(to), have = normal_form(from);
  const auto beyond = [&](Res res, const Refused& example) {
    if (level_of(res) <= d.travel.level) return;
    d.travel.level = level_of(res);
    d.example = example;
  };
  const auto same_part = [](const Placement& p, const Partial& part) {
    return std::any_of(p.rest.begin(), p.rest.end(), [&](const Partial& other) {
      return other.held == Held::part && other.reducer == part.reducer && contains(segment_of(other), segment_of(part));
    });
  };
  for (const Partial& free : have.rest)
    if (free.held == Held::part && !same_part(want, free)) return Refused{Reason::unsettled, text(segment_of(free)), ""};
  for (const Partial& free : want.rest)
    if (free.held == Held::part && !same_part(have, free))
      return Refused{Reason::unsettled, text(segment_of(free)), "parts are wanted of what is whole"};

  const std::vector<Segment> wanted_first = only_first(want, extents);
  for (const Segment& s : only_first(have, extents))
    if (is_hardware(s.res) &&
        std::none_of(wanted_first.begin(), wanted_first.end(), [&](const Segment& other) { return contains(other, s); }))
      beyond(s.res, {Reason::not_first, text(s), ""});

  Result<std::vector<Piece>> cut = pieces(have, want, extents);
  if (!cut) return cut.refused();
  for (const Piece& piece : *cut) {
    if (piece.in_place()) continue;
    if (is_hardware(piece.from.res))
      beyond(piece.from.res, {Reason::elsewhere, fmt::format("axis {}", piece.axis.index),
                              fmt::format("{} there, {} here", text(piece.from), text(piece.to))});
    if (piece.from.res == Res::step || piece.to.res == Res::step)
      d.travel.steps = true;
    else
      d.travel.registers = true;
  }
  return d;
}

}  // namespace

Result<Travel> travel(const Placement& from, const Placement& to, const Extents& extents) {
  Result<Distance> d = distance(from, to, extents);
  if (!d) return d.refused();
  return d->travel;
}

Result<Travel> stays(const Placement& from, const Placement& to, const Extents& extents) {
  Result<Distance> d = distance(from, to, extents);
  if (!d) return d.refused();
  if (d->example) return *d->example;
  return d->travel;
}

Result<Use> use_of(const Placement& p, const Segment& segment) {
  const auto within = [&](const Segment& s) -> Result<Use> {
    const std::int64_t end = s.pos * s.size, segment_end = segment.pos * segment.size;
    if (s.res != segment.res || s.size == 1 || end <= segment.pos || segment_end <= s.pos) return Use{};
    if (segment.pos % s.pos != 0 || end % segment_end != 0 || segment.pos < s.pos)
      return Refused{Reason::indivisible, text(segment), text(s)};
    return Use{true};
  };
  for (const AxisMap& map : p.axes)
    for (const Digit& d : map.digits)
      if (Result<Use> use = within(segment_of(d)); !use || use->digit) return use;
  for (const Partial& free : p.rest) {
    Result<Use> use = within(segment_of(free));
    if (!use) return use;
    if (use->digit) return Use{false, free.held, free.reducer};
  }
  return Use{};
}

Result<std::vector<Segment>> segments(const std::vector<Placement>& placements) {
  std::vector<Segment> finest;
  for (const Res res : hardware_resources) {
    std::set<std::int64_t> cuts;
    for (const Placement& p : placements)
      for (const Segment& s : used(p, res)) {
        cuts.insert(s.pos);
        cuts.insert(s.pos * s.size);
      }
    std::int64_t last = 1;
    for (const std::int64_t cut : cuts) {
      if (cut % last != 0)
        return Refused{Reason::indivisible, std::string(name(res)), fmt::format("{} is no multiple of {}", cut, last)};
      if (cut > last) finest.push_back({res, last, cut / last});
      last = cut;
    }
  }
  return finest;
}

}  // namespace cosmati::place
