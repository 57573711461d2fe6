// The C++ form and the text of one program print the same: of programs of the language page where the names can agree, and of a
// stream and a reducer in text that uses the names capture gives. The prelude of the header is the prelude of the texts.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "library/proofs.h"
#include "plan/plan.h"
#include "runtime/bind.h"

namespace cosmati {
namespace {

Program of_page(const std::string& name) { return load("tests/programs/language_page.tile:" + name); }

using Types = std::vector<std::pair<std::string, DType>>;

// A plan of the captured program replays on its own text: whatever is cut into parts, no number of the arena stands in it.
void expect_plans_replay(const Program& captured, const Types& types, const std::vector<std::pair<std::string, int>>& packs) {
  const Program printed = parse(print(captured, types, packs)).front();
  const auto ours =
      runtime::Instances(captured, library::proofs()).get({{types.begin(), types.end()}, {packs.begin(), packs.end()}});
  const auto theirs = runtime::Instances(printed, library::proofs()).get({});
  plan::Facts facts;
  for (const ir::Tensor& tensor : ours->inlined.tensors) facts.unit_stride.emplace_back(tensor.dims.size(), true);
  const plan::Target target = plan::target_named("sim");
  std::vector<plan::Knobs> settings = {{}, {{"lanes", "1"}}};
  for (const ir::Axis& axis : ours->inlined.axes)
    if (!axis.piece)
      for (const char* knob : {"split.", "tile."}) settings.push_back({{knob + axis.name, "3"}});
  for (const plan::Knobs& knobs : settings) {
    const place::Result<plan::Mapping> made = plan::derive(ours->inlined, target, knobs, facts);
    const place::Result<plan::Mapping> again = plan::derive(theirs->inlined, target, knobs, facts);
    ASSERT_EQ(bool(made), bool(again)) << place::print((made ? again : made).refused());
    if (!made) continue;
    const plan::Plan kept = plan::make_plan(ours->inlined, "", target, knobs, facts);
    const plan::Plan derived = plan::make_plan(theirs->inlined, "", target, knobs, facts);
    EXPECT_NO_THROW(plan::require_same(theirs->inlined, derived, plan::to_json(ours->inlined, kept)));
  }
}

void expect_same(const Program& captured, const Program& text, const Types& types = {{"T", f32}},
                 const std::vector<std::pair<std::string, int>>& packs = {}) {
  EXPECT_EQ(print(captured, types, packs), print(text, types, packs));
  const auto ours = captured.parameters(), theirs = text.parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, theirs[i].name);
    EXPECT_EQ(ours[i].kind, theirs[i].kind) << ours[i].name;
    EXPECT_EQ(ours[i].type, theirs[i].type) << ours[i].name;
    EXPECT_EQ(ours[i].shape, theirs[i].shape) << ours[i].name;
    EXPECT_EQ(ours[i].has_default, theirs[i].has_default) << ours[i].name;
  }
  expect_plans_replay(captured, types, packs);
}

TEST(SameAsText, Softmax) {
  const Program p = program("softmax", [] {
    Axis row{"row"}, col{"col"};
    auto x = input("x", any_float, {row, col});
    auto y = output("y", like(x), {row, col});
    parallel(row, [&] {
      Tile e = named("e", exp(x - max(x, col)));
      y(row, col) = e / sum(e, col);
    });
  });
  for (DType t : {f32, bf16, f16, f64}) expect_same(p, of_page("softmax"), {{"T", t}});
}

TEST(SameAsText, LayerNorm) {
  expect_same(program("layer_norm",
                      [] {
                        Axis row{"row"}, col{"col"};
                        auto x = input("x", any_float, {row, col}), gamma = input("gamma", like(x), {col}),
                             beta = input("beta", like(x), {col});
                        auto y = output("y", like(x), {row, col});
                        auto eps = scalar<f32>("eps").defaults(1e-5);
                        parallel(row, [&] {
                          auto [mu, var] = mean_var(x, col);
                          named("mu", mu), named("var", var);
                          y(row, col) = (x - mu) * rsqrt(var + eps) * gamma + beta;
                        });
                      }),
              of_page("layer_norm"));
}

