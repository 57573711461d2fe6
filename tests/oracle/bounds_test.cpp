// The error bounds: what a float32 device may compute lies inside them, what is exact has none, and what is undecidable says so.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "oracle/dense.h"
#include "oracle/fixture.h"
#include "oracle/number.h"

namespace cosmati::oracle {
namespace {

using ops::Op;

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Bounds, OperationsOnRoundedArgumentsStayWithin) {
  std::mt19937 random(7);
  std::normal_distribution<double> draw(0, 3);
  for (const Op op :
       {Op::add, Op::sub,      Op::mul,   Op::div, Op::maximum, Op::exp,   Op::log, Op::sqrt, Op::rsqrt, Op::tanh, Op::sigmoid,
        Op::erf, Op::exp_diff, Op::floor, Op::abs, Op::sin,     Op::clamp, Op::fma, Op::pow,  Op::expm1, Op::log1p})
    for (int trial = 0; trial < 2000; ++trial) {
      Num args[3], device[3];
      for (int k = 0; k < 3; ++k) {
        args[k].f = trial % 2 ? draw(random) : std::fabs(draw(random));
        device[k].f = static_cast<float>(args[k].f);
        args[k].err = std::fabs(device[k].f - args[k].f) * (trial % 3 + 1);
      }
      const Num wide = apply_wide(op, DType::f32_, DType::f32_, args);
      const Num typed = apply_typed(op, DType::f32_, DType::f32_, device);
      if (std::isinf(wide.err) || (std::isnan(wide.f) && std::isnan(typed.f)) || wide.f == typed.f) continue;
      ASSERT_LE(std::fabs(wide.f - typed.f), wide.err)
          << ops::name(op) << " of " << args[0].f << ", " << args[1].f << ", " << args[2].f;
      ASSERT_LE(wide.err, 1e-3 * std::max({1.0, std::fabs(wide.f), std::fabs(args[0].f / args[1].f)})) << ops::name(op);
    }
}

TEST(Bounds, ExactArgumentsGiveExactResults) {
  const auto error = [](Op op, double a, double b) {
    const Num args[2] = {{a, 0, 0}, {b, 0, 0}};
    return apply_wide(op, DType::f32_, DType::f32_, args).err;
  };
  EXPECT_EQ(error(Op::add, 3, 4), 0);
  EXPECT_EQ(error(Op::div, 1, 4), 0);
  EXPECT_GT(error(Op::div, 1, 3), 0);
  EXPECT_EQ(error(Op::add, inf, -inf), 0);     // NaN for certain
  EXPECT_EQ(error(Op::mul, 1e30, 1e30), inf);  // may overflow where float64 does not
}

TEST(Bounds, PolesAndComparisonsAreUncertain) {
  const Num near[2] = {{1, 0, 0}, {1e-9, 0, 1e-8}};
  EXPECT_EQ(apply_wide(Op::div, DType::f32_, DType::f32_, near).err, inf);
  const Num apart[2] = {{1, 0, 1e-7}, {2, 0, 1e-7}}, close[2] = {{1, 0, 1e-7}, {1 + 1e-8, 0, 0}};
  EXPECT_EQ(apply_wide(Op::lt, DType::f32_, DType::bool_, apart).err, 0);
  EXPECT_GT(apply_wide(Op::lt, DType::f32_, DType::bool_, close).err, 0);
  EXPECT_GT(apply_wide(Op::eq, DType::f32_, DType::bool_, close).err, 0);
  const Num unknown[2] = {{0, 1, 0}, {0, 5, inf}};
  EXPECT_EQ(apply_wide(Op::mul, DType::i64_, DType::i64_, unknown).err, inf);
  const Num choice[3] = {{0, 1, 1}, {5, 0, 0}, {7, 0, 0.5}};
  EXPECT_DOUBLE_EQ(apply_wide(Op::where, DType::f32_, DType::f32_, choice).err, 2.5);
  const Num half[1] = {{2.9999999, 0, 1e-6}};
  EXPECT_GT(apply_wide(Op::cast, DType::f32_, DType::i32_, half).err, 0);
}

TEST(Bounds, PowersThatIgnoreANanAreUncertain) {
  const auto error = [](const Num& base, const Num& exponent) {
    const Num args[2] = {base, exponent};
    return apply_wide(Op::pow, DType::f32_, DType::f32_, args).err;
  };
  EXPECT_EQ(error({1 - 1e-9, 0, 1e-8}, {NAN, 0, 0}), inf);  // 1 to the NaN is 1
  EXPECT_EQ(error({NAN, 0, 0}, {1e-9, 0, 1e-8}), inf);      // and so is NaN to the 0
  EXPECT_EQ(error({2, 0, 1e-8}, {NAN, 0, 0}), 0);           // but these are NaN for certain
  EXPECT_EQ(error({NAN, 0, 0}, {2, 0, 1e-8}), 0);
}

TEST(Bounds, WhatMayBeNanIsUncertainBesideANumber) {
  const std::vector<Ref> args{scalar(DType::f32_, {inf, 0, inf}), scalar(DType::f32_, {0, 0, 0})};
  for (const Op op : {Op::minimum, Op::maximum})
    EXPECT_EQ(elementwise(true, op, DType::f32_, DType::f32_, args)->at(0).err, inf) << ops::name(op);
}

TEST(Bounds, TinyResultsAreKeptAndThoseBelowAreUncertain) {
  const auto wide = [](Op op, DType t, double x) {
    const Num args[1] = {{x, 0, 0}};
    return apply_wide(op, t, t, args);
  };
  const double expected = std::exp(-727.5);
  EXPECT_NEAR(wide(Op::sigmoid, DType::f64_, -727.5).f, expected, 1e-12 * expected);
  for (const Op op : {Op::sigmoid, Op::exp}) {
    EXPECT_EQ(wide(op, DType::f32_, -1000).f, 0);
    EXPECT_GT(wide(op, DType::f32_, -1000).err, 0);
    EXPECT_LT(wide(op, DType::f32_, -1000).err, 1e-44);
    EXPECT_EQ(wide(op, DType::f32_, -inf).err, 0);
  }
}

// A value with a bound, and what a device may have in its place: the ends and the edges of the number line are drawn most.
class Draw {
 public:
  Draw(DType t, unsigned seed) : type_(t), random_(seed) {}

