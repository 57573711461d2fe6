// Every program of the language page and every shipped program, at all of its sample bindings, and literals of every kind: its
// text instantiates, prints, and the printed text instantiates to a program that prints the same, has the same constants to the
// bit, and gives the same bits in both modes of the oracle.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <filesystem>
#include <random>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "language/source.h"
#include "library/random_inputs.h"
#include "oracle/oracle.h"
#include "prove/prove.h"
#include "runtime/extents.h"
#include "tests/file_text.h"

namespace cosmati::language {
namespace {

using Constant = std::tuple<DType, std::uint64_t, std::int64_t>;

// The constants that the program's meaning is made of, each once.
std::set<Constant> constants(const ir::Program& p) {
  std::vector<ir::ValueId> work;
  auto all = [&](const std::vector<ir::ValueId>& values) { work.insert(work.end(), values.begin(), values.end()); };
  auto maybe = [&](const std::optional<ir::ValueId>& value) {
    if (value) work.push_back(*value);
  };
  for (const ir::Store& s : p.stores) {
    work.push_back(s.value);
    for (const ir::Index& i : s.index) all(i);
  }
  for (const ir::Stream& s : p.streams) {
    for (const ir::Carry& c : s.carries) all({c.init, c.next});
    if (s.merge) all(s.merge->results);
  }
  for (const ir::Axis& a : p.axes) maybe(a.lo), maybe(a.hi);
  for (const ir::Tensor& t : p.tensors) maybe(t.contract.lo), maybe(t.contract.hi);
  for (const ir::Scalar& s : p.scalars) maybe(s.fallback);
  for (const auto& [condition, where] : p.requires_) work.push_back(condition);
  std::set<ir::ValueId> seen;
  std::set<Constant> found;
  while (!work.empty()) {
    const ir::ValueId v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    if (const auto* c = std::get_if<ir::Const>(&p[v].node))
      found.emplace(p[v].dtype, is_float(p[v].dtype) ? std::bit_cast<std::uint64_t>(c->f) : 0, c->i);
    if (const auto* r = std::get_if<ir::Reduce>(&p[v].node); r && !p[r->reducer].builtin)
      for (const ir::Lambda* part : {&p[r->reducer].identity, &p[r->reducer].lift, &p[r->reducer].merge, &p[r->reducer].finish})
        all(part->results);
    all(ir::operands(p[v].node));
  }
  return found;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

// Both programs have the same parameters in the same order. How many arguments were tried.
int expect_same_results(const ir::Program& p, const ir::Program& q) {
  if (!prove::prove_program(p)) return 0;  // a mistake that is told only when it is used
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 6 && runs < 2; ++seed) {
    const auto owned = library::random_inputs(p, seed);
    if (!owned) continue;
    ++runs;
    std::vector<const TensorView*> views;
    for (const TensorView& view : owned->inputs.tensors) views.push_back(&view);
    std::vector<std::optional<ops::Scalar>> scalars(owned->inputs.scalars.begin(), owned->inputs.scalars.end());
    for (std::size_t s = 0; s < scalars.size(); ++s)
      if (q.scalars[s].fallback) scalars[s].reset();
    const runtime::ExtentEquations extents(q, views, scalars);
    oracle::Inputs again = owned->inputs;
    again.extents = extents.all();
    again.scalars = extents.scalars();
    for (const oracle::Mode mode : {oracle::Mode::typed, oracle::Mode::wide}) {
      const oracle::Result a = oracle::run(p, owned->inputs, {mode, {}, {}, false}),
                           b = oracle::run(q, again, {mode, {}, {}, false});
      EXPECT_EQ(a.outputs.size(), b.outputs.size());
      for (std::size_t o = 0; o < a.outputs.size(); ++o)
        for (std::size_t i = 0; i < a.outputs[o].values.size(); ++i) {
          const ops::Scalar x = a.outputs[o].values[i], y = b.outputs[o].values[i];
          EXPECT_TRUE(x.i == y.i && (same_bits(x.f, y.f) || (std::isnan(x.f) && std::isnan(y.f))))
              << "output " << o << " element " << i << ": " << x.f << " and " << y.f;
          EXPECT_TRUE(same_bits(a.outputs[o].error[i], b.outputs[o].error[i])) << "bound of output " << o << " element " << i;
        }
    }
  }
  return runs;
}

int expect_round_trip(const Source& source) {
  int runs = 0;
  for (const Binding& binding : sample_bindings(source.signature())) {
    const ir::Program program = source.instantiate(binding);
    const std::string text = print(program);
    SCOPED_TRACE(text);
    const auto again = parse(text, "printed");
    EXPECT_EQ(again.size(), 1u);
    const ir::Program second = again[0]->instantiate({});
    EXPECT_EQ(print(second), text);
    EXPECT_EQ(second.stores.size(), program.stores.size());
    EXPECT_EQ(second.streams.size(), program.streams.size());
    EXPECT_EQ(second.program_axes.size(), program.program_axes.size());
    EXPECT_EQ(constants(second), constants(program));
    runs += expect_same_results(program, second);
  }
  return runs;
}

TEST(RoundTrip, EveryProgramOfTheLanguagePage) {
  const auto programs = parse(file_text("tests/programs/language_page.tile"), "language_page.tile");
  EXPECT_EQ(programs.size(), 28u);
  for (const auto& program : programs) {
    SCOPED_TRACE(program->signature().name);
    expect_round_trip(*program);
  }
}

TEST(RoundTrip, EveryShippedProgram) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("programs")) {
    const std::string text = file_text(entry.path());
    EXPECT_EQ(text[0], '#') << entry.path() << " starts with its formula";
    const auto programs = parse(text, entry.path().filename());
    ASSERT_EQ(programs.size(), 1u) << entry.path();
    EXPECT_EQ(programs[0]->signature().name, entry.path().stem());
    names.insert(programs[0]->signature().name);
    SCOPED_TRACE(entry.path());
    expect_round_trip(*programs[0]);
  }
  EXPECT_GE(names.size(), 26u);
}

