// Conversions of f16, bf16, f8e4m3 and f8e5m2, by integer operations on their bits, to nearest even and rounded once.
// After expansion a backend meets these types only as the bits of u16 and u8, and in the conversions that it has.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernel/expand.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

struct Format {
  DType storage;
  int dropped;                  // mantissa bits fewer than f32
  int rebias;                   // exponent bias less than f32
  int sign_shift;               // from the sign of f32 to its own
  std::int64_t sign, overflow;  // bits of the sign, and of what is too large: infinity, or NaN where there is none
  std::int64_t nan;
};

Format format(DType t) {
  const int e = info(t).exponent_bits, m = info(t).mantissa_bits, width = 8 * byte_size(t);
  const bool has_infinity = t != DType::f8e4m3_;
  const std::int64_t top = (std::int64_t{1} << (width - 1)) - 1;  // all ones below the sign
  const std::int64_t infinity = top - ((std::int64_t{1} << m) - 1);
  return {byte_size(t) == 1 ? DType::u8_ : DType::u16_,
          23 - m,
          127 - ((1 << (e - 1)) - 1),
          32 - width,
          std::int64_t{1} << (width - 1),
          has_infinity ? infinity : top,
          has_infinity ? infinity | (std::int64_t{1} << (m - 1)) : top};
}

constexpr std::int64_t f32_infinity = 0x7f800000, f32_magnitude = 0x7fffffff;

// bf16 is the upper half of f32: a carry out of what is dropped rounds up, into the exponent and to infinity where it has to.
Value bf16_from_f32(Code& c, Value x) {
  const Format f = format(DType::bf16_);
  const Value bits = c.let("bits", c.bits(DType::u32_, x)), upper = c.let("upper", bits >> f.dropped);
  const Value rounded = (bits + static_cast<double>((1 << (f.dropped - 1)) - 1) + (upper & 1)) >> f.dropped;
  const Value nan = (upper & f.sign) | f.nan;
  return c.bits(DType::bf16_, c.cast(f.storage, where(c.apply(Op::ne, {x, x}), nan, rounded)));
}

// A NaN keeps its sign and loses what else it carries, as everywhere.
Value f16_by_instruction(Code& c, Value x) {
  const Value nan = c.bits(DType::f32_, (c.bits(DType::i32_, x) & ~f32_magnitude) | 0x7fc00000);
  return c.cast(DType::f16_, where(c.apply(Op::ne, {x, x}), nan, x));
}

Value narrow_from_f32(Code& c, DType to, Value x) {
  const Format f = format(to);
  const Value bits = c.let("bits", c.bits(DType::i32_, x));
  const Value magnitude = c.let("magnitude", bits & f32_magnitude);
  const double below_half = static_cast<double>((1 << (f.dropped - 1)) - 1);
  const Value odd = (magnitude >> f.dropped) & 1;
  const Value rounded = (magnitude + below_half + odd) >> f.dropped;
  Value result = rounded - static_cast<double>(f.rebias << (23 - f.dropped));
  if (f.rebias > 0) {
    // A power of two whose last place is the smallest subnormal: adding it rounds there.
    const int exponent = f.dropped - (127 - f.rebias) + 1;
    const std::int64_t unit_bits = static_cast<std::int64_t>(exponent + 127) << 23;
    const Value sum = c.bits(DType::f32_, magnitude) + std::ldexp(1.0, exponent);
    const Value subnormal = c.bits(DType::i32_, sum) - static_cast<double>(unit_bits);
    result = where(magnitude < static_cast<double>((f.rebias + 1) << 23), subnormal, result);
  }
  result = c.apply(Op::minimum, {result, c.integer(DType::i32_, f.overflow)});
  result = where(magnitude > static_cast<double>(f32_infinity), static_cast<double>(f.nan), result);
  const Value sign = (bits >> f.sign_shift) & f.sign;
  return c.bits(to, c.cast(f.storage, result | sign));
}

Value f32_from_narrow(Code& c, Value x) {
  const Format f = format(x.dtype());
  const Value bits = c.let("bits", c.cast(DType::i32_, c.bits(f.storage, x)));
  if (f.rebias == 0) return c.bits(DType::f32_, bits << f.dropped);
  const Value magnitude = c.let("magnitude", bits & (f.sign - 1));
  const Value shifted = c.let("shifted", magnitude << f.dropped);
  // The product makes subnormals normal.
  const Value finite = c.bits(DType::i32_, c.bits(DType::f32_, shifted) * std::ldexp(1.0, f.rebias));
  const Value value = where(magnitude >= static_cast<double>(f.overflow), shifted | f32_infinity, finite);
  return c.bits(DType::f32_, value | ((bits & f.sign) << f.sign_shift));
}

// f64 to f32 with an inexact result made odd: rounding that to fewer bits equals rounding once.
Value f32_to_odd(Code& c, Value x) {
  const Value nearest = c.let("nearest", c.cast(DType::f32_, x));
  const Value back = c.let("back", abs(c.cast(DType::f64_, nearest)));
  const Value magnitude = c.let("magnitude", abs(x));
  const Value bits = c.bits(DType::i32_, nearest);
  const Value towards_zero = c.let("towards_zero", bits - c.cast(DType::i32_, c.apply(Op::gt, {back, magnitude})));
  const Value inexact = c.cast(DType::i32_, c.apply(Op::ne, {back, magnitude}));
  return c.bits(DType::f32_, towards_zero | inexact);
}

// An integer to f64; of 64 bits, those below the last place of a large one make it odd.
Value f64_from_integer(Code& c, Value x) {
  if (byte_size(x.dtype()) < 8) return c.cast(DType::f64_, x);
  const Value low = c.let("low", x & 0x7ff);
  const Value sticky = c.cast(DType::i64_, c.apply(Op::ne, {low, c.integer(DType::i64_, 0)})) << 11;
  const Value top = c.let("top", x >> 53);
  const Value small = c.apply(Op::logical_or, {top == 0, top == -1});
  return c.cast(DType::f64_, where(small, x, (x - low) | sticky));
}

}  // namespace

bool is_narrow_float(DType t) { return is_float(t) && byte_size(t) < 4; }

Value expand_cast(Code& c, Native native, DType to, Value x) {
  const DType from = x.dtype();
  const auto by_instruction = [&](DType t) { return native.half && t == DType::f16_; };
  if (is_narrow_float(from)) x = c.let("wide", by_instruction(from) ? c.cast(DType::f32_, x) : f32_from_narrow(c, x));
  if (!is_narrow_float(to)) return c.cast(to, x);
  if (is_int(from) && byte_size(from) >= 4) x = c.let("wide", f64_from_integer(c, x));
  if (x.dtype() == DType::f64_) x = c.let("odd", f32_to_odd(c, x));
  if (x.dtype() != DType::f32_) x = c.let("wide", c.cast(DType::f32_, x));  // bool and short integers: exact
  if (to == DType::bf16_) return native.bf16 ? c.cast(to, x) : bf16_from_f32(c, x);
  return by_instruction(to) ? f16_by_instruction(c, x) : narrow_from_f32(c, to, x);
}

}  // namespace cosmati::kernel
