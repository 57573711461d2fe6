// Lanes that go apart: each race between them is reported with both lanes, and with the fences that are added there is none.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/fences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <cosmati/error.h>

#include "kernel/launch.h"

namespace cosmati::kernel {
namespace {

// x and y (f32, 256 elements), z, whose memory is that of x, and s (worker scratch of as many), under 64 lanes.
std::string with_body(const std::string& body) {
  return "kernel k\n  buffer x: f32 read = argument(0)\n  buffer y: f32 write = argument(1)\n"
         "  buffer z: f32 write = argument(2) aliased\n  buffer s: f32 read_write = worker_scratch[256]\n"
         "  phase p groups 1 lanes 64 apart\n" +
         body;
}

std::string fault(const Kernel& k) {
  std::vector<float> x(256, 1), y(256), s(512);
  const auto memory = [](std::vector<float>& v) { return Memory{v.data(), 0, static_cast<std::int64_t>(v.size())}; };
  try {
    simulate(k)->run({{memory(x), memory(y), memory(x), memory(s)}, {}});
  } catch (const InternalError& e) {
    return e.what();
  }
  return "none";
}

int fences_of(const std::string& text) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find("fence\n", at)) != text.npos; ++at) ++count;
  return count;
}

// The race is there, and as many fences end it.
void expect_mended(const std::string& body, const std::string& race, int fences) {
  Kernel k = parse(with_body(body));
  const std::string found = fault(k);
  EXPECT_NE(found.find(race), std::string::npos) << found;
  EXPECT_NE(found.find("with no fence between: a race"), std::string::npos) << found;
  add_fences(k, {{0, 2}});
  verify(k, "fences");
  EXPECT_EQ(fault(k), "none") << print(k);
  EXPECT_EQ(fences_of(print(k)), fences) << print(k);
}

TEST(Fences, StandBetweenWritesAndReadsOfAnother) {
  expect_mended("    s[lane] = 1f32\n    let v = s[63 - lane]\n    y[lane] = v\n",
                "scratch s[63] is read by lane 0 and written by lane 63", 1);
}

TEST(Fences, StandBeforeWhatAllReadIsWrittenAgain) {
  expect_mended(
      "    for i in 0 .. 3\n      s[lane] = f32(i)\n      fence\n      let v = s[63 - lane]\n      y[i * 64 + lane] = v\n",
      "scratch s[0] is written by lane 0 and read by lane 63", 2);
}

TEST(Fences, StandBetweenOneLaneAndAll) {
  expect_mended("    s[lane] = 2f32 if lane == 0\n    y[lane] = s[0]\n",
                "scratch s[0] is read by several lanes and written by lane 0", 1);
}

TEST(Fences, StandBetweenArgumentsOfOneMemory) {
  expect_mended("    let v = x[63 - lane]\n    z[lane] = v\n", "argument z[0] is written by lane 0 and read by lane 63", 1);
}

TEST(Fences, StandInsideAStatementThatReadsWhatItWrites) {
  expect_mended("    s[lane] = 1f32\n    fence\n    s[lane] = s[63 - lane]\n", "scratch s[", 2);
}

TEST(Fences, AreNotNeededWhereLanesTouchTheirOwn) {
  for (const char* body :
       {"    s[lane] = 1f32\n    let v = s[lane]\n    y[lane] = v\n",
        "    for i in 0 .. 4\n      s[i * 64 + lane] = 1f32\n    for i in 0 .. 4\n      let v = s[i * 64 + lane]\n"
        "      y[i * 64 + lane] = v\n",
        "    for i in 0 .. 4\n      let v = x[lane + 64 * i]\n      z[64 * i + lane] = v\n"}) {
    std::string text = with_body(body);
    for (std::size_t i = text.find("for i"), n = 0; (i = text.find("for i", i)) != text.npos; ++i, ++n)
      if (n > 0) text.replace(i, 5, "for j");  // names are unique
    if (const std::size_t second = text.find("for j"); second != text.npos)
      for (std::size_t at = second; (at = text.find("i * 64", at)) != text.npos;) text.replace(at, 1, "j");
    Kernel k = parse(text);
    add_fences(k, {{0, 2}});
    EXPECT_EQ(fences_of(print(k)), 0) << print(k);
    EXPECT_EQ(fault(k), "none") << print(k);
  }
}

TEST(Fences, AreAFaultOfNoOneWhereLanesGoTogether) {
  std::string text = with_body("    s[lane] = 1f32\n    let v = s[63 - lane]\n    y[lane] = v\n");
  for (const auto& [from, to] : {std::pair{" lanes 64 apart", " lanes 32"}, std::pair{"63", "31"}})
    text.replace(text.find(from), std::string(from).size(), to);
  EXPECT_EQ(fault(parse(text)), "none");
}

TEST(Apart, IsPartOfTheText) {
  const std::string text =
      "kernel k\n  param n: i64 = extent(0)\n  buffer x: f32 read = argument(0) aliased\n  buffer y: f32 write = argument(1)\n"
      "  requires 64 <= n and n <= 96\n  phase p groups n lanes 96 apart packed 3\n    let v = swap(x[lane], 16)\n    fence\n"
      "    y[lane] = v\n";
  EXPECT_EQ(print(parse(text)), text);
  const Kernel k = parse(text);
  EXPECT_TRUE(meets_conditions(k, {64}) && meets_conditions(k, {96}));
  EXPECT_FALSE(meets_conditions(k, {63}) || meets_conditions(k, {97}));
  for (const auto& [from, to, law] : {std::tuple{"lanes 96", "lanes 80", "K17"}, std::tuple{", 16)", ", 32)", "K17"},
                                      std::tuple{" apart", "", "K19"}, std::tuple{"64 <= n and n <= 96", "n + 96", "K14"}}) {
    std::string broken = text;
    broken.replace(broken.find(from), std::string(from).size(), to);
    try {
      parse(broken);
      ADD_FAILURE() << broken;
    } catch (const Error& e) {
      EXPECT_NE(e.message.find(law), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace cosmati::kernel
