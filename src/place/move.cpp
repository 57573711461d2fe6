// Shuffles follow from digits. Of a coordinate's pieces some go from lanes to registers (their number is `a`), some from
// registers to lanes (`b`). In round t the lane with b reads a = b ^ t, or (b + t) mod n where sizes are no powers of two: then
// every lane is read for one register only, and as many rounds do as the larger of the two counts has values.
// SPDX-License-Identifier: Apache-2.0
#include "place/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

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

// What an index of one resource adds to the address and to the coordinates.
struct Share {
  bool on = true;
  std::int64_t byte = 0;
  Extents coordinates;
};
Share share_of(const Side& side, Res res, std::int64_t index) {
  Share share{true, 0, Extents(side.extents.size())};
  for (const Side::Term& term : side.terms) {
    if (term.at.res != res) continue;
    const std::int64_t value = digit_of(index, term.at);
    share.coordinates[term.axis] += value * term.weight;
    share.byte += value * term.stride;
  }
  for (const Segment& s : side.on) share.on = share.on && (s.res != res || digit_of(index, s) == 0);
  return share;
}

struct Turns {
  std::int64_t all = 0, least = 0;  // least: if no two words of an access shared a bank
};
// The turns of all accesses of the first group; counted on at most `sample` of them, spread evenly, as if all were like these.
Turns turns_of(const Side& side, const Access& access, const Home& home, const Counts& counts, const Banks& banks,
               std::size_t sample) {
  std::vector<Share> lanes, starts, subgroups;
  for (std::int64_t lane = 0; lane < counts[Res::lane]; ++lane) lanes.push_back(share_of(side, Res::lane, lane));
  for (std::int64_t s = 0; s < counts[Res::subgroup]; ++s) subgroups.push_back(share_of(side, Res::subgroup, s));
  for (std::int64_t reg = 0; reg < side.registers; ++reg)
    if (std::all_of(access.registers.begin(), access.registers.end(), [&](const Segment& s) { return digit_of(reg, s) == 0; }))
      starts.push_back(share_of(side, Res::reg, reg));

  Turns turns;
  std::vector<std::int64_t> addresses(lanes.size()), words;
  const std::size_t all = starts.size() * subgroups.size();
  // Odd, so that neighbours of every kind are among them.
  const std::size_t every = ((all - 1) / sample + 1) | 1;
  std::int64_t counted = 0;
  for (std::size_t k = 0; k < all; k += every) {
    ++counted;
    const Share &start = starts[k % starts.size()], &subgroup = subgroups[k / starts.size()];
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      bool on = start.on && subgroup.on && lanes[lane].on;
      for (std::size_t a = 0; on && a < side.extents.size(); ++a)
        on = start.coordinates[a] + subgroup.coordinates[a] + lanes[lane].coordinates[a] < side.extents[a];
      addresses[lane] = on ? home.swizzle(start.byte + subgroup.byte + lanes[lane].byte) : -1;
    }
    turns.all += wavefronts(addresses, access.width_bytes, banks);
    words.clear();
    for (const std::int64_t address : addresses)
      for (std::int64_t word = address / banks.bytes; address >= 0 && word * banks.bytes < address + access.width_bytes; ++word)
        words.push_back(word);
    std::sort(words.begin(), words.end());
    const std::int64_t distinct = std::unique(words.begin(), words.end()) - words.begin();
    turns.least += (distinct + banks.count - 1) / banks.count;
  }
  const auto total = static_cast<std::int64_t>(all);
  return {turns.all * total / counted, turns.least * total / counted};
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
  // Bytes are swizzled from the home's own first one: it moves them within blocks of this size.
  const std::int64_t block = std::max(home.align, std::int64_t{1} << (swizzle.base + swizzle.bits));
  home.bytes = (stride + block - 1) / block * block;
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
      for (int shift = bits; shift <= 8; ++shift) forms.push_back({0, {bits, base, shift}});

  const auto side = [&](const Home& home, const Placement& p, Segment Piece::* at) {
    Side s;
    s.registers = number(count(p, Res::reg));
    s.on = only_first(p, extents);
    std::vector<ir::AxisId> axes;
    for (const Piece& piece : all) {
      if (outside(piece)) continue;
      if (axes.empty() || axes.back() != piece.axis) {
        axes.push_back(piece.axis);
        s.extents.push_back(extents[piece.axis.index]);
      }
      s.terms.push_back({piece.*at, axes.size() - 1, piece.weight, stride_in(home, piece)});
    }
    return s;
  };
  const auto trip_of = [&](const Form& form, const std::vector<ir::AxisId>& axes, std::size_t sample) -> Result<Trip> {
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
    Side writes = side(trip.home, from, &Piece::from);
    writes.on.insert(writes.on.end(), trip.store.owner.begin(), trip.store.owner.end());
    const Turns out = turns_of(writes, trip.store, trip.home, counts, facts.banks, sample);
    const Turns in = turns_of(side(trip.home, to, &Piece::to), trip.load, trip.home, counts, facts.banks, sample);
    trip.store_turns = out.all;
    trip.load_turns = in.all;
    trip.least_turns = out.least + in.least;
    return trip;
  };

  constexpr std::size_t judged_by = 16;  // accesses a side
  std::optional<Form> best;
  std::vector<ir::AxisId> best_order;
  std::int64_t best_turns = 0;
  bool free_of_conflicts = false;
  for (const Form& form : forms)
    for (const auto& axes : orders) {
      if (free_of_conflicts) break;
      Result<Trip> trip = trip_of(form, axes, judged_by);
      if (!trip) return trip.refused();
      const std::int64_t turns = trip->store_turns + trip->load_turns;
      if (best && turns >= best_turns) continue;
      best = form;
      best_order = axes;
      best_turns = turns;
      free_of_conflicts = turns == trip->least_turns;
    }
  return trip_of(*best, best_order, std::numeric_limits<std::size_t>::max());
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
