// What must be proven: the shipped programs and tests/prove/proven.tile, under every sample binding; hulls of dependent ranges;
// which inputs an output may be stored over; how deep an index may be.
// SPDX-License-Identifier: Apache-2.0
#include "prove/prove.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "ir/describe.h"
#include "language/source.h"
#include "prove/isl.h"
#include "tests/file_text.h"

namespace cosmati {
namespace {

ir::Program program(const std::string& text) {
  const auto source = language::parse(text, "t").at(0);
  return source->instantiate(language::sample_bindings(source->signature()).at(0));
}

void expect_proven(const std::filesystem::path& path) {
  for (const auto& source : language::parse(file_text(path), path.filename().string())) {
    for (const language::Binding& binding : language::sample_bindings(source->signature())) {
      const ir::Program p = source->instantiate(binding);
      const prove::Proof proof = prove::prove_program(p);
      EXPECT_TRUE(proof) << p.name << ": " << proof.refusal->message;
    }
  }
}

TEST(Prove, ShippedPrograms) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("programs")) {
    if (entry.path().extension() != ".tile") continue;
    ++files;
    expect_proven(entry.path());
  }
  EXPECT_GE(files, 20);
}

TEST(Prove, HarderPrograms) { expect_proven("tests/prove/proven.tile"); }

// "lo .. hi" of the only dependent range.
std::string hull_text(const std::string& text) {
  const ir::Program p = program(text);
  for (std::uint32_t a = 0; a < p.axes.size(); ++a) {
    if (ir::range_axes(p, ir::AxisId{a}).empty()) continue;
    const std::optional<prove::Hull> h = prove::hull(p, ir::AxisId{a});
    if (!h) return "none";
    std::vector<std::string> sides;
    for (const prove::Bound* side : {&h->lo, &h->hi}) {
      std::vector<std::string> terms;
      for (const prove::LinearTerm& t : *side) {
        std::vector<std::string> factors{fmt::format("{}", t.coefficient)};
        for (ir::ValueId f : t.factors) factors.push_back(ir::describe_expression(p, f));
        terms.push_back(fmt::format("{}", fmt::join(factors, "*")));
      }
      sides.push_back(fmt::format("{}", fmt::join(terms, " + ")));
    }
    return sides[0] + " .. " + sides[1];
  }
  return "no range";
}

TEST(Prove, Hulls) {
  auto with = [](const std::string& range) {
    return hull_text(
        "program p(in x: f32[s, c], in len: i32[s] in 0 .. extent(c) + 1, in free: i32[s], out y: f32[s], w: i32) {\n"
        "  require extent(s) >= 0 and extent(c) >= 0\n"
        "  parallel s {\n    axis t in " +
        range + "\n    y[s] = sum(x[s, t] else 0, t)\n  }\n}\n");
  };
  EXPECT_EQ(with("0 .. len"), " .. 1*extent(c)");
  EXPECT_EQ(with("0 .. s + 1 + extent(c) - extent(s)"), " .. 1*extent(c)");
  EXPECT_EQ(with("maximum(0, s - w) .. s + 1"), " .. 1*extent(s)");
  EXPECT_EQ(with("s .. extent(c)"), " .. 1*extent(c)");
  EXPECT_EQ(with("s - 2 .. minimum(s, extent(c))"), "-2 .. -1 + 1*extent(s)");
  EXPECT_EQ(with("0 .. free"), "none");
}

std::string alias_text(const std::string& text, const std::string& in, const std::string& out) {
  const ir::Program p = program(text);
  ir::TensorId ids[2];
  for (std::uint32_t k = 0; k < p.tensors.size(); ++k) {
    if (p.tensors[k].name == in) ids[0] = ir::TensorId{k};
    if (p.tensors[k].name == out) ids[1] = ir::TensorId{k};
  }
  const prove::Proof proof = prove::prove_exact_alias(p, ids[0], ids[1]);
  return proof ? "yes" : proof.refusal->message;
}

