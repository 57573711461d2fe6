// Extremes and where they are, with fewer operations an element than the merges of the reducer table, and the same results.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "lower/lowering.h"

namespace cosmati::lower {
namespace {

std::int64_t most(DType with_sign) {
  return byte_size(with_sign) == 8 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
}

}  // namespace

// The largest or smallest of float32 numbers, where a NaN wins and -0 is below +0, by three extremes of their bits: as integers
// numbers without a sign are in order, and those with one are in the opposite order above them, or below where integers have a
// sign; beyond the infinities lie the NaN. So it is for f16 and bf16, whose elements need no conversion then. Where f32 is not
// asked for both, the extreme that only counts among numbers of one sign is taken by comparing numbers, beside which NaN pass:
// vector units have other places for that than for integers.
Lowering::Folding Lowering::by_bits(ValueId v, Scope* s, bool both_ends) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const ir::Reducer& r = p_[reduce.reducer];
  const bool largest = r.fold == Op::maximum;
  const ValueId element = reduce.args[0];
  const DType own = p_[element].dtype;
  const bool half = lifts_unchanged(r) && (own == DType::f16_ || own == DType::bf16_) && loads_as_stored(element);
  const DType number = half ? own : DType::f32_;
  const DType with_sign = half ? DType::i16_ : DType::i32_, without = half ? DType::u16_ : DType::u32_;
  const std::int64_t sign = std::int64_t{1} << (half ? 15 : 31);
  const std::int64_t infinity = number == DType::f16_ ? 0x7c00 : half ? 0x7f80 : 0x7f800000;
  const bool compared = !half && !both_ends;
  const auto joined = [=, this](const Arguments& a, const Arguments& b, ExprId low, Scope* at) -> Arguments {
    return {b_.let(*at->block, "top", b_.apply(Op::maximum, {a[0], b[0]})), b_.let(*at->block, compared ? "best" : "low", low),
            b_.let(*at->block, "high", b_.apply(Op::maximum, {a[2], b[2]}))};
  };
  // By bits, since numbers would leave some lanes the one zero and some the other, though neither will count.
  const auto merge = [=, this](const Arguments& a, const Arguments& b, Scope* at) {
    const auto bits = [&](ExprId x) { return compared ? b_.bits(without, x) : x; };
    const ExprId low = b_.apply(Op::minimum, {bits(a[1]), bits(b[1])});
    return joined(a, b, compared ? b_.bits(DType::f32_, low) : low, at);
  };
  const auto step = [=, this, &reduce, &r](const Arguments& state, std::size_t, Scope* at) {
    const ExprId x = half ? as_stored(element, at) : lifted(reduce, r, at)[0];
    const ExprId bits = b_.let(*at->block, "bits", b_.bits(without, x));
    const ExprId low = compared ? b_.apply(Op::where, {b_.apply(largest ? Op::gt : Op::lt, {x, state[1]}), x, state[1]})
                                : b_.apply(Op::minimum, {state[1], bits});
    return joined(state, {b_.let(*at->block, "signed", b_.bits(with_sign, x)), {}, bits}, low, at);
  };
  // What no number is beyond in the order of each of the three, so that the states of the largest and the smallest are the same.
  constexpr double beyond = std::numeric_limits<double>::infinity();
  const Arguments identity = {b_.integer(-sign, with_sign),
                              compared ? b_.constant(DType::f32_, largest ? -beyond : beyond) : b_.integer(2 * sign - 1, without),
                              b_.integer(0, without)};
  const auto finish = [=, this, &r](const std::vector<Arguments>& states) {
    std::map<ValueId, ExprId> memo;
    const ExprId none = lambda_value(r.identity.results[0], {}, s, memo);
    std::size_t result = 0;
    each_copy(p_[v].axes, s, [&] {
      const Arguments& state = states[result++];
      const ExprId top = state[0], high = state[2];
      const ExprId low = compared ? b_.bits(without, state[1]) : state[1];
      const ExprId unsigned_top = b_.bits(without, top);
      const ExprId best = largest ? b_.apply(Op::where, {b_.apply(Op::ge, {top, b_.integer(0, with_sign)}), unsigned_top, low})
                                  : b_.apply(Op::where, {b_.apply(Op::ge, {high, b_.integer(sign, without)}), high, low});
      const ExprId nan = largest ? b_.apply(Op::lt, {b_.integer(infinity | sign, without), high})
                                 : b_.apply(Op::lt, {b_.integer(infinity, with_sign), top});
      const ExprId value = b_.cast(DType::f32_, b_.let(*s->block, "best", b_.bits(number, best)));
      const ExprId extreme =
          b_.apply(Op::where, {nan, b_.constant(DType::f32_, std::numeric_limits<double>::quiet_NaN()), value});
      const ExprId nothing = b_.apply(Op::lt, {high, b_.bits(without, top)});  // of no element
      s->memo[{v, copy_key(p_[v].axes, s)}] =
          lambda(r.finish, {b_.let(*s->block, name_of(v), b_.apply(Op::where, {nothing, none, extreme}))}, s);
    });
  };
  return {{identity, {"top", compared ? "best" : "low", "high"}, step, merge},
          finish,
          lifts_unchanged(r) ? std::optional(element) : std::nullopt};
}

// Where the lowest and highest elements are: a worker's elements come in the order of their indices, so one is taken only if it
// is better than what was taken before, and remembered by the block that it was in. A state that took nothing has the reducer's
// identity for a value; where it had elements, they all equal that, and the first one counts.
bool Lowering::places_in_order(const ir::Reduce& reduce) const {
  const ir::Reducer& r = p_[reduce.reducer];
  if (!r.builtin || !r.index || reduce.axes.size() != 1 || reduced_axes(reduce).size() != 1) return false;
  const ir::Axis& axis = p_[reduce.axes[0]];
  const auto* coordinate = std::get_if<ir::Coord>(&p_[reduce.args[1]].node);
  return coordinate && coordinate->axis == reduce.axes[0] && axis.in_dims && !axis.lo && !axis.hi;
}

