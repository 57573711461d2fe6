// Shuffles follow from digits. Of a coordinate's pieces some go from lanes to registers (their number is `a`), some from
// registers to lanes (`b`). In round t the lane with b reads a = b ^ t, or (b + t) mod n where sizes are no powers of two: then
// every lane is read for one register only, and as many rounds do as the larger of the two counts has values.
// SPDX-License-Identifier: Apache-2.0
#include "place/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace cosmati::place {
namespace {

std::int64_t digit_of(std::int64_t index, const Segment& s) { return index / s.pos % s.size; }
std::int64_t with_digit(std::int64_t index, const Segment& s, std::int64_t value) {
  return index + (value % s.size - digit_of(index, s)) * s.pos;
}

using Pieces = std::vector<Piece>;

std::int64_t combinations(const Pieces& list) {
  std::int64_t n = 1;
  for (const Piece& p : list) n *= p.size;
  return n;
}
// The digits of a number over the pieces, the first the fastest.
std::vector<std::int64_t> digits(std::int64_t number, const Pieces& list) {
  std::vector<std::int64_t> values;
  for (const Piece& p : list) {
    values.push_back(number % p.size);
    number /= p.size;
  }
  return values;
}
// The register part of a number over the pieces, on their side.
std::int64_t registers(std::int64_t number, const Pieces& list, Segment Piece::* side) {
  std::int64_t at = 0;
  const std::vector<std::int64_t> values = digits(number, list);
  for (std::size_t i = 0; i < list.size(); ++i) at += values[i] * (list[i].*side).pos;
  return at;
}

struct Classes {
  Pieces gathered;              // from lanes to registers
  Pieces spread;                // from registers to lanes
  Pieces renamed;               // from registers to registers
  Pieces permuted;              // from lanes to lanes
  std::vector<Segment> first;   // lanes of which the first is read, but for what lane_selects add
  std::vector<Segment> wanted;  // lanes of which only the first needs it
  std::vector<Select> selects, lane_selects;
};

Classes classify(const Placement& from, const Placement& to, const Extents& extents) {
  Classes c;
  for (const Piece& p : *pieces(normal_form(from), normal_form(to), extents)) {
    const bool lane = p.from.res == Res::lane, reg = p.from.res == Res::reg;
    if (lane && p.to.res == Res::lane) c.permuted.push_back(p);
    if (lane && p.to.res == Res::reg) c.gathered.push_back(p);
    if (reg && p.to.res == Res::lane) c.spread.push_back(p);
    if (reg && p.to.res == Res::reg) c.renamed.push_back(p);
    if (is_hardware(p.to.res) && p.to.res != Res::lane) {
      if (reg) c.selects.push_back({p.to, p.from.pos});
      if (lane) c.lane_selects.push_back({p.to, p.from.pos});
      if (lane) c.first.push_back(p.from);
    }
  }
  for (const Segment& s : only_first(from, extents))
    if (s.res == Res::lane) c.first.push_back(s);
  for (const Segment& s : only_first(to, extents))
    if (s.res == Res::lane) c.wanted.push_back(s);
  // Alike on both sides, so that a swap is an xor of the lane.
  std::sort(c.gathered.begin(), c.gathered.end(), [](const Piece& a, const Piece& b) { return a.from.pos < b.from.pos; });
  std::sort(c.spread.begin(), c.spread.end(), [](const Piece& a, const Piece& b) { return a.to.pos < b.to.pos; });
  return c;
}

std::vector<Round> rounds_of(const Classes& c, std::int64_t lanes) {
  const std::int64_t a = combinations(c.gathered), b = combinations(c.spread), n = std::max(a, b);
  const bool xors = std::has_single_bit(static_cast<std::uint64_t>(a)) && std::has_single_bit(static_cast<std::uint64_t>(b));
  std::vector<Round> rounds;
  for (std::int64_t kept = 0; kept < combinations(c.renamed); ++kept)
    for (std::int64_t t = 0; t < n; ++t) {
      const std::vector<std::int64_t> none(static_cast<std::size_t>(lanes), -1);
      Round round{none, none, none, {}};
      bool one_mask = true, any = false;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        std::int64_t own = 0, weight = 1;  // what the lane is to the pieces that spread
        bool exists = true;
        for (const Segment& s : c.wanted) exists = exists && digit_of(lane, s) == 0;
        for (const Piece& p : c.spread) {
          const std::int64_t value = digit_of(lane, p.to);
          exists = exists && value < p.size;
          own += value * weight;
          weight *= p.size;
        }
        const std::int64_t other = xors ? own ^ t : (own + t) % n;
        if (!exists || other >= a) continue;
        std::int64_t source = lane;
        const std::vector<std::int64_t> values = digits(other, c.gathered);
        for (std::size_t i = 0; i < values.size(); ++i) source = with_digit(source, c.gathered[i].from, values[i]);
        for (const Piece& p : c.permuted) {
          const std::int64_t value = digit_of(lane, p.to);
          exists = exists && value < p.size;
          source = with_digit(source, p.from, value);
        }
        for (const Segment& s : c.first) source = with_digit(source, s, 0);
        if (!exists) continue;
        any = true;
        const auto at = static_cast<std::size_t>(lane);
        round.from[at] = source;
        round.into[at] = registers(other, c.gathered, &Piece::to) + registers(kept, c.renamed, &Piece::to);
        round.publish[static_cast<std::size_t>(source)] =
            registers(own, c.spread, &Piece::from) + registers(kept, c.renamed, &Piece::from);
        one_mask = one_mask && (!round.mask || *round.mask == (lane ^ source));
        round.mask = lane ^ source;
      }
      if (!one_mask || !c.lane_selects.empty()) round.mask.reset();
      for (std::int64_t lane = 0; lane < lanes; ++lane) {  // what is read by one value of a select is read by all
        std::int64_t read = lane;
        for (const Select& s : c.lane_selects) read -= read / s.stride % s.segment.size * s.stride;
        round.publish[static_cast<std::size_t>(lane)] = round.publish[static_cast<std::size_t>(read)];
      }
      if (any) rounds.push_back(std::move(round));
    }
  return rounds;
}

