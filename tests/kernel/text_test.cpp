// The text form: what is printed reads back and prints the same; every other text is an Error{syntax} with its line.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>

#include <cosmati/error.h>

#include "kernel/kernel.h"

namespace cosmati::kernel {
namespace {

using ops::Op;

const std::string row_maximum = R"(kernel row_maximum
  param ext_row: i64 = extent(0)
  param ext_col: i64 = extent(1)
  param stride: i64 = stride(0, 1)
  param scale: f32 = scalar(2)
  buffer x: f32 read = argument(0)
  buffer y: f32 write = argument(1)
  buffer part: f32 read_write = launch_scratch[ext_row * 2]
  buffer tile: bf16 read_write = worker_scratch[ext_col + 1]
  phase main groups ext_row
    for col in 0 .. ext_col carry m0 = -inf_f32, n0 = 0 gives m, n
      let v = x[group * stride + col] if col < ext_col - 1 and not_last(col) else 0f32
      next maximum(m0, v * scale), n0 + 1
    if m > 0.5f32 or is_nan(m)
      part[group * 2] = m
      part[group * 2 + 1] = fma(m, -2.5f32, f32(n))
    else
      part[group * 2] = (x[group] if n == 3 else nan_f32) if true
      part[group * 2 + 1] = bits_f32(bits_u32(m) & 65535u32)
  phase last groups (ext_row + 1) // 2
    y[group] = part[group * 2] - (part[0] - part[1]) if group - (1 - worker) >= 0
)";

std::string legal(std::string text) {
  const std::string placeholder = " and not_last(col)";
  return text.erase(text.find(placeholder), placeholder.size());
}

std::string syntax_error(const std::string& text, int line) {
  try {
    parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::syntax);
    EXPECT_EQ(e.where.line, line) << e.what();
    return e.message;
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

// A kernel of one statement, on line 5.
std::string with_statement(const std::string& statement) {
  return "kernel k\n  buffer x: f32 read_write = argument(0)\n  buffer i: i64 read = argument(1)\n  phase main groups 1\n" +
         statement;
}

TEST(Text, PrintsWhatItReads) { EXPECT_EQ(print(parse(legal(row_maximum))), legal(row_maximum)); }

TEST(Text, CommentsAndBlankLinesAreNotKept) {
  EXPECT_EQ(print(parse("\n# first\nkernel k # the name\n\n  phase main groups 0\n    # nothing\n")),
            "kernel k\n  phase main groups 0\n");
}

TEST(Text, KernelsAndPhasesMayHaveAnyName) {
  const std::string text = "kernel group\n  phase let groups 0\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, OperatorsKeepTheirTree) {
  for (const char* value : {"i[0] - (i[1] - i[2])", "(i[0] + i[1]) * i[2] // 3 % 4", "i[0] << 1 + 2", "(i[0] << 1) + 2",
                            "i[0] & i[1] ^ i[2] | i[3]", "i[0] & (i[1] ^ (i[2] | i[3]))", "neg(i[0] - -1)", "i[i[i[0]]]",
                            "where(i[0] < 0 or i[1] > 1 and (i[2] == 2 or true), abs(i[0]), i64(false))"}) {
    const std::string text = with_statement("    let v = " + std::string(value) + "\n");
    EXPECT_EQ(print(parse(text)), text);
  }
}

TEST(Text, ConstantsKeepTheirBits) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 500; ++n) {
    const std::uint64_t bits = random() >> (n % 3 ? 0 : random() % 64);
    for (int type = 0; type < dtype_count; ++type) {
      const DType t = static_cast<DType>(type);
      const ops::Scalar value = ops::load(t, &bits);
      Kernel k;
      k.name = "k";
      Builder b(k);
      Block body;
      const ExprId e = is_float(t) ? b.constant(t, value.f) : is_bool(t) ? b.boolean(value.i) : b.integer(value.i, t);
      body.push_back(b.statement(Let{b.fresh("v", t), e}));
      k.phases.push_back({"main", b.integer(1), body});
      const Kernel again = parse(print(k));
      const auto& let = std::get<Let>(again.stmts[0].node);
      const Const& c = std::get<Const>(again[let.value].node);
      EXPECT_EQ(again[let.value].dtype, t);
      EXPECT_EQ(c.i, value.i) << print(k);
      if (std::isnan(value.f))
        EXPECT_TRUE(std::isnan(c.f));
      else
        EXPECT_EQ(std::bit_cast<std::uint64_t>(c.f), std::bit_cast<std::uint64_t>(value.f)) << print(k);
    }
  }
}