  Num argument() {
    Num a;
    if (is_float(type_)) {
      constexpr double edges[] = {0,     -0.0, 1,      -1,    0.5,    2,     3,      -3,        1e-7,     88.7,   -104,
                                  709.5, 710,  -744.9, -746,  -710,   65536, 3e38,   -3e38,     1e-40,    -1e-45, 1e-310,
                                  inf,   -inf, NAN,    1e308, 2.5e-7, 1e200, 1e-200, 0.9999999, 16777216, 1e-3};
      constexpr double errors[] = {1e-320, 1e-45, 1e-12, 1e-7, 0.25, 1, 2, 800, 1e39, inf};
      a.f = pick(2) ? edges[pick(std::size(edges))] : std::normal_distribution<>(0, pick(2) ? 1 : 30)(random_);
      switch (pick(4)) {
        case 0:
          a.err = errors[pick(std::size(errors))];
          break;
        case 1:
          a.err = std::isfinite(a.f) ? std::fabs(a.f) * errors[1 + pick(6)] : 0;
          break;
        default:
          break;
      }
      if (!std::isfinite(a.f) && std::isfinite(a.err)) a.err = 0;
      if (a.err == 0) a.f = ops::round_to(type_, a.f);
      a.err = within_range(type_, a.f, a.err);
      return a;
    }
    a.i = integer();
    if (pick(3) == 0) a.err = is_bool(type_) ? 1 : pick(4) == 0 ? inf : static_cast<double>(1 + pick(5));
    return a;
  }

