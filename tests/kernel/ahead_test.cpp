// What is fetched ahead, where, and for which group or trip.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cosmati::kernel {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string fetched(const std::string& body, int lanes = 16) {
  Kernel k = parse(
      "kernel k\n  param n: i64 = extent(0)\n  param m: i64 = extent(1)\n  param s: i64 = stride(0, 0)\n"
      "  buffer x: f32 read = argument(0)\n  buffer y: f32 write = argument(1)\n"
      "  buffer e: f32 read_write = worker_scratch[m]\n  phase p groups n lanes " +
      std::to_string(lanes) + "\n" + body);
  fetch_ahead(k);
  verify(k, "fetch_ahead");
  return print(k);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

const std::string read =
    "    for i in 0 .. m carry a = 0f32 gives r\n      let c = i * 16 + lane\n      let v = x[group * s + c]\n"
    "      let t = a + v\n      next t\n";
const std::string compute =
    "    let total = m\n    for j in 0 .. total\n      let d = j * 16 + lane\n      let u = x[group * s + d]\n"
    "      e[d] = exp(u - r)\n";
const std::string write = "    for l in 0 .. m\n      let f = l * 16 + lane\n      y[group * s + f] = e[f] * 2f32\n";

TEST(Ahead, TheLoopThatComputesFetchesTheNextGroupsInputAndThisOnesOutput) {
  const std::string text = fetched(read + compute + write);
  const std::size_t loop = text.find("for j in"), in = text.find("prefetch x[(group + 1) * s + 16 * j]"),
                    out = text.find("prefetch_write y[group * s + 16 * j]"), end = text.find("for l in");
  EXPECT_LT(loop, in) << text;
  EXPECT_LT(in, out) << text;
  EXPECT_LT(out, end) << text;
  EXPECT_EQ(count(text, "prefetch"), 2u) << text;
}

TEST(Ahead, ALoopThatStoresResultsLeavesItToOneThatDoesNot) {
  const std::string sums =
      "    for j in 0 .. m carry b = 0f32 gives q\n      let w = x[group * s + j * 16 + lane]\n      let d = w - r\n"
      "      let u = b + d\n      next u\n";
  const std::string results = "    for l in 0 .. m\n      y[group * s + l * 16 + lane] = exp(x[group * s + l * 16 + lane] - q)\n";
  const std::string between = fetched(read + sums + results);
  EXPECT_THAT(between, HasSubstr("prefetch x[(group + 1) * s + 16 * j]")) << between;
  EXPECT_THAT(between, HasSubstr("prefetch_write y[group * s + 16 * j]")) << between;
  EXPECT_EQ(count(between, "prefetch"), 2u) << between;
  std::string none = results;
  none.replace(none.find("- q"), 3, "- r");
  EXPECT_THAT(fetched(read + none), HasSubstr("prefetch x[(group + 1) * s + 16 * l]"));
}

TEST(Ahead, ALineIsFetchedOnce) {
  const std::string text = fetched(
      "    for i in 0 .. m carry a = 0f32 gives r\n      let v = x[group * s + i * 16 + lane]\n      let w = x[group * s + i * "
      "16 + 8 + lane]\n"
      "      let t = a + v + w\n      next t\n    for j in 0 .. m\n      y[group * s + j * 16 + lane] = exp(r)\n",
      8);
  EXPECT_EQ(count(text, "prefetch x"), 1u) << text;
  const std::string wide = fetched(
      "    for i in 0 .. m carry a = 0f32 gives r\n      let v = x[group * s + i * 32 + lane]\n      let t = a + v\n      next "
      "t\n"
      "    for j in 0 .. m\n      y[group * s + j * 32 + lane] = exp(r)\n",
      32);
  EXPECT_EQ(count(wide, "prefetch x"), 2u) << wide;
}

TEST(Ahead, NothingWhereOneLoopDoesAllOrPlacesAreNotKnown) {
  EXPECT_THAT(fetched(read), Not(HasSubstr("prefetch"))) << "the loads of one loop overlap with its arithmetic";
  EXPECT_THAT(
      fetched("    for i in 0 .. m carry a = 0f32 gives r\n      let v = x[i * 16 + lane]\n      let t = a + v\n      next t\n" +
              compute),
      Not(HasSubstr("prefetch x[16 * j]")))
      << "every group reads the same";
  const std::string gather =
      "    for i in 0 .. m carry a = 0f32 gives r\n      let v = x[group * s + i * 16 + lane]\n      let at = i64(v)\n      let "
      "w = x[group + at]\n"
      "      let t = a + w\n      next t\n    for j in 0 .. m\n      y[group * s + j * 16 + lane] = exp(r)\n";
  EXPECT_EQ(count(fetched(gather), "prefetch x"), 1u) << "where a gather goes is known when it goes";
}

TEST(Ahead, StoresPastTheCachesAreNotFetched) {
  std::string past = write;
  past.replace(past.find("y["), 2, "past_caches y[");
  const std::string text = fetched(read + compute + past);
  EXPECT_THAT(text, HasSubstr("past_caches y[")) << "it is printed and read back";
  EXPECT_EQ(count(text, "prefetch_write"), 0u) << text;
}

TEST(Ahead, LoopsInsideAnotherLoopFetchForThePlaceOfThatLoop) {
  const auto inner = [](const std::string& body) {
    std::string text;
    for (std::size_t at = 0; at < body.size(); at = body.find('\n', at) + 1)
      text += "  " + body.substr(at, body.find('\n', at) + 1 - at);
    return text;
  };
  std::string body = read + compute + write;
  for (std::size_t at = body.find("group * s"); at != body.npos; at = body.find("group * s", at + 20))
    body.replace(at, 9, "(group * 4 + o) * s");
  const std::string text = fetched("    for o in 0 .. 4\n" + inner(body));
  EXPECT_THAT(text, HasSubstr("prefetch x[4 * group * s + (o + 1) * s + 16 * j]")) << text;
}

}  // namespace
}  // namespace cosmati::kernel