// ---- the round trip --------------------------------------------------------------------------------------------------------

// One side of a trip: where the pieces are, and what they count in the home.
struct Side {
  struct Term {
    Segment at;
    std::size_t axis;
    std::int64_t weight, stride;
  };
  std::vector<Term> terms;
  std::vector<Segment> on;  // who takes part: index 0 in each
  std::int64_t registers = 1;
  Extents extents;
};

// Visits the accesses of every subgroup of the first group: the addresses of its lanes, -1 where a lane takes no part.
template <class F>
void each_access(const Side& side, const Access& access, const Home& home, const Counts& counts, const F& visit) {
  std::vector<std::int64_t> addresses(static_cast<std::size_t>(counts[Res::lane]));
  Extents coordinates(side.extents.size());
  for (std::int64_t subgroup = 0; subgroup < counts[Res::subgroup]; ++subgroup)
    for (std::int64_t reg = 0; reg < side.registers; ++reg) {
      if (std::any_of(access.registers.begin(), access.registers.end(), [&](const Segment& s) { return digit_of(reg, s) != 0; }))
        continue;
      bool any = false;
      for (std::int64_t lane = 0; lane < counts[Res::lane]; ++lane) {
        const auto index = [&](Res res) {
          return res == Res::lane ? lane : res == Res::reg ? reg : res == Res::subgroup ? subgroup : 0;
        };
        std::int64_t byte = 0;
        bool on = true;
        std::fill(coordinates.begin(), coordinates.end(), 0);
        for (const Side::Term& term : side.terms) {
          const std::int64_t value = digit_of(index(term.at.res), term.at);
          coordinates[term.axis] += value * term.weight;
          on = on && coordinates[term.axis] < side.extents[term.axis];
          byte += value * term.stride;
        }
        for (const Segment& s : side.on) on = on && digit_of(index(s.res), s) == 0;
        addresses[static_cast<std::size_t>(lane)] = on ? home.swizzle(byte) : -1;
        any = any || on;
      }
      if (any) visit(addresses);
    }
}

std::int64_t turns_of(const Side& side, const Access& access, const Home& home, const Counts& counts, const Banks& banks) {
  std::int64_t turns = 0;
  each_access(side, access, home, counts,
              [&](const auto& addresses) { turns += wavefronts(addresses, access.width_bytes, banks); });
  return turns;
}
// The turns if no two words of an access shared a bank.
std::int64_t least_of(const Side& side, const Access& access, const Home& home, const Counts& counts, const Banks& banks) {
  std::int64_t turns = 0;
  each_access(side, access, home, counts, [&](const std::vector<std::int64_t>& addresses) {
    std::vector<std::int64_t> words;
    for (const std::int64_t address : addresses)
      for (std::int64_t word = address / banks.bytes; address >= 0 && word * banks.bytes < address + access.width_bytes; ++word)
        words.push_back(word);
    std::sort(words.begin(), words.end());
    const std::int64_t distinct = std::unique(words.begin(), words.end()) - words.begin();
    turns += (distinct + banks.count - 1) / banks.count;
  });
  return turns;
}

// Whether a piece is told apart by which home it is in, rather than inside it.
bool outside(const Piece& p) {
  return p.from.res == Res::grid || p.from.res == Res::cluster || (p.from.res == Res::step && p.in_place());
}

// A home whose axes count in the given order, the first the fastest, with `pad` bytes after each run of it.
Home linear_home(const Pieces& all, const std::vector<ir::AxisId>& order, std::int64_t pad, const Swizzle& swizzle,
                 std::int64_t bytes) {
  Home home{{}, swizzle, bytes};
  std::int64_t stride = bytes;
  for (std::size_t k = 0; k < order.size(); ++k) {
    AxisMap map{order[k], {}};
    for (const Piece& p : all) {
      if (p.axis != order[k]) continue;
      if (outside(p)) {
        map.digits.push_back(digit(p.from.res, p.from.pos, p.from.size));
      } else {
        map.digits.push_back(digit(Res::addr, stride, p.size));
        stride *= p.size;
      }
    }
    home.map.axes.push_back(std::move(map));
    if (k == 0) stride += pad;
  }
  home.align = swizzle.bits ? std::int64_t{1} << (swizzle.base + swizzle.shift + swizzle.bits) : 16;
  home.bytes = (stride + home.align - 1) / home.align * home.align;
  return home;
}

