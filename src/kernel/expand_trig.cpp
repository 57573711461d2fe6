// sin, cos and rsqrt. |x| = n pi/2 + r with |r| <= pi/4, pi/2 in three parts; the quadrant n picks polynomial and sign.
// The reduction is accurate for |x| < 2^22; larger arguments count as 2^22, which keeps results in -1 .. 1 and no more.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernel/expand.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double magic = 0x1.8p+23;  // x + magic rounds x to an integer, which lands in the low bits
constexpr double two_over_pi = 0x1.45f306p-1;
constexpr double half_pi[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
constexpr double largest = 0x1p+22;

// The sine of |x| + quadrants pi/2, as the bits of f32.
Value wave(Code& c, Value x, int quadrants) {
  const Value whole = c.let("whole", abs(x));
  const Value a = c.let("a", where(whole > largest, fma(whole, 0, largest), whole));  // infinity becomes NaN
  const Value t = c.let("t", fma(a, two_over_pi, magic));
  const Value n = c.let("n", t - magic);
  const Value r = c.let("r", fma(n, -half_pi[2], fma(n, -half_pi[1], fma(n, -half_pi[0], a))));
  const Value square = c.let("square", r * r);
  const Value sine = fma(r * square, polynomial(square, {-0x1.555556p-3, 0x1.111174p-7, -0x1.a05956p-13, 0x1.7c2d9cp-19}), r);
  const Value cosine = polynomial(square, {1, -0.5, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e80cp-16});
  const Value quadrant = c.let("quadrant", c.bits(DType::i32_, t) + quadrants);
  const Value value = where((quadrant & 1) == 0, sine, cosine);
  return c.bits(DType::i32_, value) ^ ((quadrant & 2) << 30);
}

}  // namespace

Value expand_sin(Code& c, const Value* x) {
  const Value sign = c.bits(DType::i32_, x[0]) & INT32_MIN;
  return c.bits(DType::f32_, wave(c, x[0], 0) ^ sign);
}

Value expand_cos(Code& c, const Value* x) { return c.bits(DType::f32_, wave(c, x[0], 1)); }

// 1 / s with s = sqrt(x), corrected by the rounding errors of both; small x is scaled so that these are not subnormal.
Value expand_rsqrt(Code& c, const Value* x) {
  if (x[0].dtype() == DType::f64_) return c.number(DType::f64_, 1) / c.apply(Op::sqrt, {x[0]});
  const Value tiny = c.let("tiny", abs(x[0]) < 0x1p-100);
  const Value scaled = c.let("x", where(tiny, x[0] * 0x1p+48, x[0]));
  const Value s = c.let("s", c.apply(Op::sqrt, {scaled}));
  const Value y = c.let("y", c.number(DType::f32_, 1) / s);
  const Value root_error = fma(-s, s, scaled);
  const Value division_error = fma(-s, y, 1);
  const Value correction = c.let("correction", fma(root_error * -0.5, y * y, division_error));
  const Value corrected = where(abs(correction) < infinity, fma(y, correction, y), y);  // not finite at 0, infinity, NaN
  return corrected * where(tiny, 0x1p+24, c.number(DType::f32_, 1));
}

}  // namespace cosmati::kernel
