// Logarithms and pow. x = 2^e m with m in sqrt(1/2) .. sqrt(2) and f = m - 1, so that e is 0 around 1 and nothing cancels.
// Large terms are summed with their rounding errors. pow works in f64, which leaves it correctly rounded but for rare ties.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernel/expand.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double sqrt_half_bits = 0x3f3504f3;
constexpr double ln2_hi = 0x1.62e4p-1, ln2_lo = 0x1.7f7d1cp-20;  // e ln2_hi is exact
constexpr double log2_e_hi = 0x1.715476p+0, log2_e_lo = 0x1.4ae0cp-26;

// (log(1 + f) - f) / f^2
Value log_tail(Value f) {
  return polynomial(f, {-0x1.fffff8p-2, 0x1.55555p-2, -0x1.000438p-2, 0x1.99a428p-3, -0x1.542422p-3, 0x1.226b36p-3,
                        -0x1.0f4cbep-3, 0x1.087d4p-3, -0x1.384e92p-4});
}

struct Split {
  Value e, f;  // leaves, f32
};

Split split(Code& c, Value x) {
  const Value tiny = c.let("tiny", x < 0x1p-126);
  const Value scaled = c.let("x", where(tiny, x * 0x1p+23, x));
  const Value exponent = c.let("exponent", (c.bits(DType::i32_, scaled) - sqrt_half_bits) >> 23);
  const Value f = c.let("f", c.bits(DType::f32_, c.bits(DType::i32_, scaled) - (exponent << 23)) - 1);
  const Value e = c.cast(DType::f32_, exponent) - where(tiny, 23, c.number(DType::f32_, 0));
  return {c.let("e", e), f};
}

// The logarithm of x is `regular` for positive finite x.
Value with_edges(Code& c, Value x, Value regular) {
  const Value at_zero = where(x == 0, c.number(DType::f32_, -infinity), nan);
  return where(x > 0, where(x < infinity, regular, x), at_zero);
}

}  // namespace

Value expand_log(Code& c, const Value* x) {
  const auto [e, f] = split(c, x[0]);
  const Value whole = c.let("whole", e * ln2_hi);
  const Value sum = c.let("sum", whole + f);
  const Value low = f - (sum - whole);
  const Value square = f * f;
  return with_edges(c, x[0], sum + fma(e, ln2_lo, fma(square, log_tail(f), low)));
}

Value expand_log2(Code& c, const Value* x) {
  const auto [e, f] = split(c, x[0]);
  const Value scaled = c.let("scaled", f * log2_e_hi);
  const Value scaled_low = fma(f, log2_e_lo, fma(f, log2_e_hi, -scaled));
  const Value sum = c.let("sum", e + scaled);
  const Value low = scaled - (sum - e);
  const Value tail = polynomial(f, {-0x1.71547p-1, 0x1.ec7094p-2, -0x1.715afep-2, 0x1.277f44p-2, -0x1.eaa24ap-3, 0x1.a2c9dcp-3,
                                    -0x1.87f7eap-3, 0x1.7f2818p-3, -0x1.c39bb4p-4});
  return with_edges(c, x[0], sum + (low + fma(f * f, tail, scaled_low)));
}

// e comes from 1 + x; f = x 2^-e + (2^-e - 1) is kept with its rounding error.
Value expand_log1p(Code& c, const Value* x) {
  const Value shifted = c.let("shifted", x[0] + 1);
  const Value exponent = c.let("exponent", (c.bits(DType::i32_, shifted) - sqrt_half_bits) >> 23);
  const Value e = c.let("e", c.cast(DType::f32_, exponent));
  const Value inverse = c.let("inverse", c.bits(DType::f32_, (c.integer(DType::i32_, 129) - exponent) << 23) * 0.25);
  const Value part = c.let("part", x[0] * inverse);
  const Value base = c.let("base", inverse - 1);
  const Value f = c.let("f", part + base);
  const Value other = c.let("other", f - part);
  const Value f_low = c.let("f_low", (part - (f - other)) + (base - other));
  const Value whole = c.let("whole", e * ln2_hi);
  const Value sum = c.let("sum", whole + f);
  const Value low = (f - (sum - whole)) + fma(-f, f_low, f_low);
  const Value square = f * f;
  const Value regular = sum + fma(e, ln2_lo, fma(square, log_tail(f), low));
  return where(x[0] == 0, x[0], with_edges(c, shifted, regular));
}

