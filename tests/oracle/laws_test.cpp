// Reducers and streams that break their laws are found and named; those that keep them are not.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/fixture.h"

namespace cosmati::oracle {
namespace {

std::string reducer(const std::string& parts, const std::string& option = "") {
  return "reducer r(x) {\n" + parts + "\n}\nprogram p(in x: f32[i, n], out y: f32[i]) {\n  parallel i { y[i] = r(x, n" + option +
         ") }\n}\n";
}

TEST(Laws, OfReducers) {
  const auto laws = [](const std::string& text) {
    Case c(text);
    for (std::uint64_t seed = 0; seed < 5; ++seed) check_laws(c.program, seed);
  };
  const auto broken = [&](const std::string& text) {
    const Error e = error_of([&] { laws(text); });
    EXPECT_EQ(e.code, ErrorCode::reducer_law);
    return e.message;
  };
  laws(reducer("identity s = 0\nlift s = x * x\nmerge s = a.s + b.s\nfinish s"));
  laws(
      reducer("identity n = 0.0, m = 0.0\nlift n = 1.0, m = x\nmerge n = a.n + b.n, m = where(n == 0, 0, (a.m * a.n + b.m * b.n) "
              "/ n)\nfinish m"));
  EXPECT_NE(broken(reducer("identity s = 1\nlift s = x\nmerge s = a.s + b.s\nfinish s")).find("identity"), std::string::npos);
  EXPECT_NE(broken(reducer("identity s = 0\nlift s = x\nmerge s = a.s - b.s\nfinish s")).find("reducer r"), std::string::npos);
  EXPECT_NE(broken(reducer("identity s = 0\nlift s = x\nmerge s = a.s + b.s + a.s * b.s * b.s\nfinish s"))
                .find("merge(a, merge(b, c))"),
            std::string::npos);
  // The last of the elements that are not 0: associative, and commutative only by promise.
  const std::string last = "identity s = 0\nlift s = x\nmerge s = where(b.s == 0, a.s, b.s)\nfinish s";
  EXPECT_NE(broken(reducer(last)).find("merge(b, a)"), std::string::npos);
  laws(reducer(last, ", order: left"));
}

Case stream(const std::string& carry, const std::string& body, const std::string& end) {
  Case c("program p(in x: f32[i, n], out y: f32[i]) {\n  parallel i {\n    stream tile n carry " + carry + " {\n" + body +
         "\n    }\n    y[i] = " + end + "\n  }\n}\n");
  c.tensor("x", {3, 6}, normal({3, 6})).tensor("y", {3});
  return c;
}

TEST(Cuts, OfStreams) {
  const auto check = [](Case c) {
    check_laws(c.program, 1);
    check_cuts(c.program, c.inputs, 1);
  };
  check(stream("l = 0", "next l = l + sum(x, n)\nmerge l = a.l + b.l", "l"));
  check(stream("l = 5", "next l = l + sum(x, n)\nmerge l = a.l + b.l - 5", "l"));
  check(stream("l = 0", "next l = l + sum(exp(x), n)", "log(l)"));
  const auto message = [&](Case c) {
    const Error e = error_of([&] { check(c); });
    EXPECT_EQ(e.code, ErrorCode::cut_dependent);
    return e.message;
  };
  const std::string l = "carried l depends on where the stream over n is cut, or on its merge";
  EXPECT_EQ(message(stream("l = 0", "next l = l + 1.0", "f32(l)")), l);
  EXPECT_EQ(message(stream("l = 0", "next l = l + mean(x, n)", "l")), l);
  EXPECT_EQ(message(stream("k = 0, l = 0", "next k = k + sum(x, n), l = l * 0.5 + sum(x, n)", "l + k")), l);
  EXPECT_EQ(message(stream("l = 0", "next l = l + sum(x, n)\nmerge l = a.l - b.l", "l")), l);
  EXPECT_EQ(message(stream("l = 5", "next l = l + sum(x, n)\nmerge l = a.l + b.l", "l")), l);
}

TEST(Cuts, AStoreInTheBodyIsNamedWithAnElement) {
  Case c(
      "program p(in x: f32[b, t], out y: f32[b], out z: f32[b, t]) {\n parallel b {\n  stream tile t carry h = 0 {\n"
      "   z[b, t] = x - max(x, t)\n   next h = h + sum(x, t)\n  }\n  y[b] = h\n }\n}");
  c.tensor("x", {1, 3}, {1, 2, 5}).tensor("y", {1}).tensor("z", {1, 3});
  const Error e = error_of([&] { check_cuts(c.program, c.inputs, 1); });
  EXPECT_EQ(e.code, ErrorCode::cut_dependent);
  EXPECT_EQ(e.where.line, 4);
  EXPECT_EQ(e.message,
            "what is stored to z[b, t] depends on where the stream over t is cut: z[0, 0] is -4 in one piece and 0 in several");
  EXPECT_EQ(e.hint.find("a reduction over t inside the stream sees one piece"), 0u);
}

TEST(Cuts, PiecesGiveTheSameWithinTheBounds) {
  Case c(file_text("tests/programs/language_page.tile"), "attention_streamed");
  c.tensor("q", {2, 1, 5, 4}, normal({2, 1, 5, 4}))
      .tensor("k", {2, 1, 9, 4}, normal({2, 1, 9, 4}, 2))
      .tensor("v", {2, 1, 9, 3}, normal({2, 1, 9, 3}, 3));
  c.scalar("scale", 0.5).tensor("o", {2, 1, 5, 3});
  const Result whole = c.run();
  for (const bool merge : {false, true}) {
    Options o;
    o.merge_streams = merge;
    int calls = 0;
    o.cuts = [&](std::int64_t lo, std::int64_t hi) {
      ++calls;
      std::vector<std::int64_t> points;
      for (std::int64_t p = lo + 2; p < hi; p += 2) points.push_back(p);
      return points;
    };
    const Result cut = c.run(o);
    EXPECT_GT(calls, 0);
    for (std::size_t k = 0; k < whole.outputs[0].values.size(); ++k)
      EXPECT_NEAR(cut.outputs[0].values[k].f, whole.outputs[0].values[k].f, 1e-12);
  }
}

}  // namespace
}  // namespace cosmati::oracle