TEST(SameAsText, CrossEntropyWithAContractAndAnElse) {
  expect_same(program("cross_entropy",
                      [] {
                        Axis row{"row"}, col{"col"};
                        auto x = input("x", any_float, {row, col});
                        auto label = input<i32>("label", {row}).in(-100, col.extent());
                        auto loss = output<f32>("loss", {row});
                        parallel(row, [&] {
                          Tile m = named("m", max(x, col));
                          Tile lse = named("lse", m + log(sum(exp(x - m), col)));
                          loss(row) = where(label < 0, 0, lse - x(row, label).otherwise(0));
                        });
                      }),
              of_page("cross_entropy"));
}

TEST(SameAsText, RopeWithACompositeDimension) {
  expect_same(program("rope",
                      [] {
                        Axis tok{"tok"}, h{"h"}, half{"half", 2}, p{"p"}, place{"place"};
                        auto x = input("x", any_float, {tok, h, {half, p}});
                        auto pos = input<i32>("pos", {tok}).in(0, place.extent());
                        auto cs = input<f32>("cs", {place, p}), sn = input<f32>("sn", {place, p});
                        auto y = output("y", like(x), {tok, h, {half, p}});
                        parallel(tok, h, [&] {
                          Tile c = named("c", cs(pos, p)), s = named("s", sn(pos, p));
                          Tile a = named("a", x(tok, h, dim(0, p))), b = named("b", x(tok, h, dim(1, p)));
                          y(tok, h, dim(0, p)) = a * c - b * s;
                          y(tok, h, dim(1, p)) = b * c + a * s;
                        });
                      }),
              of_page("rope"));
}

TEST(SameAsText, SwigluCallsThePrelude) {
  expect_same(program("swiglu",
                      [] {
                        Axis row{"row"}, two{"two", 2}, n{"n"};
                        auto gu = input("gu", any_float, {row, {two, n}});
                        auto y = output("y", like(gu), {row, n});
                        parallel(row, n, [&] { y(row, n) = silu(gu(row, dim(0, n))) * gu(row, dim(1, n)); });
                      }),
              of_page("swiglu"));
}

TEST(SameAsText, QuantizeRows) {
  expect_same(program("quantize_rows",
                      [] {
                        Axis row{"row"}, col{"col"};
                        auto x = input("x", any_float, {row, col});
                        auto q = output<i8>("q", {row, col});
                        auto scale = output<f32>("scale", {row});
                        parallel(row, [&] {
                          Tile a = named("a", max(abs(x), col));
                          scale(row) = a / 127;
                          q(row, col) = cast<i8>(round(where(a == 0, 0, x / a * 127)));
                        });
                      }),
              of_page("quantize_rows"));
}

TEST(SameAsText, LayerNormBackwardOverAProgramAxis) {
  expect_same(program("layer_norm_backward",
                      [] {
                        Axis row{"row"}, col{"col"};
                        auto x = input("x", any_float, {row, col}), dy = input("dy", like(x), {row, col}),
                             gamma = input("gamma", like(x), {col});
                        auto dx = output("dx", like(x), {row, col});
                        auto dgamma = output<f32>("dgamma", {col}), dbeta = output<f32>("dbeta", {col});
                        auto eps = scalar<f32>("eps").defaults(1e-5);
                        parallel(row, [&] {
                          auto [mu, var] = mean_var(x, col);
                          named("mu", mu), named("var", var);
                          Tile r = named("r", rsqrt(var + eps));
                          Tile n = named("n", (x - mu) * r);
                          Tile g = named("g", dy * gamma);
                          dx(row, col) = (g - mean(g, col) - n * mean(g * n, col)) * r;
                          dgamma(col) = sum(dy * n, row);
                          dbeta(col) = sum(dy, row);
                        });
                      }),
              of_page("layer_norm_backward"));
}