  // None where the type has no value within the bound.
  std::optional<Num> device(const Num& a) {
    Num d = a;
    d.err = 0;
    if (a.err == 0) return d;
    if (!is_float(type_)) {
      if (is_bool(type_) || std::isinf(a.err)) {
        d.i = integer();
      } else {
        const auto err = static_cast<int>(a.err);
        const std::int64_t moved = moved_by(a.i, pick(2 * err + 1) - err);
        if (std::fabs(static_cast<double>(moved) - static_cast<double>(a.i)) <= a.err) d.i = moved;
      }
      return d;
    }
    constexpr double specials[] = {0, -0.0, 1, -1, inf, -inf, NAN, 1e-45, 1e-310};
    switch (pick(4)) {
      case 0:
        d.f = specials[pick(std::size(specials))];
        break;
      case 1:
        d.f = a.f + a.err;
        break;
      case 2:
        d.f = a.f - a.err;
        break;
      default:
        d.f = a.f + std::uniform_real_distribution<>(-1, 1)(random_) * (std::isinf(a.err) ? 1e30 : a.err);
    }
    d.f = ops::round_to(type_, d.f);
    if (std::isinf(a.err)) return d;
    // Rounding may have left the bound; towards the centre lies the last value within it.
    const auto inside = [&] {
      return d.f >= a.f - a.err && d.f <= a.f + a.err && std::fabs(static_cast<long double>(d.f) - a.f) <= a.err;
    };
    for (int step = 0; step < 2 && !inside(); ++step) d.f = towards(d.f, a.f);
    return inside() ? std::optional(d) : std::nullopt;
  }
  // What an integer of the type may be, its ends among them.
  std::int64_t integer() {
    const std::int64_t hi = std::numeric_limits<std::int64_t>::max();
    const std::int64_t ends[] = {hi, -hi - 1, hi >> 32, -(hi >> 32) - 1, hi >> 31, 127, -128, 32767, 65535, 0, 1, -1};
    return pick(2) ? moved_by(ends[pick(std::size(ends))], pick(5) - 2) : ops::wrap_to(type_, pick(200) - 100);
  }
  int pick(std::size_t n) { return static_cast<int>(random_() % n); }

 private:
  // Wraps at the ends of 64 bits too.
  std::int64_t moved_by(std::int64_t value, int step) const {
    return ops::wrap_to(type_, static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(step)));
  }
  double towards(double from, double to) const {
    if (type_ == DType::f32_) return std::nextafter(static_cast<float>(from), static_cast<float>(to));
    return type_ == DType::f64_ ? std::nextafter(from, to) : ops::round_to(type_, to);
  }
  DType type_;
  std::mt19937 random_;
};

std::string shown(DType t, const Num& a) {
  return is_float(t) ? fmt::format("{:.17g} +- {:.3g}", a.f, a.err) : fmt::format("{} +- {}", a.i, a.err);
}

// Whether a device result lies within the bound.
bool within(DType t, const Num& device, const Num& wide) {
  if (!is_float(t)) {
    if (device.i == wide.i || std::isinf(wide.err)) return true;
    if (is_bool(t)) return wide.err > 0;
    return std::fabs(static_cast<long double>(device.i) - static_cast<long double>(wide.i)) <= wide.err * (1 + 0x1p-52);
  }
  if (device.f == wide.f || (std::isnan(device.f) && std::isnan(wide.f)) || std::isinf(wide.err)) return true;
  return std::fabs(device.f - wide.f) <= wide.err;
}

// Each result by the scalar rules and by the loops over arrays.
void hold(Op op, DType argument, DType result, int trials) {
  Draw draw(argument, 100 * static_cast<unsigned>(op) + static_cast<unsigned>(argument) + 20 * static_cast<unsigned>(result));
  Draw conditions(DType::bool_, 5);
  const int arity = op == Op::cast ? 1 : ops::info(op).arity;
  for (int trial = 0; trial < trials; ++trial) {
    Num args[3];
    std::vector<Ref> arrays;
    std::string text;
    for (int k = 0; k < arity; ++k) {
      const bool condition = op == Op::where && k == 0;
      args[k] = condition ? conditions.argument() : draw.argument();
      const DType t = condition ? DType::bool_ : argument;
      arrays.push_back(scalar(t, args[k]));
      text += " " + shown(t, args[k]);
    }
    const Num wide = apply_wide(op, argument, result, args), loop = elementwise(true, op, argument, result, arrays)->at(0);
    for (int sample = 0; sample < 8; ++sample) {
      Num device[3];
      std::string at;
      bool possible = true;
      for (int k = 0; k < arity; ++k) {
        const bool condition = op == Op::where && k == 0;
        const std::optional<Num> drawn = condition ? conditions.device(args[k]) : draw.device(args[k]);
        possible = possible && drawn;
        device[k] = drawn.value_or(Num{});
        at += " " + shown(condition ? DType::bool_ : argument, device[k]);
      }
      if (!possible) continue;
      if ((op == Op::sin || op == Op::cos) && std::fabs(device[0].f) >= 65536) continue;  // nothing is promised there
      const Num typed = apply_typed(op, argument, result, device);
      for (const Num& r : {wide, loop})
        ASSERT_TRUE(within(result, typed, r)) << ops::name(op) << text << " in " << name(argument) << " is " << shown(result, r)
                                              << ", but" << at << " gives " << shown(result, typed);
    }
  }
}