std::int64_t stride_in(const Home& home, const Piece& piece) {
  std::int64_t weight = 1;
  for (const Digit& d : home.map.find(piece.axis)->digits) {
    if (weight == piece.weight) return d.res == Res::addr ? number(d.pos) : 0;
    weight *= number(d.size);
  }
  return 0;
}

}  // namespace

Result<Trip> through_shared(const Placement& from, const Placement& to, const Counts& counts, const Extents& extents,
                            const MoveFacts& facts) {
  Result<Travel> distance = travel(from, to, extents);
  if (!distance) return distance.refused();
  if (distance->level == Level::grid) return Refused{Reason::between_groups, "", ""};
  Pieces all = *pieces(normal_form(from), normal_form(to), extents);

  std::vector<ir::AxisId> order;
  for (const AxisMap& map : from.axes) order.push_back(map.axis);
  std::sort(order.begin(), order.end());
  std::vector<std::vector<ir::AxisId>> orders;
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()) && orders.size() < 24);

  struct Form {
    std::int64_t pad;
    Swizzle swizzle;
  };
  std::vector<Form> forms{{0, {}}};
  for (const std::int64_t pad : {facts.banks.bytes, std::int64_t{16}})
    if (pad % facts.element_bytes == 0) forms.push_back({pad, {}});
  for (const int base : {4, 3, 2})
    for (int bits = 1; bits <= 7 - base; ++bits)
      for (int shift = bits; shift <= 5; ++shift) forms.push_back({0, {bits, base, shift}});

  const auto side = [&](const Home& home, const Placement& p, Segment Piece::* at) {
    Side s;
    s.registers = number(count(p, Res::reg));
    s.extents = extents;
    s.on = only_first(p, extents);
    for (const Piece& piece : all)
      if (!outside(piece)) s.terms.push_back({piece.*at, piece.axis.index, piece.weight, stride_in(home, piece)});
    return s;
  };
  std::optional<Trip> best;
  for (const Form& form : forms)
    for (const auto& axes : orders) {
      if (best && best->store_turns + best->load_turns == best->least_turns) return *best;
      Trip trip;
      trip.home = linear_home(all, axes, form.pad, form.swizzle, facts.element_bytes);
      Result<Access> stored = store(from, trip.home, extents, {trip.home.align, facts.widest});
      Result<Access> loaded = load(to, trip.home, extents, {trip.home.align, facts.widest});
      if (!stored) return stored.refused();
      if (!loaded) return loaded.refused();
      trip.store = *stored;
      // Every group fills a home of its own.
      std::erase_if(trip.store.owner, [&](const Segment& s) {
        return (s.res == Res::grid || s.res == Res::cluster) && use_of(from, s)->held == Held::same;
      });
      trip.load = *loaded;
      Side writes = side(trip.home, from, &Piece::from), reads = side(trip.home, to, &Piece::to);
      writes.on.insert(writes.on.end(), trip.store.owner.begin(), trip.store.owner.end());
      trip.store_turns = turns_of(writes, trip.store, trip.home, counts, facts.banks);
      trip.load_turns = turns_of(reads, trip.load, trip.home, counts, facts.banks);
      trip.least_turns = least_of(writes, trip.store, trip.home, counts, facts.banks) +
                         least_of(reads, trip.load, trip.home, counts, facts.banks);
      if (!best || trip.store_turns + trip.load_turns < best->store_turns + best->load_turns) best = std::move(trip);
    }
  return *best;
}

Result<Move> move(const Placement& from, const Placement& to, const Counts& counts, const Extents& extents,
                  const MoveFacts& facts) {
  Result<Travel> distance = travel(from, to, extents);
  if (!distance) return distance.refused();
  Move m;
  if (distance->level == Level::worker && distance->steps) {
    m.kind = MoveKind::keep;
    return m;
  }
  if (distance->level == Level::worker && !distance->registers) return m;
  if (distance->level <= Level::lane && !distance->steps) {
    const Classes classes = classify(from, to, extents);
    m.kind = distance->level == Level::lane ? MoveKind::shuffle : MoveKind::rename;
    m.rounds = rounds_of(classes, counts[Res::lane]);
    m.selects = classes.selects;
    m.lane_selects = classes.lane_selects;
    m.shuffles = std::count_if(m.rounds.begin(), m.rounds.end(), [](const Round& r) { return r.mask != 0; });
    return m;
  }
  Result<Trip> trip = through_shared(from, to, counts, extents, facts);
  if (!trip) return trip.refused();
  m.kind = distance->level == Level::cluster ? MoveKind::cluster : MoveKind::shared;
  m.trip = *trip;
  return m;
}

}  // namespace cosmati::place
