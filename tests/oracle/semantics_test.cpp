// Rules of the language that the shipped programs do not reach: replacements, ranges, reductions over program axes, streams,
// nothing, and what is refused at run time.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/fixture.h"

namespace cosmati::oracle {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Replace, ShiftsRenamesAndGathersComputedValues) {
  Case c(R"(
program p(in x: f32[i, j], in at: i32[i] in 0 .. extent(j), out shifted: f32[i, j], out gathered: f32[i], out swapped: f32[i, j], out diagonal: f32[i]) {
  axis k = extent(i)
  parallel i {
    v = x * x + 1
    shifted[i, j] = v[j := j - 1] else -1
    gathered[i] = v[j := at]
    swapped[i, j] = v[i := extent(i) - 1 - i, j := extent(j) - 1 - j]
    diagonal[i] = v[j := i]
  }
})");
  constexpr int I = 3, J = 5;
  const Values x = normal({I, J}), at{4, 0, 2};
  c.tensor("x", {I, J}, x)
      .tensor("at", {I}, at)
      .tensor("shifted", {I, J})
      .tensor("gathered", {I})
      .tensor("swapped", {I, J})
      .tensor("diagonal", {I})
      .extent("k", I);
  const auto v = [&](int i, int j) { return x[i * J + j] * x[i * J + j] + 1; };
  Values shifted, gathered, swapped, diagonal;
  for (int i = 0; i < I; ++i) {
    gathered.push_back(v(i, static_cast<int>(at[i])));
    diagonal.push_back(v(i, i));
    for (int j = 0; j < J; ++j) shifted.push_back(j ? v(i, j - 1) : -1), swapped.push_back(v(I - 1 - i, J - 1 - j));
  }
  const Result r = c.run();
  expect_values(r, 0, shifted);
  expect_values(r, 1, gathered);
  expect_values(r, 2, swapped);
  expect_values(r, 3, diagonal);
}

TEST(Replace, OfAReductionDoesNotCaptureItsAxis) {
  // s[i := k] under the sum over k: the k of the replacement is not the k that s sums over.
  Case c(R"(
program p(in x: f32[i, k], out y: f32[i]) {
  parallel i {
    s = sum(x, k)
    y[i] = sum(s[i := k] * x, k)
  }
})");
  constexpr int N = 4;
  const Values x = normal({N, N});
  Values y(N);
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k) {
      double s = 0;
      for (int l = 0; l < N; ++l) s += x[k * N + l];
      y[i] += s * x[i * N + k];
    }
  expect_values(c.tensor("x", {N, N}, x).tensor("y", {N}).run(), 0, y);
}

TEST(Replace, OfAProgramAxisThatBoundsARange) {
  // The prefix sum of the previous row, whose range is that row's own.
  Case c(R"(
program p(in x: f32[n], out y: f32[i]) {
  axis i = extent(n)
  parallel i {
    axis t in 0 .. i + 1
    s = sum(x[t], t)
    y[i] = s[i := i - 1] else 0
  }
})");
  const Values x{1, 2, 4, 8, 16};
  expect_values(c.tensor("x", {5}, x).tensor("y", {5}).extent("i", 5).run(), 0, {0, 1, 3, 7, 15});
}

TEST(Replace, OutsideIsNotEvaluated) {
  Case c(R"(
program p(in x: f32[n], in at: i32[i], out y: f32[i]) {
  parallel i { y[i] = (x * 2)[n := at] else 9 }
})");
  expect_values(c.tensor("x", {0}).tensor("at", {3}, {-1, 0, 5}).tensor("y", {3}).run(), 0, {9, 9, 9});
  Case d = std::move(c);
  expect_values(d.tensor("x", {2}, {3, 4}).run(), 0, {9, 6, 9});
}

TEST(Range, OfReductionsOverProgramAxes) {
  Case c(R"(
program p(in x: f32[i, n], out total: f32[], out count: i64[], out largest: f32[n]) {
  parallel i {
    axis t in 0 .. i
    total[] = sum(x[i, t], i, t)
    count[] = sum(1 + 0 * (t + i), i, t)
    largest[n] = max(x, i)
  }
})");
  constexpr int I = 5, N = 6;
  const Values x = normal({I, N});
  double total = 0;
  Values largest(N, -inf);
  for (int i = 0; i < I; ++i)
    for (int n = 0; n < N; ++n) {
      if (n < i) total += x[i * N + n];
      largest[n] = std::max(largest[n], x[i * N + n]);
    }
  const Result r = c.tensor("x", {I, N}, x).tensor("total", {}).tensor("count", {}).tensor("largest", {N}).run();
  expect_values(r, 0, {total});
  expect_integers(r, 1, {10});
  expect_values(r, 2, largest);
}

