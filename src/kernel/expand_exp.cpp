// exp and its relatives. x = n ln2 + r with |r| <= ln2 / 2; e^r is a polynomial; 2^n is put together from exponent bits in two
// factors, so that overflow and subnormal results come out of ordinary multiplications, rounded once.
// Coefficients: minimax fits of the relative error, rounded to f32 one after the other. The measured bounds are in bench/ulp.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernel/expand.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

constexpr double magic = 0x1.8p+23;  // x + magic rounds x to an integer, which lands in the low bits; magic << 23 is 0
constexpr double log2_e = 0x1.715476p+0;
constexpr double ln2_hi = 0x1.62e43p-1, ln2_lo = -0x1.05c61p-29;  // |x - n ln2_hi| < 1 is exact
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double exp_min = -104.5, exp_max = 89.5;  // outside, the result is 0 or infinite; inside, the factors of 2^n are normal
constexpr std::int64_t one_bits = 0x3f800000;

Value is_minus_infinity(Value x) { return x == -infinity; }

// 2^n for a small n (a normal result), from the leaf t = n + magic.
Value power_of_two(Code& c, Value t) {
  return c.bits(DType::f32_, (c.bits(DType::i32_, t) << 23) + static_cast<double>(one_bits));
}

// m * 2^n, rounded once, for any n that exp_min and exp_max allow; the product with the first factor is exact.
Value scale(Code& c, Value m, Value t) {
  if (c.native.ldexp) return c.apply(Op::ldexp, {m, t - magic});
  const Value n = c.let("n_bits", c.bits(DType::i32_, t));
  const Value half = c.let("n_half", n >> 1);
  const Value first = c.bits(DType::f32_, (half << 23) + static_cast<double>(one_bits));
  const Value second = c.bits(DType::f32_, ((n - half) << 23) + static_cast<double>(one_bits));
  return m * first * second;
}

Value rounded(Code& c, Value x) { return c.let("t", fma(x, log2_e, magic)); }

// x - n ln2
Value remainder(Code& c, Value x, Value t) {
  const Value n = c.let("n", t - magic);
  return c.let("r", fma(n, -ln2_lo, fma(n, -ln2_hi, x)));
}

Value exp_of_remainder(Value r) {
  return polynomial(r, {1, 1, 0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558bp-5, 0x1.12398ep-7, 0x1.6a4d5cp-10});
}

// x is a leaf in exp_min .. exp_max or NaN
Value exp_in_range(Code& c, Value x) {
  const Value t = rounded(c, x);
  return scale(c, exp_of_remainder(remainder(c, x, t)), t);
}

// the same where the result is normal
Value exp_normal(Code& c, Value x) {
  const Value t = rounded(c, x);
  return exp_of_remainder(remainder(c, x, t)) * power_of_two(c, t);
}

// x is a leaf. The comparisons are false on NaN, which passes through.
Value clamped(Code& c, Value x, double lo, double hi) {
  const Value low = c.let("low", where(x < lo, lo, x));
  return c.let("x", where(low > hi, hi, low));
}

}  // namespace

Value expand_exp(Code& c, const Value* x) { return exp_in_range(c, clamped(c, x[0], exp_min, exp_max)); }

// The same where the result is normal and no NaN: n is added to its exponent.
static Value exp_by_exponent(Code& c, Value x) {
  const Value t = rounded(c, x);
  const Value m = exp_of_remainder(remainder(c, x, t));
  return c.bits(DType::f32_, c.bits(DType::i32_, m) + (c.bits(DType::i32_, t) << 23));
}

Kernel exp_alone(bool near) {
  Kernel k;
  k.name = near ? "exp_near" : "exp_any";
  Builder b(k);
  k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::read, 0, {}, b.unique_name("x"), DType::f32_});
  k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::write, 1, {}, b.unique_name("y"), DType::f32_});
  Phase phase{"all", b.integer(1), {}};
  Code code(b, phase.body, {});
  const Value x = code.let("x", {&code, b.load(BufferId{0}, b.group())});
  const Value y = near ? exp_by_exponent(code, x) : expand_exp(code, &x);
  b.store(phase.body, BufferId{1}, b.group(), y.id);
  k.phases.push_back(std::move(phase));
  return k;
}

// In f64, which holds every product. Beyond the clamp a product is 0 or infinite as at it; an infinite n multiplies as itself.
// An instruction may let an infinite n win over a NaN.
Value expand_ldexp(Code& c, const Value* xn) {
  if (c.native.ldexp) return where(c.apply(Op::ne, {xn[0], xn[0]}), xn[0], c.apply(Op::ldexp, {xn[0], xn[1]}));
  const Value n = c.let("n", c.apply(Op::floor, {xn[1]}));
  const Value exponent = c.cast(DType::i64_, clamped(c, n, -400, 400)) + 1023;
  const Value product = c.cast(DType::f64_, xn[0]) * c.bits(DType::f64_, exponent << 52);
  return c.cast(DType::f32_, product) * where(abs(n) < infinity, 1, where(n < 0, 0, n));
}