TEST(SameAsText, ConvValidWithBorders) {
  expect_same(program("conv_valid",
                      [] {
                        Axis c{"c"}, i{"i"}, j{"j"}, f{"f"}, di{"di", 3}, dj{"dj", 3};
                        auto x = input("x", any_float, {c, i + 2, j + 2}), w = input("w", like(x), {f, c, di, dj});
                        auto y = output("y", like(x), {f, i, j});
                        parallel(f, i, j, [&] { y(f, i, j) = contract(x(c, i + di, j + dj), w, c, di, dj); });
                      }),
              of_page("conv_valid"));
}

TEST(SameAsText, TransposeStoresAnAccess) {
  const auto body = [](auto store) {
    return program("transpose", [store] {
      Axis i{"i"}, j{"j"};
      auto x = input("x", any_float, {i, j});
      auto y = output("y", like(x), {j, i});
      parallel(i, j, [&] { store(x, y, i, j); });
    });
  };
  expect_same(body([](auto& x, auto& y, auto& i, auto& j) { y(j, i) = x(i, j); }), of_page("transpose"));
  expect_same(body([](auto& x, auto& y, auto& i, auto& j) { y(j, i) = x; }), of_page("transpose"));
}

TEST(SameAsText, GramReadsOneParameterAtTwoAxes) {
  expect_same(program("gram",
                      [] {
                        Axis i{"i"}, d{"d"}, j{"j", i.extent()};
                        auto x = input("x", any_float, {i, d});
                        auto y = output<f32>("y", {i, j});
                        parallel(i, j, [&] { y(i, j) = contract(x(i, d), x(j, d), d); });
                      }),
              of_page("gram"));
}

TEST(SameAsText, AttentionCallsAttend) {
  expect_same(program("attention",
                      [] {
                        Axis b{"b"}, g{"g"}, r{"r"}, s{"s"}, d{"d"}, c{"c"}, e{"e"};
                        auto q = input("q", any_float, {b, {g, r}, s, d}), k = input("k", like(q), {b, g, c, d}),
                             v = input("v", like(q), {b, g, c, e});
                        auto o = output("o", like(q), {b, {g, r}, s, e});
                        auto lse = output<f32>("lse", {b, {g, r}, s});
                        auto scale = scalar<f32>("scale").defaults(1 / sqrt(cast<f32>(d.extent())));
                        parallel(b, g, r, s, [&] {
                          Axis t{"t", 0, s + 1 + c.extent() - s.extent()};
                          auto [out, l] = attend(contract(q, k(b, g, t, d), d) * scale, v(b, g, t, e), t);
                          named("out_", out), named("l", l);
                          o(b, dim(g, r), s, e) = out;
                          lse(b, dim(g, r), s) = l;
                        });
                      }),
              of_page("attention"), {{"T", bf16}});
}

TEST(SameAsText, RaggedAttentionWithContracts) {
  expect_same(program("attention_ragged",
                      [] {
                        Axis tok{"tok"}, g{"g"}, r{"r"}, d{"d"}, e{"e"}, b{"b"};
                        auto q = input("q", any_float, {tok, {g, r}, d}), k = input("k", like(q), {tok, g, d}),
                             v = input("v", like(q), {tok, g, e});
                        auto off = input<i32>("off", {b + 1}).in(0, tok.extent() + 1).sorted();
                        auto seq = input<i32>("seq", {tok}).in(0, b.extent());
                        auto o = output("o", like(q), {tok, {g, r}, e});
                        auto scale = scalar<f32>("scale");
                        parallel(tok, g, r, [&] {
                          Axis t{"t", off(seq), tok + 1};
                          auto [out, l] = attend(contract(q, k(t, g, d), d) * scale, v(t, g, e), t);
                          named("out_", out), named("l", l);
                          o(tok, dim(g, r), e) = out;
                        });
                      }),
              of_page("attention_ragged"));
}