Lowering::Folding Lowering::by_places(ValueId v, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const ir::Reducer& r = p_[reduce.reducer];
  const AxisId axis = reduce.axes[0];
  const bool largest = r.name == "argmax", numbers = is_float(r.state_types[0]);
  const auto let = [this](Scope* at, const char* name, ExprId e) { return b_.let(*at->block, name, e); };
  std::map<ValueId, ExprId> memo;
  // 32 bits hold every place where extents must fit them.
  const DType place = ir::narrows_integers(p_) ? DType::i32_ : DType::i64_;
  const ExprId worst = lambda_value(r.identity.results[0], {}, s, memo), none = b_.integer(-1, place);
  const ExprId nowhere = b_.integer(most(place), place);
  const ExprId size = let(s, "size", b_.cast(place, hi(axis, s)));
  Fold f;
  f.identity = {worst, none};
  f.names = {"best", "block"};
  f.step = [=, this, &reduce, &r](const Arguments& state, std::size_t, Scope* at) -> Arguments {
    const ExprId x = lifted(reduce, r, at)[0], best = state[0];
    // A NaN is better than every number, and nothing is better than a NaN.
    ExprId better = b_.apply(largest ? Op::gt : Op::lt, {x, best});
    if (numbers)
      better = both(b_.apply(Op::logical_not, {b_.apply(largest ? Op::le : Op::ge, {x, best})}), b_.apply(Op::eq, {best, best}));
    better = let(at, "better", better);
    const ExprId block = let(at, "at", b_.cast(place, binder(at, axis)->coordinates.at(axis).base));
    return {let(at, "best", b_.apply(Op::where, {better, x, best})),
            let(at, "block", b_.apply(Op::where, {better, block, state[1]}))};
  };
  f.close = [=, this](const Arguments& state, std::size_t copy, const Shape& shape) -> Arguments {
    const ExprId whole = b_.integer(static_cast<std::int64_t>(shape.copies) * shape.lanes);
    const ExprId first = let(s, "first", b_.cast(place, place_in_block(b_.integer(0), static_cast<std::uint32_t>(copy), shape)));
    const ExprId any =
        copy < shape.side || shape.whole ? b_.apply(Op::lt, {first, size}) : b_.apply(Op::le, {whole, hi(axis, s)});
    const ExprId untouched = b_.apply(Op::where, {any, first, nowhere});
    const ExprId taken = b_.apply(Op::le, {b_.integer(0, place), state[1]});
    return {let(s, "rank", rank(state[0], largest, s)),
            let(s, "place", b_.apply(Op::where, {taken, add(state[1], first), untouched}))};
  };
  // The best rank of all first, then the first place that has it.
  f.settle = [=, this](const std::vector<Arguments>& states, bool lanes, Scope* at) -> Arguments {
    const auto together = [&](std::vector<ExprId> all, const char* name, Op op) {
      for (; all.size() > 1; all.resize((all.size() + 1) / 2))
        for (std::size_t i = 0; i < all.size() / 2; ++i)
          all[i] = let(at, name, b_.apply(op, {all[i], all[(all.size() + 1) / 2 + i]}));
      if (!lanes) return all[0];
      const DType t = k_[all[0]].dtype;
      Fold one;
      one.identity = {b_.integer(op == Op::minimum ? most(t) : is_signed(t) ? -most(t) - 1 : 0, t)};
      one.merge = [=, this](const Arguments& a, const Arguments& b, Scope* in) {
        return Arguments{let(in, name, b_.apply(op, {a[0], b[0]}))};
      };
      return settle_lanes(one, {all[0]}, at)[0];
    };
    std::vector<ExprId> ranks, places;
    for (const Arguments& state : states) ranks.push_back(state[0]);
    const ExprId best = together(ranks, "best", largest ? Op::maximum : Op::minimum);
    for (const Arguments& state : states)
      places.push_back(let(at, "candidate", b_.apply(Op::where, {b_.apply(Op::eq, {state[0], best}), state[1], nowhere})));
    const ExprId found = together(places, "place", Op::minimum);
    return {best, let(at, "place", as_i64(b_.apply(Op::where, {b_.apply(Op::lt, {found, size}), found, none})))};
  };
  return {std::move(f), [this, v, s, &r](const std::vector<Arguments>& states) {
            std::size_t result = 0;
            each_copy(p_[v].axes, s, [&] { s->memo[{v, copy_key(p_[v].axes, s)}] = lambda(r.finish, states[result++], s); });
          }};
}

// A number that orders like `x`: an integer as it is, a float by its bits, where the zeros are equal and NaN are the best.
ExprId Lowering::rank(ExprId x, bool largest, Scope* s) {
  const DType number = k_[x].dtype;
  if (!is_float(number)) return x;
  const DType with_sign = number == DType::f64_ ? DType::i64_ : DType::i32_;
  const ExprId highest = b_.integer(most(with_sign), with_sign);
  const ExprId bits = b_.let(*s->block, "bits", b_.bits(with_sign, add(x, b_.constant(number, 0))));
  const ExprId negative = b_.apply(Op::lt, {bits, b_.integer(0, with_sign)});
  const ExprId ordered = b_.apply(Op::where, {negative, b_.apply(Op::bit_xor, {bits, highest}), bits});
  const ExprId of_nan = largest ? highest : b_.integer(-most(with_sign) - 1, with_sign);
  return b_.apply(Op::where, {b_.apply(Op::eq, {x, x}), ordered, of_nan});
}

}  // namespace cosmati::lower