TEST(Text, ErrorsNameTheLine) {
  EXPECT_NE(syntax_error("", 1).find("no kernel"), std::string::npos);
  syntax_error("kernel 7\n", 1);
  syntax_error("kernel k\n  param group: i64 = extent(0)\n", 2);
  syntax_error("kernel k\n  param n: i65 = extent(0)\n", 2);
  syntax_error("kernel k\n  param n: i64 = extent(99999999999999999999)\n", 2);
  syntax_error("kernel k\n  param n: i64 = extent(0)\n  param n: i64 = extent(1)\n", 3);
  syntax_error("kernel k\n  phase main groups n\n", 2);
  syntax_error("kernel k\n   phase main groups 1\n", 2);
  syntax_error("kernel k\n  phase main groups 1\n      let v = 1\n", 3);
  EXPECT_NE(syntax_error(row_maximum, 12).find("not_last"), std::string::npos);
  EXPECT_NE(syntax_error(with_statement("    let v = y\n"), 5).find("y is not a name"), std::string::npos);
  EXPECT_NE(syntax_error(with_statement("    let v = -i[0]\n"), 5).find("neg(x)"), std::string::npos);
  syntax_error(with_statement("    let v = 99999999999999999999\n"), 5);
  syntax_error(with_statement("    let v = 1.5\n"), 5);
  syntax_error(with_statement("    let v = 300u8\n"), 5);
  syntax_error(with_statement("    let v = 1f33\n"), 5);
  syntax_error(with_statement("    let v = 0.1f16\n"), 5);
  syntax_error(with_statement("    let v = fma(1f32, 2f32)\n"), 5);
  syntax_error(with_statement("    let v = 1 +\n"), 5);
  syntax_error(with_statement("    let v = (1 + 2\n"), 5);
  syntax_error(with_statement("    let v = i[0] if true\n"), 5);
  syntax_error(with_statement("    let v = 3 if true else 4\n"), 5);
  syntax_error(with_statement("    let v = 1 2\n"), 5);
  syntax_error(with_statement("    x[0] = 1\n"), 5);
  syntax_error(with_statement("    y[0] = 1f32\n"), 5);
  syntax_error(with_statement("    for j in 0 .. 3 carry a = 1 gives\n"), 5);
  syntax_error(with_statement("    for j in 0 .. 3 carry a = 1 gives b\n      let c = a\n"), 5);
  syntax_error(with_statement("    next 1\n"), 5);
  syntax_error(with_statement("    else\n"), 5);
  syntax_error(with_statement("    let v = 1\n    let v = 2\n"), 6);
  syntax_error(with_statement("    if true\n      let v = 1\n    let w = v\n"), 7);
}

TEST(Text, DepthIsLimited) {
  const auto repeat = [](const std::string& s, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += s;
    return all;
  };
  syntax_error(with_statement("    let v = " + repeat("(", 100000) + "\n"), 5);
  syntax_error(with_statement("    let v = " + repeat("neg(", 100000) + "\n"), 5);
  syntax_error(with_statement("    let v = " + repeat("1 + (", 100000) + "\n"), 5);
  syntax_error(with_statement("    let v = 1" + repeat(" + 1", 100000) + "\n"), 5);
  EXPECT_NO_THROW(print(parse(with_statement("    let v = 1" + repeat(" + 1", 900) + "\n"))));
  std::string blocks;
  for (int i = 2; i < 1000; ++i) blocks += std::string(2 * i, ' ') + "if true\n";
  syntax_error(with_statement(blocks), 204);
}

TEST(Text, NoBytesCrashTheParser) {
  const std::string text = legal(row_maximum);
  std::mt19937 random(7);
  int accepted = 0;
  for (int n = 0; n < 5000; ++n) {
    std::string broken = text;
    for (unsigned edits = 1 + random() % 3; edits; --edits) {
      const std::size_t at = random() % broken.size();
      switch (random() % 4) {
        case 0:
          broken[at] = static_cast<char>(random());
          break;
        case 1:
          broken.erase(at, 1 + random() % 8);
          break;
        case 2:
          broken.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
        default:
          broken.resize(at + 1);
      }
    }
    try {
      const std::string once = print(parse(broken));
      EXPECT_EQ(print(parse(once)), once);
      ++accepted;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::syntax);
      EXPECT_GT(e.where.line, 0);
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace cosmati::kernel