TEST(SameAsText, RmsNormOfAnyLeadingDimensions) {
  const Program p = program("rms_norm", [] {
    Axes rows{"rows"};
    Axis col{"col"};
    auto x = input("x", any_float, {rows, col}), w = input("w", like(x), {col});
    auto y = output("y", like(x), {rows, col});
    auto eps = scalar<f32>("eps").defaults(1e-6);
    parallel(rows, [&] { y(rows, col) = x * rsqrt(mean(x * x, col) + eps) * w; });
  });
  for (int rank : {0, 1, 3}) expect_same(p, of_page("rms_norm"), {{"T", f32}}, {{"rows", rank}});
}

TEST(SameAsText, CrossEntropyLinearReplaces) {
  expect_same(program("cross_entropy_linear",
                      [] {
                        Axis row{"row"}, d{"d"}, word{"word"};
                        auto h = input("h", any_float, {row, d}), w = input("w", like(h), {word, d});
                        auto label = input<i32>("label", {row}).in(0, word.extent());
                        auto loss = output<f32>("loss", {row});
                        parallel(row, [&] {
                          Tile x = named("x", contract(h, w, d)), m = named("m", max(x, word));
                          loss(row) = m + log(sum(exp_diff(x, m), word)) - x.at(word, label);
                        });
                      }),
              of_page("cross_entropy_linear"));
}

TEST(SameAsText, StreamOfTilesWithAMerge) {
  const char* text = R"(program p<T: float>(in x: T[row, col], out y: f32[row]) {
  parallel row {
    stream tile col carry carried_0 = -inf, carried_1 = 0 {
      m = maximum(carried_0, max(x, col))
      next carried_0 = m, carried_1 = carried_1 * exp_diff(carried_0, m) + sum(exp_diff(x, m), col)
      merge carried_0 = maximum(a.carried_0, b.carried_0), carried_1 = a.carried_1 * exp_diff(a.carried_0, carried_0) + b.carried_1 * exp_diff(b.carried_0, carried_0)
    }
    y[row] = carried_0 + log(carried_1)
  }
})";
  const Program p = program("p", [] {
    Axis row{"row"}, col{"col"};
    auto x = input("x", any_float, {row, col});
    auto y = output<f32>("y", {row});
    parallel(row, [&] {
      auto [m, l] = stream(tiles(col), carry(-inf, 0), [&](Tile m, Tile l) {
        Tile now = named("m", maximum(m, max(x, col)));
        return next(now, l * exp_diff(m, now) + sum(exp_diff(x, now), col)).merge([](auto a, auto b) {
          Tile both = maximum(a[0], b[0]);
          return next(both, a[1] * exp_diff(a[0], both) + b[1] * exp_diff(b[0], both));
        });
      });
      y(row) = m + log(l);
    });
  });
  expect_same(p, parse(text)[0]);
}

TEST(SameAsText, StreamByIndexThatStores) {
  const char* text = R"(program p(in a: f32[b, t], inout y: f32[b, t]) {
  parallel b {
    stream t carry carried_0 = 0 {
      h = carried_0 * a + y
      y[b, t] = h
      next carried_0 = h
    }
  }
})";
  const Program p = program("p", [] {
    Axis b{"b"}, t{"t"};
    auto a = input<f32>("a", {b, t});
    auto y = inout("y", like(a), {b, t});
    parallel(b, [&] {
      stream(t, carry(0), [&](Tile h) {
        Tile now = named("h", h * a + y);
        y(b, t) = now;
        return next(now);
      });
    });
  });
  expect_same(p, parse(text)[0], {});
}

