// The rules of the grammar and of scopes: two texts that mean the same print the same, at f32.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "language/source.h"

namespace cosmati::language {
namespace {

std::string printed(const std::string& text, const Binding& binding = {}) {
  const auto programs = parse(text, "t.tile");
  std::string result;
  for (const auto& p : programs) {
    const std::string once = print(p->instantiate(binding));
    EXPECT_EQ(print(parse(once, "printed").at(0)->instantiate({})), once) << text;
    result += once;
  }
  return result;
}

// The statements of a region over row.
std::string region(const std::string& body, const std::string& more_params = "") {
  return "program p(in x: f32[row, col], in n: i32[row], in u: u32[row], out y: f32[row, col], out z: f32[row]" + more_params +
         ") {\n  parallel row {\n    z[row] = 0\n" + body + "\n  }\n}\n";
}
std::string value(const std::string& expression) { return printed(region("y[row, col] = " + expression)); }

std::optional<ErrorCode> code_of(const std::string& text) {
  try {
    printed(text);
  } catch (const Error& e) {
    return e.code;
  }
  return std::nullopt;
}

TEST(Grammar, PrecedenceIsThatOfThePage) {
  EXPECT_EQ(value("x + x * 2"), value("x + (x * 2)"));
  EXPECT_NE(value("x + x * 2"), value("(x + x) * 2"));
  EXPECT_EQ(value("x - x - 1"), value("(x - x) - 1"));
  EXPECT_NE(value("x - x - 1"), value("x - (x - 1)"));
  EXPECT_EQ(value("-x * x"), value("(-x) * x"));
  EXPECT_EQ(value("f32(n & 3 << 1 + 1)"), value("f32(n & (3 << (1 + 1)))"));
  EXPECT_EQ(value("f32(n | 3 & n)"), value("f32((n | 3) & n)")) << "| ^ & are one level";
  EXPECT_EQ(value("where(x > 0 or x < 1 and x == 2, x, 0)"), value("where((x > 0) or ((x < 1) and (x == 2)), x, 0)"));
  EXPECT_EQ(value("where(n & 1 == 0, x, 0)"), value("where((n & 1) == 0, x, 0)"));
  EXPECT_EQ(value("where(not (x > 0), x, 0)"), value("where(not (x > 0) , x, 0)"));
}

TEST(Grammar, ElseBindsToTheAccess) {
  EXPECT_EQ(value("x - x[row, col + 1] else 0"), value("x - (x[row, col + 1] else 0)"));
  EXPECT_EQ(value("x[row, col + 1] else -1 * x"), value("(x[row, col + 1] else -1) * x"));
  EXPECT_EQ(value("x[row, col + 1] else x[row, col + 2] else 0"), value("x[row, col + 1] else (x[row, col + 2] else 0)"));
  EXPECT_EQ(value("exp(x)[col := col - 1] else 0 - x"), value("(exp(x)[col := col - 1] else 0) - x"));
}

TEST(Grammar, NewlinesAreBlanksInsideBracketsOnly) {
  EXPECT_EQ(value("exp(\n x +\n\n x)"), value("exp(x + x)"));
  EXPECT_EQ(value("x[row,\n col]"), value("x"));
  EXPECT_EQ(code_of(region("y[row, col] = x\n(x)")), ErrorCode::syntax);
  EXPECT_EQ(code_of(region("y[row, col] = x +\nx")), ErrorCode::syntax);
}

TEST(Grammar, SemicolonsAndBracesEndStatements) {
  EXPECT_EQ(printed(region("a = x; b = a * 2; y[row, col] = b;")), printed(region("a = x\nb = a * 2\ny[row, col] = b")));
  EXPECT_EQ(printed("program p(in x: f32[i], out y: f32[i]) { parallel i { y[i] = x } }"),
            printed("program p(in x: f32[i], out y: f32[i]) {\n  parallel i {\n    y[i] = x\n  }\n}\n"));
  EXPECT_EQ(code_of(region("a = x b = a\ny[row, col] = b")), ErrorCode::syntax);
}

TEST(Grammar, CarriageReturnsTabsAndCommentsAreBlanks) {
  std::string text = region("a = x # größe ∀\n\ty[row, col] = a");
  const std::string expected = printed(region("a = x\ny[row, col] = a"));
  EXPECT_EQ(printed(text), expected);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
  EXPECT_EQ(printed(text), expected);
  EXPECT_EQ(printed("\xef\xbb\xbf" + text), expected) << "a byte order mark";
  EXPECT_EQ(printed(region("y[row, col] = x # no newline at the end") + "# last"), value("x"));
}

TEST(Grammar, NumbersAndRangesAreTheLongestMatch) {
  EXPECT_EQ(printed(region("axis t in 0..n\ny[row, col] = x + f32(sum(t, t))")),
            printed(region("axis t in 0 .. n\ny[row, col] = x + f32(sum(t, t))")));
  EXPECT_EQ(value("x * 1e3"), value("x * 1000.0"));
  EXPECT_EQ(value("x * 2.5e-1"), value("x * 0.25"));
  EXPECT_EQ(value("x * 1e-999"), value("x * 0.0"));
  EXPECT_EQ(value("x * 2"), value("x * 2.0"));
}

TEST(Grammar, WordsOfOnePlaceStayFreeAsNames) {
  const std::string text =
      "program p(in in: f32[tile, order], in inout: f32[tile], out out: f32[tile, order], relax: f32 = 1, sorted: f32 = 2) {\n"
      "  parallel tile {\n"
      "    distinct = in * inout + relax\n"
      "    stream order carry carried = 0 {\n"
      "      out[tile, order] = distinct + sum(in, order, order: left) * sorted\n"
      "      next carried = carried\n"
      "    }\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(code_of(text), ErrorCode::not_supported) << "only because a stream's index can not be reduced over inside it";
  const std::string legal =
      "program p(in in: f32[tile, order], in inout: f32[tile], out out: f32[tile, order], relax: f32 = 1, sorted: f32 = 2) {\n"
      "  parallel tile {\n"
      "    distinct = in * inout + relax\n"
      "    total = sum(in, order, order: left)\n"
      "    stream order carry carried = 0 {\n"
      "      out[tile, order] = distinct + total * sorted + carried\n"
      "      next carried = carried + in\n"
      "    }\n"
      "  }\n"
      "}\n";
  EXPECT_NE(printed(legal).find("sum(in, order, order: left)"), std::string::npos);
  EXPECT_EQ(
      code_of("program p(in x: f32[tile], out y: f32[n]) {\n  axis n = 1\n  parallel n {\n    stream tile tile carry h = 0 {\n"
              "      next h = h + sum(x, tile)\n    }\n    y[n] = h\n  }\n}\n"),
      std::nullopt);
}

TEST(Grammar, FunctionNamesStayFreeForValues) {
  EXPECT_EQ(code_of(region("sum = sum(x, col)\nmax = sum + 1\ny[row, col] = exp(x) + max")), std::nullopt);
  EXPECT_NE(value("where(any(x > 0, col), x, 0)").find("any("), std::string::npos) << "the reserved word any is a reducer too";
}

TEST(Scopes, ADefHasItsOwnNamesAndTakesAxes) {
  const std::string defs = "def norm(v, t) {\n  row = sum(v, t)\n  x = v / row\n  return x + f32(t) * f32(extent(t))\n}\n";
  EXPECT_EQ(printed(defs + region("y[row, col] = norm(exp(x), col)")),
            value("exp(x) / sum(exp(x), col) + f32(col) * f32(extent(col))"));
}

TEST(Scopes, AFileMayDefineItsOwnGelu) {
  EXPECT_EQ(printed("def gelu(x) = x + 1\n" + region("y[row, col] = gelu(x)")), value("x + 1"));
  EXPECT_EQ(printed("def silu(x) = x + 1\n" + region("y[row, col] = silu(x)") + "def f(x) = silu(x)\n"), value("x + 1"));
}

TEST(Scopes, NextReadsTheOldValues) {
  const std::string head =
      "program p(in x: f32[t], out y: f32[i]) {\n  axis i = 2\n  parallel i {\n    stream t carry a = 0, b = 1 {\n      ";
  const std::string tail = "\n    }\n    y[i] = a + 2 * b\n  }\n}\n";
  EXPECT_EQ(printed(head + "next a = b, b = a + x[t]" + tail), printed(head + "next b = a + x[t], a = b" + tail));
  EXPECT_NE(printed(head + "next a = b, b = a + x[t]" + tail).find("next a = b, b = a + x"), std::string::npos);
}

TEST(Scopes, MergeBindsInOrderAndHidesEverythingElse) {
  const std::string head =
      "program p(in a: f32[row, t], out y: f32[row]) {\n  parallel row {\n    stream tile t carry m = -inf, l = 0 {\n"
      "      n = maximum(m, max(a, t))\n      next m = n, l = l * exp_diff(m, n) + sum(exp_diff(a, n), t)\n      merge ";
  const std::string tail = "\n    }\n    y[row] = m + log(l)\n  }\n}\n";
  const std::string ordered = printed(head + "m = maximum(a.m, b.m), l = a.l * exp_diff(a.m, m) + b.l * exp_diff(b.m, m)" + tail);
  EXPECT_EQ(printed(head + "m = maximum(a.m, b.m), l = a.l * exp_diff(a.m, maximum(a.m, b.m)) + b.l * exp_diff(b.m, m)" + tail),
            ordered);
  EXPECT_EQ(code_of(head + "l = a.l * exp_diff(a.m, m) + b.l, m = maximum(a.m, b.m)" + tail), ErrorCode::unknown_name);
  EXPECT_EQ(code_of(head + "m = maximum(a.m, b), l = a.l" + tail), ErrorCode::unknown_name);
}

TEST(Scopes, NamesOfAStreamEndWithItAndItsCarriedValuesStay) {
  const std::string stream = "stream col carry h = 0 {\n  new = h + x\n  next h = new\n}\n";
  EXPECT_EQ(code_of(region(stream + "new = h * 2\ny[row, col] = new")), std::nullopt);
  EXPECT_EQ(code_of(region(stream + "y[row, col] = new")), ErrorCode::unknown_name);
  EXPECT_EQ(code_of(region(stream + "h = 1\ny[row, col] = x")), ErrorCode::redefined);
}

TEST(Packs, StandForAnyNumberOfDimensions) {
  const std::string text =
      "program p(in x: f32[rows..., col], out y: f32[rows..., col]) {\n  parallel rows... { y[rows..., col] = x[rows..., col] "
      "}\n}\n";
  EXPECT_EQ(printed(text, {{}, {{"rows", 0}}}),
            printed("program p(in x: f32[col], out y: f32[col]) {\n  parallel { y[col] = x }\n}\n"));
  EXPECT_EQ(printed(text, {{}, {{"rows", 2}}}),
            printed("program p(in x: f32[rows_0, rows_1, col], out y: f32[rows_0, rows_1, col]) {\n"
                    "  parallel rows_0, rows_1 { y[rows_0, rows_1, col] = x }\n}\n"));
  const Signature signature = parse(text, "t")[0]->signature();
  EXPECT_EQ(signature.parameters[0].pack, "rows");
  EXPECT_EQ(signature.parameters[0].rank, 1);
  EXPECT_EQ(signature.parameters[0].dim_names, (std::vector<std::string>{"rows...", "col"}));
  EXPECT_EQ(sample_bindings(signature).size(), 3u);
}

TEST(Types, ADtypeVariableIsATypeInTheWholeProgram) {
  const std::string text =
      "program p<T: float, U: int>(in x: T[i], in k: U[i], out y: T[i], s: T = 1) {\n  parallel i { y[i] = T(x * f32(k)) + T(s) "
      "}\n}\n";
  EXPECT_EQ(printed(text, {{{"T", DType::bf16_}, {"U", DType::i8_}}, {}}),
            printed("program p(in x: bf16[i], in k: i8[i], out y: bf16[i], s: bf16 = 1) {\n  parallel i { y[i] = bf16(x * "
                    "f32(k)) + s }\n}\n"));
  EXPECT_EQ(sample_bindings(parse(text, "t")[0]->signature()).size(), 5u + 3 + 4);
  EXPECT_THROW(parse(text, "t")[0]->instantiate({{{"T", DType::i32_}, {"U", DType::i8_}}, {}}), Error);
  EXPECT_THROW(parse(text, "t")[0]->instantiate({{{"T", DType::f32_}}, {}}), Error);
}

TEST(Print, TypesOfLiteralsSurvive) {
  EXPECT_NE(value("f32(i8(3) + i8(n))"), value("f32(i64(3) + i64(n))"));
  for (const char* e : {"x * f32(0.1)",
                        "f32(f64(x) * 0.1)",
                        "f32(f64(0.1)) * x",
                        "x + f32(i32(extent(col)) + i32(7))",
                        "x + f32(extent(col) // 2)",
                        "f32(u << u32(3)) + x",
                        "x + f32(i64(extent(col)) * n)",
                        "f32(where(x > 0, 1, 2)) + x",
                        "where(x > 0, nan, -inf) + x",
                        "-(-x) - -1",
                        "f32(bits_u32(x) >> 3)",
                        "x + f32(-9223372036854775807 - 1 + col)",
                        "bits_f32(u) * x",
                        "f32(bf16(x))",
                        "exp(f32(bf16(x)))",
                        "f32(is_nan(f16(x)) and true)",
                        "x + f32(n % 3 - n // 3)",
                        "sqrt(extent(col)) * x",
                        "(x + 1)[col := 0] * x",
                        "exp(x)[col := 0, row := row - 1] else -1.5",
                        "x + 1 / f32(extent(col))"}) {
    SCOPED_TRACE(e);
    value(e);
  }
}

}  // namespace
}  // namespace cosmati::language