TEST(Reduce, OfNothingIsTheIdentity) {
  Case c(R"(
program p(in x: f32[i, n], in k: i32[i, n], out s: f32[i], out pr: f32[i], out lo: f32[i], out hi: f32[i], out m: f32[i], out mu: f32[i],
          out va: f32[i], out l: f32[i], out a: i32[i], out ilo: i32[i], out ihi: i32[i], out isum: i32[i], out some: bool[i], out every: bool[i]) {
  parallel i {
    s[i] = sum(x, n)
    pr[i] = product(x, n)
    lo[i] = min(x, n)
    hi[i] = max(x, n)
    m[i] = mean(x, n)
    b, v = mean_var(x, n)
    mu[i] = b
    va[i] = v
    l[i] = logsumexp(x, n)
    a[i] = argmax(x, n)
    ilo[i] = min(k, n)
    ihi[i] = max(k, n)
    isum[i] = sum(k, n)
    some[i] = any(x > 0, n)
    every[i] = all(x > 0, n)
  }
})");
  c.tensor("x", {2, 0}).tensor("k", {2, 0});
  for (const ir::Tensor& t : c.program.tensors)
    if (t.access == ir::Access::out) c.tensor(t.name, {2});
  for (const Mode mode : {Mode::wide, Mode::typed}) {
    const Result r = c.run(mode);
    const Values floats{0, 1, inf, -inf, NAN, NAN, NAN, -inf};
    for (std::size_t k = 0; k < floats.size(); ++k) expect_values(r, k, {floats[k], floats[k]}, 0);
    expect_integers(r, 8, {-1, -1});
    expect_integers(r, 9, {2147483647, 2147483647});
    expect_integers(r, 10, {-2147483648, -2147483648});
    expect_integers(r, 11, {0, 0});
    expect_integers(r, 12, {0, 0});
    expect_integers(r, 13, {1, 1});
  }
}

TEST(Run, NothingIsNoError) {
  Case c("program p(in x: f32[i, n], out y: f32[i, n]) {\n  parallel i { y[i, n] = exp(x - max(x, n)) / sum(x, n) }\n}\n");
  for (const Shape& s : {Shape{0, 0}, Shape{0, 4}, Shape{4, 0}})
    EXPECT_EQ(c.tensor("x", s).tensor("y", s).run().outputs[0].values.size(), 0u);
}

TEST(Run, InoutReadsWhatWasBeforeAndKeepsTheRest) {
  Case c(R"(
program p(inout y: f32[n + 1], in x: f32[n]) {
  parallel n { y[n] = y[n] + x }
})");
  c.tensor("x", {3}, {1, 2, 3}).tensor("y", {4}, {10, 20, 30, 40});
  const Result r = c.run();
  EXPECT_EQ(r.outputs[0].values[0].f, 11);
  EXPECT_EQ(r.outputs[0].values[2].f, 33);
  EXPECT_EQ(r.outputs[0].values[3].f, 40);
  EXPECT_FALSE(r.outputs[0].stored[3]);
}

TEST(Run, StridedAndUnalignedViews) {
  Case c("program p(in x: f32[i, j], out y: f32[i, j]) {\n  parallel i { y[i, j] = x }\n}\n");
  std::vector<char> memory(200);
  const auto put = [&](int at, float v) { std::memcpy(memory.data() + 3 + 4 * at, &v, 4); };
  Values expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      put(20 - 2 * i + 7 * j, static_cast<float>(10 * i + j));
      expected.push_back(10 * i + j);
    }
  c.tensor("x", {2, 3}).tensor("y", {2, 3});
  c.inputs.tensors[0].data = memory.data() + 3 + 80;
  c.inputs.tensors[0].strides = {-2, 7};
  expect_values(c.run(), 0, expected);
}

TEST(Stream, ByIndexOverARangeOfTheInstance) {
  Case c(R"(
program p(in x: f32[n], out y: f32[i]) {
  axis i = extent(n)
  parallel i {
    axis t in 0 .. i
    stream t carry h = 1 {
      next h = h * 0.5 + x[t]
    }
    y[i] = h
  }
})");
  const Values x = normal({6});
  Values y;
  for (int i = 0; i < 6; ++i) {
    double h = 1;
    for (int t = 0; t < i; ++t) h = h * 0.5 + x[t];
    y.push_back(h);
  }
  expect_values(c.tensor("x", {6}, x).tensor("y", {6}).extent("i", 6).run(), 0, y);
}

TEST(Stream, CarriesArraysThatAreReducedReplacedAndRead) {
  // A state over e that mixes its neighbours at every step.
  Case c(R"(
program p(in x: f32[b, t, e], in start: f32[e], out y: f32[b, t], out last: f32[b, e], out first: f32[b]) {
  parallel b {
    stream t carry h = start {
      new = (h[e := e - 1] else 0) * 0.5 + x
      y[b, t] = sum(h, e) + max(new, e)
      next h = new
    }
    last[b, e] = h
    first[b] = h[e := 0]
  }
})");
  constexpr int B = 2, T = 7, E = 4;
  const Values x = normal({B, T, E}), start = normal({E}, 2);
  Values y, last, first;
  for (int b = 0; b < B; ++b) {
    double h[E];
    std::copy_n(start.data(), E, h);
    for (int t = 0; t < T; ++t) {
      double next[E], s = 0, m = -inf;
      for (int e = 0; e < E; ++e) {
        next[e] = (e ? h[e - 1] : 0) * 0.5 + x[(b * T + t) * E + e];
        s += h[e];
        m = std::max(m, next[e]);
      }
      y.push_back(s + m);
      std::copy_n(next, E, h);
    }
    last.insert(last.end(), h, h + E);
    first.push_back(h[0]);
  }
  const Result r = c.tensor("x", {B, T, E}, x)
                       .tensor("start", {E}, start)
                       .tensor("y", {B, T})
                       .tensor("last", {B, E})
                       .tensor("first", {B})
                       .run();
  expect_values(r, 0, y);
  expect_values(r, 1, last);
  expect_values(r, 2, first);
}