TEST(SameAsText, ReducerOrderAndRelaxation) {
  const char* text = R"(reducer best(x0, x1) {
  identity s0 = -inf, s1 = -1
  lift s0 = x0, s1 = x1
  merge s0 = maximum(a.s0, b.s0), s1 = where(a.s0 > b.s0 or b.s1 < 0, a.s1, b.s1)
  finish (s0, s1)
}
program p(in x: bf16[row, col], in w: bf16[col], out v: f32[row], out i: i64[row], out s: f32[row], out c: f32[row]) {
  parallel row {
    value, at = best(x, col, col)
    v[row] = value
    i[row] = at
    s[row] = sum(x, col, order: left)
    c[row] = contract(exp(x), w, col, relax: narrow)
  }
})";
  const Program p = program("p", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<bf16>("x", {row, col}), w = input<bf16>("w", {col});
    auto v = output<f32>("v", {row});
    auto i = output<i64>("i", {row});
    auto s = output<f32>("s", {row}), c = output<f32>("c", {row});
    Reducer best{"best", [] { return next(-inf, -1); }, [](Tile x, Tile i) { return next(x, i); },
                 [](auto a, auto b) { return next(maximum(a[0], b[0]), where(a[0] > b[0] || b[1] < 0, a[1], b[1])); },
                 [](auto state) { return next(state[0], state[1]); }};
    parallel(row, [&] {
      auto [value, at] = best(x, col, col);
      named("value", value), named("at", at);
      v(row) = value;
      i(row) = at;
      s(row) = sum(x, order::left, col);
      c(row) = contract(exp(x), w, relax::narrow, col);
    });
  });
  expect_same(p, parse(text)[0], {});
}

TEST(SameAsText, OperatorsIntegersAndScalars) {
  const char* text =
      R"(program p<T: int, U: any>(in x: T[n], in z: U[n, 4], in k: u32[n], out y: i32[n], out b: bool[n], out u: u32[n], out total: U[n], w: i32) {
  require w > 0
  parallel n {
    y[n] = i32(x) // w + i32(x) % 3 - -w
    b[n] = not (x == 0) and (x < 5 or n != 2)
    u[n] = (k & 255 | (k ^ 3)) << 2 >> 1
    total[n] = z[n, clamp(n, 0, 3)]
  }
})";
  const Program p = program("p", [] {
    Axis n{"n"};
    auto x = input("x", any_int, {n});
    auto z = input("z", any_type, {n, 4});
    auto k = input<u32>("k", {n});
    auto y = output<i32>("y", {n});
    auto b = output<boolean>("b", {n});
    auto u = output<u32>("u", {n});
    auto total = output("total", like(z), {n});
    auto w = scalar<i32>("w");
    require(w > 0);
    parallel(n, [&] {
      y(n) = floordiv(cast<i32>(x), w) + cast<i32>(x) % 3 - -w;
      b(n) = !(x == 0) && (x < 5 || n != 2);
      u(n) = ((k & 255) | (k ^ 3)) << 2 >> 1;
      total(n) = z(n, clamp(n, 0, 3));
    });
  });
  expect_same(p, parse(text)[0], {{"T", i8}, {"U", f16}});
}

// Nothing has a name here: what the phases are called, and their order, follow from the program.
TEST(SameAsText, PlansOfUnnamedValuesReplay) {
  const Program p = program("p", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col}), dy = input<f32>("dy", {row, col});
    auto dx = output<f32>("dx", {row, col}), dgamma = output<f32>("dgamma", {col}), dbeta = output<f32>("dbeta", {col});
    parallel(row, [&] {
      auto moments = mean_var(x, col);
      Tile scaled = (x - std::get<0>(moments)) * rsqrt(std::get<1>(moments) + 1e-5);
      Tile top = max(dy, col), bottom = min(x, col);
      dgamma(col) = sum(dy * scaled + bottom, row);
      dbeta(col) = sum(exp(dy - top), row) + sum(x, row);
      dx(row, col) = scaled * sum(exp(dy - top) * scaled, col) + bottom;
    });
  });
  expect_plans_replay(p, {}, {});
}

TEST(SameAsText, EqualLabelsAreRenamedByThePrinter) {
  const Program p = program("p", [] {
    Axis i{"i"}, j{"i"}, k{"in"}, l{"stream"};
    auto x = input<f32>("x", {i, k});
    auto y = output<f32>("y", {i, j, l});
    parallel(i, j, l, [&] { y(i, j, l) = sum(x, k); });
  });
  const std::string text = print(p, {});
  EXPECT_EQ(print(parse(text)[0], {}), text);
  EXPECT_NE(text.find("out y: f32[i, i_2, stream_2]"), std::string::npos) << text;
}

}  // namespace
}  // namespace cosmati