Value expand_exp2(Code& c, const Value* x) {
  const Value y = clamped(c, x[0], -151, 129);
  const Value t = c.let("t", y + magic);
  const Value r = c.let("r", y - (t - magic));
  const Value p = polynomial(r, {1, 0x1.62e43p-1, 0x1.ebfbdcp-3, 0x1.c6af7ap-5, 0x1.3b2dd4p-7, 0x1.5f095ap-10, 0x1.4178bp-13});
  return scale(c, p, t);
}

Value expand_exp_diff(Code& c, const Value* xm) {
  const bool wide = xm[0].dtype() == DType::f64_;
  const Value difference = c.let("d", xm[0] - xm[1]);
  const Value e = wide ? c.apply(Op::exp, {difference}) : expand_exp(c, &difference);
  return where(is_minus_infinity(xm[0]), 0, e);
}

// 2^n ((1 - 2^-n) + (e^r - 1)), every sum with its rounding error, for n >= -25: below, the result is -1.
Value expand_expm1(Code& c, const Value* x) {
  const Value y = clamped(c, x[0], -17.5, exp_max);
  const Value t = rounded(c, y);
  const Value n = c.let("n", t - magic);
  const Value exact = c.let("d", fma(n, -ln2_hi, y));
  const Value r = c.let("r", fma(n, -ln2_lo, exact));
  const Value r_low = c.let("r_low", fma(n, -ln2_lo, exact - r));
  // 2^-n: n = 128 or 129 give a subnormal 2^-n, hence the two factors
  const Value shifted = c.let("n_bits", c.bits(DType::i32_, t) << 23);
  const Value inverse =
      c.let("inverse", c.bits(DType::f32_, c.integer(DType::i32_, one_bits + (std::int64_t{2} << 23)) - shifted) * 0.25);
  const Value base = c.let("base", c.number(DType::f32_, 1) - inverse);
  const Value base_low = (c.number(DType::f32_, 1) - base) - inverse;
  const Value sum = c.let("sum", base + r);
  const Value sum_low = r - (sum - base);
  const Value p = polynomial(r, {0x1p-1, 0x1.555554p-3, 0x1.5554f8p-5, 0x1.1112d8p-7, 0x1.6d3a4ap-10, 0x1.9e738p-13});
  const Value square = c.let("square", r * r);
  const Value rest = fma(square, p, fma(r, r_low, r_low)) + (sum_low + base_low);
  const Value m = sum + rest;
  // 2^n as 2 and half of it, as n reaches 129
  const Value half = c.bits(DType::f32_, shifted + static_cast<double>(one_bits - (1 << 23)));
  return where(x[0] == 0, x[0], m * 2 * half);
}

// With z = e^-|x|: q = z / (1 + z) below 0 and 1 - q above. q is corrected by the remainder of the division and the rounding
// error of 1 + z, so that almost only the error of z is left; 1 - q is 1 / (1 + z).
Value expand_sigmoid(Code& c, const Value* x) {
  if (x[0].dtype() == DType::f64_) {
    const Value one = c.number(DType::f64_, 1), z = c.let("z", c.apply(Op::exp, {-abs(x[0])}));
    return where(x[0] < 0, z, one) / (one + z);
  }
  const Value a = c.let("a", abs(x[0]));
  const Value y = c.let("x", where(a > -exp_min, exp_min, -a));
  const Value z = c.let("z", exp_in_range(c, y));
  const Value one = c.number(DType::f32_, 1);
  const Value sum = c.let("sum", z + one);
  const Value sum_low = (one - sum) + z;
  const Value rough = c.let("rough", z / sum);
  const Value error = fma(-rough, sum_low, fma(-rough, sum, z));
  const Value q = c.let("q", fma(error, one - rough, rough));
  return where(x[0] >= 0, one - q, q);
}

Value expand_tanh(Code& c, const Value* x) {
  const Value a = c.let("a", abs(x[0]));
  const Value square = c.let("square", a * a);
  const Value p = polynomial(square, {-0x1.55554ap-2, 0x1.110ceep-3, -0x1.b91e7ep-5, 0x1.58e518p-6, -0x1.9921a2p-8});
  const Value near_zero = fma(a * square, p, a);
  const Value twice = c.let("twice", where(a > 10, 20, a + a));
  const Value far = c.number(DType::f32_, 1) - c.number(DType::f32_, 2) / (exp_normal(c, twice) + 1);
  return with_sign_of(x[0], where(a < 0.55, near_zero, far));
}

// Below 1 x + x p(x^2), above 1 - exp(g(x)) with g the logarithm of erfc.
Value expand_erf(Code& c, const Value* x) {
  const Value whole = c.let("whole", abs(x[0]));
  const Value a = c.let("a", where(whole > 3.95, 3.95, whole));
  const Value square = c.let("square", a * a);
  const Value p = polynomial(
      square, {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fep-14});
  const Value near_zero = fma(a, p, a);
  const Value g = c.let("g", polynomial(a, {-0x1.0ce742p-12, -0x1.209efep+0, -0x1.46738ap-1, -0x1.a83576p-4, 0x1.694bfcp-6,
                                            -0x1.8925cep-9, 0x1.9198c6p-13}));
  const Value far = c.number(DType::f32_, 1) - exp_normal(c, g);
  return with_sign_of(x[0], where(a < 1, near_zero, far));
}

}  // namespace cosmati::kernel