TEST(Probe, ValuesOfInstancesRangesAndStreams) {
  Case c(R"(
program p(in x: f32[b, n], out y: f32[b]) {
  parallel b {
    axis t in 0 .. b + 1
    twice = 2 * x[b, t]
    total = sum(twice, t)
    stream n carry h = 0 {
      step = h + x
      next h = step
    }
    y[b] = total + h
  }
})");
  const Values x{1, 2, 3, 4, 5, 6};
  c.tensor("x", {2, 3}, x).tensor("y", {2});
  const auto probe = [&](const std::string& name) {
    Options o;
    o.probe = c.named(name);
    return *c.run(o).probe;
  };
  const Array twice = probe("twice");
  EXPECT_EQ(twice.shape, (Shape{2, 2}));
  EXPECT_EQ(twice.values[0].f, 2);
  EXPECT_FALSE(twice.stored[1]);  // t = 1 does not exist where b = 0
  EXPECT_EQ(twice.values[3].f, 10);
  EXPECT_EQ(probe("total").values[1].f, 18);
  const Array step = probe("step");
  EXPECT_EQ(step.shape, (Shape{2, 3}));
  EXPECT_EQ(step.values[1].f, 3);
  EXPECT_EQ(step.values[5].f, 15);
}

TEST(Contracts, NameTheElement) {
  const std::string text = R"(
program p(in x: f32[row, col], in label: i32[row] in 0 .. extent(col), out y: f32[row]) {
  parallel row { y[row] = x[row, label] }
})";
  Case c(text);
  c.tensor("x", {4, 7}, normal({4, 7})).tensor("label", {4}, {0, 6, 9, 1}).tensor("y", {4});
  const Error e = error_of([&] { c.run(); });
  EXPECT_EQ(e.code, ErrorCode::contract_broken);
  EXPECT_EQ(e.message, "label[2] = 9 is outside 0 .. 7 (extent of col in x)");

  Case s(
      "program p(in a: i32[n] sorted, in d: i32[n] distinct, out y: i32[n]) {\n  require extent(n) < 5\n  parallel n { y[n] = a "
      "+ d }\n}\n");
  s.tensor("y", {3});
  const auto message = [&] { return error_of([&] { s.run(); }).message; };
  s.tensor("a", {3}, {1, 3, 2}).tensor("d", {3}, {1, 2, 3});
  EXPECT_EQ(message(), "a[2] = 2 is less than a[1] = 3, but a is sorted");
  s.tensor("a", {3}, {1, 1, 2}).tensor("d", {3}, {4, 2, 4});
  EXPECT_EQ(message(), "d[2] = 4 is also d[0], but d is distinct");
  s.tensor("a", {5}, {1, 2, 3, 4, 5}).tensor("d", {5}, {1, 2, 3, 4, 5}).tensor("y", {5});
  EXPECT_EQ(error_of([&] { s.run(); }).code, ErrorCode::contract_broken);
}

TEST(Bounds, AccessOutsideIsAnError) {
  Case c("program p(in x: f32[i, j], out y: f32[i, j]) {\n  parallel i { y[i, j] = x[i, j + 1] }\n}\n");
  const Error e = error_of([&] { c.tensor("x", {2, 3}, normal({2, 3})).tensor("y", {2, 3}).run(); });
  EXPECT_EQ(e.code, ErrorCode::out_of_bounds);
  EXPECT_EQ(e.message, "x[0, 3] leaves its extents (x is 2 x 3)");
}

TEST(Typed, RoundsEveryOperationAndSumsInDouble) {
  Case c(
      "program p<T: float>(in x: T[i, n], out y: T[i, n], out s: f32[i]) {\n  parallel i {\n    y[i, n] = x * 0.1 + 0.3\n    "
      "s[i] = sum(x, n)\n  }\n}\n",
      "", DType::f16_);
  Values x = normal({2, 1000});
  for (double& v : x) v = ops::round_to(DType::f16_, v);
  const Result r = c.tensor("x", {2, 1000}, x).tensor("y", {2, 1000}).tensor("s", {2}).run(Mode::typed);
  double sum = 0;
  for (int k = 0; k < 1000; ++k) {
    const float v = static_cast<float>(x[k]) * 0.1f + 0.3f;
    EXPECT_EQ(r.outputs[0].values[k].f, ops::round_to(DType::f16_, v));
    sum += x[k];
  }
  EXPECT_EQ(r.outputs[1].values[0].f, static_cast<float>(sum));
  expect_typed_within(c.run(), r);
}

}  // namespace
}  // namespace cosmati::oracle