TEST(Bounds, HoldForAllThatADeviceMayHave) {
  for (int o = 0; o < ops::op_count; ++o) {
    const Op op = static_cast<Op>(o);
    const ops::OpInfo& row = ops::info(op);
    if (op == Op::bits || op == Op::cast) continue;
    for (const DType t : {DType::f32_, DType::f64_, DType::i32_, DType::i64_, DType::u32_, DType::bool_}) {
      using ops::Typing;
      const bool select = row.typing == Typing::select, logical = row.typing == Typing::logical;
      if (is_bool(t) ? !logical && !select : logical || !(is_float(t) ? row.on_floats : row.on_integers || select)) continue;
      const bool gives_bool = logical || row.typing == Typing::comparison || row.typing == Typing::test;
      hold(op, t, gives_bool ? DType::bool_ : t, 2000);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Bounds, HoldForConversions) {
  for (int from = 0; from < dtype_count; ++from)
    for (int to = 0; to < dtype_count; ++to) {
      hold(Op::cast, static_cast<DType>(from), static_cast<DType>(to), 1000);
      if (HasFatalFailure()) return;
    }
}

// Sums, means and moments in float32 by random trees.
struct Moments {
  float n, mean, low, m2;
};
Moments moments(const float* x, int n, std::mt19937& random) {
  if (n == 1) return {1, x[0], 0, 0};
  const int cut = 1 + static_cast<int>(random() % (n - 1));
  Moments a = moments(x, cut, random), b = moments(x + cut, n - cut, random);
  if (a.n < b.n) std::swap(a, b);
  const float total = a.n + b.n, delta = (b.mean - a.mean) + (b.low - a.low), step = a.low + delta * (b.n / total);
  const float mean = a.mean + step, seen = mean - a.mean;
  return {total, mean, (a.mean - (mean - seen)) + (step - seen), a.m2 + b.m2 + delta * delta * (a.n * b.n / total)};
}
float tree_sum(const float* x, int n, std::mt19937& random) {
  if (n == 1) return x[0];
  const int cut = 1 + static_cast<int>(random() % (n - 1));
  return tree_sum(x, cut, random) + tree_sum(x + cut, n - cut, random);
}
struct Lse {
  float m, s;
};
Lse tree_lse(const float* x, int n, std::mt19937& random) {
  if (n == 1) return {x[0], 1};
  const int cut = 1 + static_cast<int>(random() % (n - 1));
  const Lse a = tree_lse(x, cut, random), b = tree_lse(x + cut, n - cut, random);
  const float m = std::max(a.m, b.m);
  return {m, a.s * std::exp(a.m - m) + b.s * std::exp(b.m - m)};
}

TEST(Bounds, AnyTreeOfFloatMergesStaysWithin) {
  Case c(R"(
reducer my_lse(x) {
  identity m = -inf, s = 0
  lift     m = x, s = 1
  merge    m = maximum(a.m, b.m), s = a.s * exp_diff(a.m, m) + b.s * exp_diff(b.m, m)
  finish   m + log(s)
}
program p(in x: f32[i, n], out s: f32[i], out mu: f32[i], out v: f32[i], out l: f32[i], out u: f32[i]) {
  parallel i {
    s[i] = sum(x, n)
    a, b = mean_var(x, n)
    mu[i] = a
    v[i] = b
    l[i] = logsumexp(x, n)
    u[i] = my_lse(x, n)
  }
})");
  constexpr int N = 500;
  for (const double offset : {0.0, 3.0, 1000.0, 1e6, 1e-30}) {
    Values x = normal({1, N}, 3);
    std::vector<float> f;
    for (double& v : x) {
      v = offset == 1e-30 ? static_cast<float>(v * 1e-30) : static_cast<float>(v + offset);
      f.push_back(static_cast<float>(v));
    }
    c.tensor("x", {1, N}, x);
    for (const char* out : {"s", "mu", "v", "l", "u"}) c.tensor(out, {1});
    const Result r = c.run();
    std::mt19937 random(5);
    for (int trial = 0; trial < 200; ++trial) {
      const Moments m = moments(f.data(), N, random);
      const Lse l = tree_lse(f.data(), N, random);
      const float lse = l.m + std::log(l.s), got[5] = {tree_sum(f.data(), N, random), m.mean, m.m2 / m.n, lse, lse};
      for (int k = 0; k < 5; ++k)
        ASSERT_LE(std::fabs(got[k] - r.outputs[k].values[0].f), r.outputs[k].error[0]) << "output " << k << " offset " << offset;
    }
    // The bounds are not so wide that they say nothing.
    EXPECT_LT(r.outputs[0].error[0], N * 1e-7 * N * (3 + offset));
    EXPECT_LT(r.outputs[3].error[0], 1e-3 * (1 + offset));
  }
}

TEST(Bounds, UncertainIndicesSpoilWhatDependsOnThem) {
  // The third and the first score differ by less than their error, so either may be the largest.
  Case c(R"(
program p(in x: f32[n], in w: f32[n], out i: i32[], out y: f32[], out sure: i32[]) {
  parallel {
    k = argmax(exp(x), n)
    i[] = k
    y[] = w[k] else 0
    sure[] = argmax(x, n)
  }
})");
  const double tie = std::nextafter(2.0f, 3.0f);
  c.tensor("x", {3}, {2, 0, tie}).tensor("w", {3}, {5, 6, 7}).tensor("i", {}).tensor("y", {}).tensor("sure", {});
  const Result r = c.run();
  EXPECT_GT(r.outputs[0].error[0], 0);
  EXPECT_EQ(r.outputs[1].error[0], inf);
  EXPECT_EQ(r.outputs[2].error[0], 0);
  EXPECT_EQ(r.outputs[2].values[0].i, 2);
}

TEST(Bounds, NarrowedProbabilitiesAreAllowedByTheirRelaxation) {
  const std::string text =
      "program p<T: float>(in a: f32[n], in b: T[n], out y: f32[]) {\n  parallel { y[] = contract(a, b, n, relax: narrow) }\n}\n";
  constexpr int N = 64;
  const Values a = normal({N}), b = normal({N}, 2);
  for (const DType t : {DType::f32_, DType::f16_, DType::bf16_}) {
    Case c(text, "", t);
    const Result r = c.tensor("a", {N}, a).tensor("b", {N}, b).tensor("y", {}).run();
    double narrowed = 0;
    for (int k = 0; k < N; ++k) narrowed += ops::round_to(t, a[k]) * ops::round_to(t, b[k]);
    EXPECT_LE(std::fabs(narrowed - r.outputs[0].values[0].f), r.outputs[0].error[0]);
    EXPECT_LT(r.outputs[0].error[0], t == DType::f32_ ? 1e-3 : t == DType::f16_ ? 0.1 : 0.5);
  }
}

TEST(Bounds, InfinitiesAndNanAreCertain) {
  Case c(
      "program p(in x: f32[i, n], out y: f32[i, n]) {\n  parallel i {\n    e = exp(x - max(x, n))\n    y[i, n] = e / sum(e, n)\n "
      " }\n}\n");
  const Values x{0, inf, 1, -inf, 2, 3, NAN, 1, 1};
  const Result r = c.tensor("x", {3, 3}, x).tensor("y", {3, 3}).run();
  for (const int k : {0, 1, 2, 6, 7, 8}) {
    EXPECT_TRUE(std::isnan(r.outputs[0].values[k].f)) << k;
    EXPECT_EQ(r.outputs[0].error[k], 0) << k;
  }
  EXPECT_EQ(r.outputs[0].values[3].f, 0);
  EXPECT_EQ(r.outputs[0].error[3], 0);
}

TEST(Bounds, AnInfiniteSumIsUncertainWhereTheRestMayOverflow) {
  const Values x{-inf, 3, 4, -inf, 3e38, 3e38, -inf, inf, 1};
  const std::string added =
      "reducer added(x) {\n  identity s = 0, n = 0\n  lift s = x, n = 1\n  merge s = a.s + b.s, n = a.n + b.n\n  finish s\n}\n";
  for (const char* reduced : {"y[i] = sum(x, n)", "m, v = mean_var(x, n)\n    y[i] = m", "y[i] = added(x, n)"}) {
    Case c(added + "program p(in x: f32[i, n], out y: f32[i]) {\n  parallel i {\n    " + std::string(reduced) + "\n  }\n}\n");
    const Result r = c.tensor("x", {3, 3}, x).tensor("y", {3}).run();
    EXPECT_EQ(r.outputs[0].values[0].f, -inf);
    EXPECT_EQ(r.outputs[0].error[0], 0);
    EXPECT_EQ(r.outputs[0].error[1], inf);  // a tree that adds the last two first gives NaN
    EXPECT_TRUE(std::isnan(r.outputs[0].values[2].f));
    EXPECT_EQ(r.outputs[0].error[2], 0);
  }
}

// The power of a negative number is NaN beside an exponent that may be 4: so may be all that a reducer makes of it.
TEST(Bounds, WhatMayBeNanStaysUncertainInAReducerOfTheUser) {
  Case c(
      "reducer spread(x) {\n  identity lo = inf, hi = -inf\n  lift lo = x, hi = x\n"
      "  merge lo = minimum(a.lo, b.lo), hi = maximum(a.hi, b.hi)\n  finish hi - lo\n}\n"
      "program p(in x: f32[], in s: f32[i], out y: f32[]) {\n  parallel {\n"
      "    u = pow(x, 4 + sum(s, i))\n    axis t = 2\n    y[] = spread(u + f32(t), t)\n  }\n}\n");
  const Result r = c.tensor("x", {}, {-0.5}).tensor("s", {3}, {1, 1e-9, -1}).tensor("y", {}).run();
  EXPECT_TRUE(std::isnan(r.outputs[0].values[0].f));
  EXPECT_EQ(r.outputs[0].error[0], inf);
}

// A state that a division makes: the merges from the left are exact here, those of other trees are not.
TEST(Bounds, WhatOneOrderMergesExactlyAnotherRounds) {
  Case c(R"(
reducer balance(v) {
  identity n = 0.0, m = 0.0
  lift     n = 1.0, m = v
  merge    n = a.n + b.n, m = where(n == 0, 0, (a.n * a.m + b.n * b.m) / n)
  finish   m
}
program p(in x: f32[n], out y: f32[]) {
  parallel { y[] = balance(x, n) }
})");
  const Result r = c.tensor("x", {4}, {1, 3, 2, 6}).tensor("y", {}).run();  // from the left 1, 2, 2, 3
  const float last = (3.0F + (2.0F + 6)) / 3, tree = (1 + 3 * last) / 4;    // the last three are 11 thirds
  EXPECT_EQ(r.outputs[0].values[0].f, 3);
  EXPECT_GT(r.outputs[0].error[0], 0);
  EXPECT_LE(std::fabs(tree - r.outputs[0].values[0].f), r.outputs[0].error[0]);
  EXPECT_LT(r.outputs[0].error[0], 1e-5);
}

// A carried value is rounded at every cut, and a device cuts where it likes.
TEST(Bounds, HoldForEveryCutOfAStream) {
  for (const int n : {1, 2, 50, 700}) {
    Case c(R"(
program p(in x: f32[r, c], out y: f32[r], out z: f32[r]) {
  parallel r {
    stream tile c carry h = 1000, k = 3 {
      next h = h + sum(x, c), k = k * product(1 + x / 64, c)
    }
    y[r] = h
    z[r] = k
  }
})");
    const Values x = normal({3, n}, 7);
    const Result r = c.tensor("x", {3, n}, x).tensor("y", {3}).tensor("z", {3}).run();
    for (int row = 0; row < 3; ++row) {
      float h = 1000, k = 3;
      for (int j = 0; j < n; ++j) {
        const auto v = static_cast<float>(x[static_cast<std::size_t>(row * n + j)]);
        h = h + v;
        k = k * (1 + v / 64);
      }
      EXPECT_LE(std::fabs(h - r.outputs[0].values[row].f), r.outputs[0].error[row]) << n;
      EXPECT_LE(std::fabs(k - r.outputs[1].values[row].f), r.outputs[1].error[row]) << n;
      EXPECT_LT(r.outputs[0].error[row], 4 * n * 1000 * 6e-8) << n;
    }
  }
}

}  // namespace
}  // namespace cosmati::oracle