// A program that uses `literal` in every place where one may stand.
std::string with_literal(const std::string& literal) {
  std::string text = R"(reducer scaled(v) {
  identity m = L
  lift m = v * L
  merge m = a.m + b.m
  finish m + L
}
program p(in x: f32[n], in h: f16[n], in w: f64[n], in q: bf16[n], in b: bool[n], k: f32 = L, g: f16 = L,
          out y: f32[n], out z: f32[n], out v: f64[n], out s: f16[n], out t: bf16[n], out c: f32[], out d: f32[n], out e: f64[n]) {
  parallel {
    y[n] = x * L + f32(L) * x
    z[n] = where(b, L, f32(L)) * f32(h * f16(L)) + k - L
    v[n] = w * L + f64(f32(L)) - f64(L) * f64(f16(L)) + f64(bf16(L))
    s[n] = h[n - 1] else L
    t[n] = bf16(L) * q + g
    c[] = sum(x * L, n) + scaled(x, n) + max(f32(f16(L)) * h, n)
    stream n carry r = L {
      d[n] = r
      next r = r * f32(L) + L * x
    }
    e[n] = where(b, L, 0.0) + f64(bits_u32(f32(L)) & 1)
  }
}
)";
  for (std::size_t at; (at = text.find(" L")) != std::string::npos;) text.replace(at, 2, " " + literal);
  for (std::size_t at; (at = text.find("(L")) != std::string::npos;) text.replace(at, 2, "(" + literal);
  return text;
}

TEST(RoundTrip, LiteralsToTheBit) {
  std::vector<std::string> literals = {"0.7071067811865476",
                                       "0.1",
                                       "0.30000001192092896",
                                       "16777217.0",
                                       "1e-40",
                                       "1e-46",
                                       "65504.0",
                                       "65519.9",
                                       "65520.0",
                                       "1e39",
                                       "3.4e38",
                                       "0.0",
                                       "-0.0",
                                       "inf",
                                       "-inf",
                                       "nan",
                                       "1.5e300",
                                       "5e-324",
                                       "2048.9",
                                       "-0.1"};
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i)
    literals.push_back(fmt::format(
        "{:.17e}", std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 + 0.5, static_cast<int>(random() % 40) - 20)));
  for (const std::string& literal : literals) {
    SCOPED_TRACE(literal);
    const auto programs = parse(with_literal(literal), "literal.tile");
    ASSERT_EQ(programs.size(), 1u);
    EXPECT_GE(expect_round_trip(*programs[0]), 2);
  }
}

}  // namespace
}  // namespace cosmati::language
