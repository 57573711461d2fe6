// Speed, depth and memory: rates that the other tests rely on, programs longer than a stack is deep, operands larger than memory.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <fmt/format.h>

#include "ir/builder.h"
#include "oracle/fixture.h"

namespace cosmati::oracle {
namespace {

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Size, TenMillionNodeEvaluationsASecond) {
  Case c(
      "program p(in x: f32[i, n], out y: f32[i, n]) {\n  parallel i {\n    e = exp(x - max(x, n))\n    y[i, n] = e / sum(e, n) * "
      "2 + x * x\n  }\n}\n");
  constexpr int I = 400, N = 1000, nodes = 9;
  c.tensor("x", {I, N}, normal({I, N})).tensor("y", {I, N});
  for (const Mode mode : {Mode::wide, Mode::typed}) {
    const double rate = double(I) * N * nodes / seconds([&] { c.run(mode); });
    std::printf("%s: %.1f million node evaluations a second\n", mode == Mode::wide ? "wide" : "typed", rate / 1e6);
    RecordProperty(mode == Mode::wide ? "wide" : "typed", std::to_string(rate));
    EXPECT_GT(rate, 5e5);  // far below what is printed: builds without optimisation, sanitizers, loaded machines
  }
  Case m("program p(in a: f32[i, k], in b: f32[k, j], out y: f32[i, j]) {\n  parallel i, j { y[i, j] = contract(a, b, k) }\n}\n");
  constexpr int S = 200;
  m.tensor("a", {S, S}, normal({S, S})).tensor("b", {S, S}, normal({S, S})).tensor("y", {S, S});
  std::printf("product: %.1f million node evaluations a second\n", 2.0 * S * S * S / 1e6 / seconds([&] { m.run(); }));
}

constexpr int depth = 100000;

TEST(Size, LongChainsOfOperations) {
  ir::Builder b("chain");
  const Where w;
  const ir::AxisId i = b.axis("i", w);
  const ir::TensorId x = b.tensor("x", ir::Access::in, DType::f32_, {{{i, 0}}}, w),
                     y = b.tensor("y", ir::Access::out, DType::f32_, {{{i, 0}}}, w);
  b.parallel({i}, w);
  ir::ValueId v = b.bare(x, w);
  const ir::ValueId start = v;
  for (int k = 0; k < depth; ++k) v = b.elementwise(ops::Op::add, {b.elementwise(ops::Op::neg, {v}, w), start}, w);
  b.store(y, {{b.coordinate(i, w)}}, v, w);
  const ir::Program p = b.finish(w);
  float in[3] = {1, 2, 3}, out[3];
  Inputs inputs;
  inputs.tensors = {TensorView{}, TensorView{}};
  inputs.tensors[0].data = in;
  inputs.tensors[1].data = out;
  inputs.tensors[0].shape = inputs.tensors[1].shape = {3};
  inputs.extents.assign(p.axes.size(), 3);
  EXPECT_EQ(run(p, inputs).outputs[0].values[2].f, 3);
}

TEST(Size, LongChainsOfReductionsAndReplacements) {
  std::string text = "program p(in x: f32[i, n], out y: f32[i, n]) {\n  parallel i {\n    v0 = x\n";
  constexpr int links = 600;
  for (int k = 1; k <= links; ++k)
    text += k % 2 ? fmt::format("    v{} = v{} - max(v{}, n)\n", k, k - 1, k - 1)
                  : fmt::format("    v{} = v{}[n := extent(n) - 1 - n]\n", k, k - 1);
  Case c(text + fmt::format("    y[i, n] = v{}\n  }}\n}}\n", links));
  expect_values(c.tensor("x", {1, 3}, {1, 2, 4}).tensor("y", {1, 3}).run(), 0, {-3, -2, 0});
}

TEST(Size, OperandsOfReductionsAreNeverStoredWhole) {
  // 6 million differences and products: hundreds of megabytes if they were arrays with bounds.
  Case c(
      "program p(in x: f32[n], in z: f32[m], out s: f32[i], out d: f32[i]) {\n  axis i = 2\n  parallel i {\n    s[i] = sum(abs(x "
      "- z) + f32(i), n, m)\n    d[i] = sum(x * z, n, m)\n  }\n}\n");
  constexpr int N = 2500;
  const Values ones(N, 1.0);
  const Result r = c.tensor("x", {N}, ones).tensor("z", {N}, ones).tensor("s", {2}).tensor("d", {2}).extent("i", 2).run();
  expect_values(r, 0, {0, double(N) * N}, 1e9);
  expect_values(r, 1, {double(N) * N, double(N) * N}, 1e9);
}

}  // namespace
}  // namespace cosmati::oracle