TEST(Prove, ExactAliases) {
  const std::string softmax = file_text("programs/softmax.tile");
  EXPECT_EQ(alias_text(softmax, "x", "y"), "yes");
  EXPECT_EQ(alias_text(file_text("programs/linear_recurrence.tile"), "x", "y"), "yes");
  auto body = [](const std::string& stores) {
    return "program p(in x: f32[i, j], out y: f32[i, j], out z: f32[i, j]) {\n  parallel i {\n" + stores + "  }\n}\n";
  };
  EXPECT_EQ(alias_text(body("    y[i, j] = x\n    z[i, j] = 1.0\n"), "x", "y"), "yes");
  EXPECT_EQ(alias_text(body("    z[i, j] = x\n    y[i, j] = x\n"), "x", "y"), "yes");
  EXPECT_EQ(alias_text(body("    y[i, j] = x\n    z[i, j] = x\n"), "x", "y"),
            "y may not be stored over x: x[i, j] is read after y[i, j] is stored");
  EXPECT_EQ(alias_text(body("    y[i, j] = x[i, j - 1] else 0\n    z[i, j] = 1.0\n"), "x", "y"),
            "y may not be stored over x: x[i, j - 1] may be read after y[i, j] has stored that element");
  EXPECT_EQ(alias_text(body("    y[i, j] = x[i - 1, j] else 0\n    z[i, j] = 1.0\n"), "x", "y"),
            "y may not be stored over x: another instance than the one that reads x[i - 1, j] may store it with y[i, j]");
  // The inner j of the reduction is not the stored one.
  EXPECT_EQ(alias_text("program p(in x: f32[i, j, e], in w: f32[j, e], out y: f32[i, j, e]) {\n  parallel i {\n"
                       "    y[i, j, e] = sum(x * w, j) * w\n  }\n}\n",
                       "x", "y"),
            "y may not be stored over x: x[i, j, e] may be read after y[i, j, e] has stored that element");
}

// `k` inside `links` times `step`, where # is what is inside.
ir::Program gather(const std::string& type, int links, const std::string& step, const std::string& outermost = "#") {
  auto inside = [](std::string text, const std::string& what) {
    for (std::size_t at; (at = text.find('#')) != std::string::npos;) text.replace(at, 1, what);
    return text;
  };
  std::string lets;
  for (int i = 0; i < links; ++i) lets += fmt::format("    a{} = {}\n", i + 1, inside(step, i ? fmt::format("a{}", i) : "k"));
  return program(
      fmt::format("program p(in x: f32[n], in k: {}[i] in 0 .. 1000, out y: f32[i]) {{\n  require extent(n) > 2000\n"
                  "  parallel i {{\n{}    y[i] = x[{}]\n  }}\n}}\n",
                  type, lets, inside(outermost, fmt::format("a{}", links))));
}

TEST(Prove, ClampsOfAnyNumberBoundAnIndex) {
  for (const std::string type : {"i32", "i64"})
    for (const std::string step :
         {"clamp(#, 0, extent(n) - 1)", "clamp(# + 1, 0, extent(n) - 1)", "minimum(maximum(#, 0), extent(n) - 1)",
          "clamp(where(# > 5, # - 3, #), 0, extent(n) // 2)", "abs(clamp(#, 0, 9))"})
      for (const int links : {1, 58, 59, 60, 61, 116, 117, 118, 119, 120, 121, 240}) {
        const prove::Proof proof = prove::prove_program(gather(type, links, step));
        EXPECT_TRUE(proof) << type << ", " << links << " times " << step << ": " << proof.refusal->message;
      }
}

TEST(Prove, AnIndexTooDeepForProofsNamesTheLimit) {
  EXPECT_TRUE(prove::prove_program(gather("i32", 110, "# + 1")));
  const prove::Proof proof = prove::prove_program(gather("i32", 150, "# + 1"));
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.refusal->message,
            "x[a150] is not proved to stay in its extents: its index depends on a chain of more than 120 operations, and proofs "
            "look no further");
  EXPECT_EQ(proof.refusal->hint, "x[a150] else 0, or clamp(..., 0, extent(n) - 1) around the index");
  EXPECT_TRUE(prove::prove_program(gather("i32", 150, "# + 1", "clamp(#, 0, extent(n) - 1)")));
}

TEST(Prove, SumsOf64BitsAreBoundedByAClamp) {
  for (const std::string index : {"k + 1", "k + 9223372036854775807", "clamp(k, 0, extent(n) - 1) + 1"}) {
    const prove::Proof proof = prove::prove_program(program(
        "program p(in x: f32[n], in k: i64[i], out y: f32[i]) {\n  require extent(n) > 0\n  parallel i { y[i] = x[clamp(" +
        index + ", 0, extent(n) - 1)] }\n}\n"));
    EXPECT_TRUE(proof) << index << ": " << proof.refusal->message;
  }
}

TEST(Prove, IslAnswersOrGivesUp) {
  EXPECT_EQ(prove::isl_empty("{ [i] : 0 <= i and i < 0 }"), true);
  EXPECT_EQ(prove::isl_empty("{ [i] : 0 <= i and i < 1 }"), false);
  EXPECT_EQ(prove::isl_empty("{ [i] : this is no set }"), std::nullopt);
  EXPECT_EQ(prove::isl_covered("{ [e] : 0 <= e < 4 }", {"{ [e] : 0 <= e < 2 }", "{ [e] : 2 <= e < 4 }"}), true);
  EXPECT_EQ(prove::isl_covered("{ [e] : 0 <= e < 4 }", {"{ [e] : 0 <= e < 2 }"}), false);
}

}  // namespace
}  // namespace cosmati
