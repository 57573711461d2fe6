// Decides the error rules of single operations: corners of the argument box, Lipschitz bounds, discrete comparisons, selection,
// plus the operation's own rounding. The rule of an operation is its row in ops.def.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/number.h"

#include <algorithm>
#include <array>

namespace cosmati::oracle {

using ops::Op;

const Precision& precision(DType t) {
  static const auto table = [] {
    std::array<Precision, dtype_count> rows{};
    for (int k = 0; k < dtype_count; ++k) {
      const DTypeInfo& d = dtype_table[k];
      if (d.klass != DTypeClass::floating) continue;
      const int bias = (1 << (d.exponent_bits - 1)) - 1;
      rows[k].unit = std::ldexp(1.0, -d.mantissa_bits - 1);
      rows[k].tiny = std::ldexp(1.0, 1 - bias - d.mantissa_bits);
      rows[k].largest = std::ldexp(2.0 - std::ldexp(1.0, -d.mantissa_bits), bias);
    }
    rows[static_cast<int>(DType::f8e4m3_)].largest = 448;  // no infinity: the top exponent holds numbers
    return rows;
  }();
  return table[static_cast<int>(t)];
}

namespace {

bool representable(DType t, double v) {
  if (t == DType::f64_) return true;
  if (t == DType::f32_) return static_cast<double>(static_cast<float>(v)) == v;
  return ops::round_to(t, v) == v;
}

// The distance between two values that may be infinite or NaN: 0 where they are the same, infinity where it has no measure.
double distance(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : infinity;
  if (a == b) return 0;
  return std::isinf(a) || std::isinf(b) ? infinity : std::fabs(a - b);
}

bool any_error(const Num* args, int n) {
  return std::any_of(args, args + n, [](const Num& a) { return a.err > 0; });
}
bool any_unbounded(const Num* args, int n) {
  return std::any_of(args, args + n, [](const Num& a) { return std::isinf(a.err); });
}

double float_corners(Op op, const Num* args, int n, double centre) {
  double corner[3] = {args[0].f, n > 1 ? args[1].f : 0, n > 2 ? args[2].f : 0};
  double bound = 0;
  for (int mask = 0; mask < 1 << n; ++mask) {
    bool fresh = true;
    for (int k = 0; k < n; ++k) {
      const bool up = mask >> k & 1;
      if (up && args[k].err == 0) fresh = false;
      corner[k] = args[k].f + (up ? args[k].err : -args[k].err);
    }
    if (fresh) bound = std::max(bound, distance(ops::reference_wide(op, corner), centre));
  }
  return bound;
}

// Whether an uncertain argument may be the certain `v`.
bool may_be(const Num& a, double v) { return a.err > 0 && std::fabs(a.f - v) <= a.err; }

// Where the box reaches a pole, or a point whose value no neighbour has, the corners do not hold the extremes.
bool reaches_pole(Op op, const Num* args) {
  if (op == Op::div) return may_be(args[1], 0);
  if (op != Op::pow) return false;
  const Num &base = args[0], &exponent = args[1];
  // 1 to the NaN and NaN to the 0 are 1.
  if (std::isnan(exponent.f) && may_be(base, 1)) return true;
  if (std::isnan(base.f) && may_be(exponent, 0)) return true;
  // The power of a negative number is defined at integers only.
  return (base.err > 0 && base.f - base.err <= 0) || (base.f < 0 && exponent.err > 0);
}

// A function that is 0 nowhere, at arguments where float64 has only 0 left of it: a device may keep the last place of its type.
bool underflows(Op op, const double* v, double centre) {
  if (centre != 0 || !std::isfinite(v[0]) || !std::isfinite(v[1])) return false;
  switch (op) {
    case Op::exp:
    case Op::exp2:
    case Op::exp_diff:
    case Op::sigmoid:
    case Op::softplus:
      return true;
    case Op::pow:
      return v[0] != 0;
    default:
      return false;
  }
}

double propagated(Op op, const Num* args, int n, double centre, bool boolean) {
  if (!any_error(args, n)) return 0;
  const double unknown = boolean ? 1 : infinity;
  if (any_unbounded(args, n) || reaches_pole(op, args)) return unknown;
  double bound = 0;
  switch (ops::info(op).error) {
    case ops::ErrorRule::lipschitz:
      for (int k = 0; k < n; ++k) bound += args[k].err;
      return std::isfinite(centre) ? bound : float_corners(op, args, n, centre);
    case ops::ErrorRule::discrete:
      if (std::isnan(args[0].f) || std::isnan(args[1].f)) return 0;
      return distance(args[0].f, args[1].f) <= args[0].err + args[1].err ? 1 : 0;
    case ops::ErrorRule::corners:
    case ops::ErrorRule::select:
      bound = float_corners(op, args, n, centre);
      return boolean ? (bound > 0 ? 1 : 0) : bound;
  }
  return unknown;
}

Num wide_float(Op op, DType result, const Num* args, int n) {
  double v[3] = {args[0].f, n > 1 ? args[1].f : 0, n > 2 ? args[2].f : 0};
  Num r;
  const double centre = ops::reference_wide(op, v);
  const ops::OpInfo& row = ops::info(op);
  if (!is_float(result)) {
    r.i = static_cast<std::int64_t>(centre);
    r.err = propagated(op, args, n, centre, true);
    return r;
  }
  r.f = centre;
  r.err = propagated(op, args, n, centre, false);
  if (!std::isfinite(centre)) return r;
  // What a device rounds may be larger than the centre.
  if (row.ulp > 0 && std::isfinite(r.err)) r.err += rounding(result, std::fabs(centre) + r.err, row.ulp, !any_error(args, n));
  if (underflows(op, v, centre)) r.err += row.ulp * precision(result).tiny;
  if (op == Op::exp_diff && std::isfinite(v[0]) && std::isfinite(v[1]))  // the difference rounds before its exponential
    r.err += (centre + r.err) * std::expm1((std::fabs(v[0] - v[1]) + args[0].err + args[1].err) * precision(result).unit);
  if ((op == Op::sin || op == Op::cos) && std::fabs(v[0]) + args[0].err >= 65536) r.err = infinity;  // nothing is promised there
  r.err = within_range(result, centre, r.err);
  return r;
}

// Whether an integer type holds everything within `err` of r; arithmetic and conversions wrap what it does not hold.
bool holds(DType t, double r, double err) {
  const double above = std::ldexp(1.0, 8 * byte_size(t) - (is_signed(t) ? 1 : 0)), lowest = is_signed(t) ? -above : 0;
  // What is below the lowest i64 may be rounded to it.
  return r + err < above && (byte_size(t) < 8 ? r - err >= lowest : r - err > lowest);
}

double apart(std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  return static_cast<double>(a > b ? ua - ub : ub - ua);
}

double integer_error(Op op, DType argument, DType result, const Num* args, int n, std::int64_t centre) {
  if (!any_error(args, n)) return 0;
  if (is_bool(argument)) {  // every choice of the uncertain ones
    for (int mask = 1; mask < 1 << n; ++mask) {
      ops::Scalar flipped[3];
      for (int k = 0; k < n; ++k) flipped[k].i = args[k].i ^ ((mask >> k & 1) && args[k].err > 0 ? 1 : 0);
      if (ops::reference(op, argument, result, flipped).i != centre) return 1;
    }
    return 0;
  }
  if (is_bool(result)) return apart(args[0].i, args[1].i) <= args[0].err + args[1].err ? 1 : 0;
  if (any_unbounded(args, n)) return infinity;
  const auto value = [&](int k) { return static_cast<double>(args[k].i); };
  const auto unless_it_wraps = [&](double r, double err) { return holds(result, r, err) ? err : infinity; };
  double bound = 0;
  for (int k = 0; k < n; ++k) bound = std::max(bound, args[k].err);
  switch (op) {
    case Op::minimum:
    case Op::maximum:
    case Op::minimum_num:
    case Op::maximum_num:
    case Op::clamp:
      return bound;
    case Op::neg:
      return unless_it_wraps(-value(0), bound);
    case Op::abs:
      return unless_it_wraps(std::fabs(value(0)), bound);
    case Op::add:
      return unless_it_wraps(value(0) + value(1), args[0].err + args[1].err);
    case Op::sub:
      return unless_it_wraps(value(0) - value(1), args[0].err + args[1].err);
    case Op::mul:
      return unless_it_wraps(value(0) * value(1),
                             std::fabs(value(0)) * args[1].err + std::fabs(value(1)) * args[0].err + args[0].err * args[1].err);
    default:
      return infinity;
  }
}

Num wide_select(DType type, const Num* args) {
  const Num& chosen = args[0].i ? args[1] : args[2];
  if (args[0].err == 0) return chosen;
  const Num& other = args[0].i ? args[2] : args[1];
  Num r = chosen;
  const double gap = is_float(type) ? distance(chosen.f, other.f) : apart(chosen.i, other.i);
  r.err = std::max(chosen.err, gap == 0 ? other.err : (gap + other.err) * (1 + 0x1p-51));
  if (is_bool(type)) r.err = r.err > 0 ? 1 : 0;
  return r;
}

Num wide_cast(DType from, DType to, const Num& a) {
  Num r;
  if (is_float(from) && is_float(to)) {
    r.f = a.f;
    r.err = a.err + narrowing(from, to, a.f, a.err);
    return r;
  }
  if (is_float(to)) {
    r.f = static_cast<double>(a.i);
    const double own = std::fabs(r.f) > 0x1p53 ? 0x1p-53 * std::fabs(r.f) : 0;
    r.err = within_range(to, r.f, a.err + rounding(to, std::fabs(r.f) + a.err, 0.5, own == 0 && a.err == 0) + own);
    return r;
  }
  const ops::Scalar centre = ops::cast(from, to, {a.f, a.i});
  r.i = centre.i;
  if (a.err == 0) return r;
  if (std::isinf(a.err)) {
    r.err = is_bool(to) ? 1 : infinity;
  } else if (is_bool(to)) {
    r.err = std::fabs(is_float(from) ? a.f : static_cast<double>(a.i)) <= a.err ? 1 : 0;
  } else if (is_float(from)) {
    for (const double corner : {a.f - a.err, a.f + a.err})
      r.err = std::max(r.err, apart(ops::cast(from, to, {corner, 0}).i, r.i));
  } else {
    r.err = holds(to, static_cast<double>(a.i), a.err) ? a.err : infinity;
  }
  return r;
}

Num wide_bits(DType from, DType to, const Num& a) {
  const double rounded = is_float(from) ? ops::round_to(from, a.f) : 0;
  const ops::Scalar s = ops::reinterpret(from, to, {rounded, a.i});
  const bool certain = a.err == 0 && (!is_float(from) || distance(rounded, a.f) == 0);
  return {s.f, s.i, certain ? 0 : infinity};
}

}  // namespace

double rounding(DType t, double r, double ulp, bool exact) {
  if (r == 0 || !std::isfinite(r)) return 0;
  // In float64 itself the evaluation has no digits to spare that would show whether it was exact.
  if (exact && ulp <= 0.5 && t != DType::f64_ && representable(t, r)) return 0;
  const Precision& p = precision(t);
  const double own = t == DType::f64_ ? 1 : 0x1p-29;  // the float64 evaluation rounds as well
  return (2 * ulp + own) * p.unit * std::fabs(r) + (std::max(ulp, 0.5) + own) * p.tiny;
}

double within_range(DType t, double r, double err) {
  return !std::isfinite(r) || std::fabs(r) + err <= precision(t).largest ? err : infinity;
}

double narrowing(DType from, DType to, double v, double err) {
  if (std::isinf(err)) return 0;  // nothing is left to add
  if (precision(to).unit <= precision(from).unit && precision(to).largest >= precision(from).largest) return 0;
  if (!std::isfinite(v)) return std::isinf(v) && to == DType::f8e4m3_ ? infinity : 0;
  return within_range(to, v, err + rounding(to, std::fabs(v) + err, 0.5, err == 0)) - err;
}

Num apply_wide(Op op, DType argument, DType result, const Num* args) {
  switch (op) {
    case Op::cast:
      return wide_cast(argument, result, args[0]);
    case Op::bits:
      return wide_bits(argument, result, args[0]);
    case Op::where:
      return wide_select(result, args);
    default:
      break;
  }
  const int n = ops::info(op).arity;
  if (is_float(argument)) return wide_float(op, result, args, n);
  ops::Scalar scalars[3];
  for (int k = 0; k < n; ++k) scalars[k] = {args[k].f, args[k].i};
  const ops::Scalar r = ops::reference(op, argument, result, scalars);
  return {r.f, r.i, integer_error(op, argument, result, args, n, r.i)};
}

Num apply_typed(Op op, DType argument, DType result, const Num* args) {
  ops::Scalar scalars[3];
  for (int k = 0; k < ops::info(op).arity; ++k) scalars[k] = {args[k].f, args[k].i};
  ops::Scalar r;
  if (op == Op::cast)
    r = ops::cast(argument, result, scalars[0]);
  else if (op == Op::bits)
    r = ops::reinterpret(argument, result, scalars[0]);
  else
    r = ops::reference(op, argument, result, scalars);
  return {r.f, r.i, 0};
}

bool agree(DType t, const Num& a, const Num& b) {
  if (!is_float(t)) return a.i == b.i || a.err > 0 || b.err > 0;
  if (std::isinf(a.err) || std::isinf(b.err)) return true;
  const double apart = distance(a.f, b.f);
  return apart == 0 || (std::isfinite(apart) && apart <= a.err + b.err + 1e-13 * std::max(std::fabs(a.f), std::fabs(b.f)));
}

}  // namespace cosmati::oracle