// |x|^y = 2^(y log2 |x|) in f64; log2 m = 2 atanh((m - 1) / (m + 1)) / ln 2. A f32 is normal in f64.
Value expand_pow(Code& c, const Value* xy) {
  const Value x = xy[0], y = xy[1];
  const Value a = c.let("a", c.cast(DType::f64_, abs(x)));
  const Value a_bits = c.let("a_bits", c.bits(DType::i64_, a));
  const Value exponent = c.let("exponent", (a_bits - c.integer(DType::i64_, 0x3fe6a09e667f3bcd)) >> 52);
  const Value m = c.let("m", c.bits(DType::f64_, a_bits - (exponent << 52)));
  const Value s = c.let("s", (m - 1) / (m + 1));
  const Value square = c.let("square", s * s);
  const Value series = polynomial(
      square, {0x1.71547652bee2fp+1, 0x1.ec709d129aa58p-1, 0x1.2777800ec74c2p-1, 0x1.a58d76a022d8dp-2, 0x1.5ce9ac5adb5bbp-2});
  const Value regular = fma(s, series, c.cast(DType::f64_, c.cast(DType::i32_, exponent)));
  const Value log_a = c.let("log_a", where(a == 0, -infinity, where(a == infinity, infinity, regular)));
  const Value wide_y = c.let("wide_y", c.cast(DType::f64_, y));
  const Value product = c.let("product", where(log_a == 0, 0, wide_y * log_a));  // 1^inf is 1
  const Value low = c.let("low", where(product < -200, -200, product));
  const Value p = c.let("p", where(low > 200, 200, low));
  const Value n = c.let("n", c.apply(Op::round, {p}));
  const Value r = c.let("r", p - n);
  const Value exp2 = polynomial(r, {1, 0x1.62e42ff0e1922p-1, 0x1.ebfbe077872adp-3, 0x1.c6b08ac06ac59p-5, 0x1.3b29f39d4b93cp-7,
                                    0x1.5d8a860001b34p-10, 0x1.445c84037e0d2p-13, 0x1.fde5fc5036ce4p-17});
  const Value factor = c.bits(DType::f64_, (c.cast(DType::i64_, n) + 1023) << 52);
  const Value magnitude = c.let("magnitude", c.cast(DType::f32_, exp2 * factor));

  const Value half = c.let("half", y * 0.5);
  const Value whole_y = c.let("whole_y", c.apply(Op::eq, {y, c.apply(Op::floor, {y})}));
  const Value even_y = c.let("even_y", c.apply(Op::eq, {half, c.apply(Op::floor, {half})}));
  const Value odd_y = c.apply(Op::logical_and, {whole_y, c.apply(Op::logical_not, {even_y})});
  const Value signed_result = c.let("signed_result", where(odd_y, with_sign_of(x, magnitude), magnitude));
  const Value finite_negative = c.apply(Op::logical_and, {x<0, x> - infinity});
  const Value undefined = c.apply(Op::logical_and, {finite_negative, c.apply(Op::logical_not, {whole_y})});
  const Value is_one = c.apply(Op::logical_or, {x == 1, y == 0});
  const Value is_nan =
      c.apply(Op::logical_or, {undefined, c.apply(Op::logical_or, {c.apply(Op::is_nan, {x}), c.apply(Op::is_nan, {y})})});
  return where(is_one, 1, where(is_nan, nan, signed_result));
}

// max(x, 0) + log(1 + e^-|x|): the exponential never overflows.
Value expand_softplus(Code& c, const Value* x) {
  const bool wide = x[0].dtype() == DType::f64_;
  const Value below = c.let("below", -abs(x[0]));
  const Value e = c.let("e", wide ? c.apply(Op::exp, {below}) : expand_exp(c, &below));
  const Value rest = wide ? c.apply(Op::log1p, {e}) : expand_log1p(c, &e);
  return c.apply(Op::maximum, {x[0], c.number(x[0].dtype(), 0)}) + rest;
}

}  // namespace cosmati::kernel
