// The error bounds: what a float32 device may compute lies inside them, what is exact has none, and what is undecidable says so.
// SPDX-License-Identifier: Apache-2.0
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
  EXPECT_EQ(apply_wide(Op::where, DType::f32_, DType::f32_, choice).err, 2.5);
  const Num half[1] = {{2.9999999, 0, 1e-6}};
  EXPECT_GT(apply_wide(Op::cast, DType::f32_, DType::i32_, half).err, 0);
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
  Case c("program p(in x: f32[i, n], out y: f32[i]) {\n  parallel i {\n    y[i] = sum(x, n)\n  }\n}\n");
  const Values x{-inf, 3, 4, -inf, 3e38, 3e38, -inf, inf, 1};
  const Result r = c.tensor("x", {3, 3}, x).tensor("y", {3}).run();
  EXPECT_EQ(r.outputs[0].values[0].f, -inf);
  EXPECT_EQ(r.outputs[0].error[0], 0);
  EXPECT_EQ(r.outputs[0].error[1], inf);  // a tree that adds the last two first gives NaN
  EXPECT_TRUE(std::isnan(r.outputs[0].values[2].f));
  EXPECT_EQ(r.outputs[0].error[2], 0);
}

}  // namespace
}  // namespace cosmati::oracle
