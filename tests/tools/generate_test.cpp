// Generated arrays: the same bits everywhere, the distributions they promise, contracts kept.
// SPDX-License-Identifier: Apache-2.0
#include "tools/generate.h"

#include <gmock/gmock.h>

#include <cosmati/error.h>

#include <cmath>
#include <set>

#include "tools/npy.h"

namespace cosmati::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array made(DType t, std::vector<std::int64_t> shape, Generator g, std::uint64_t seed = 0, const std::string& name = "x",
           std::optional<ContractBounds> contract = {}) {
  Array a = make_array(t, shape, name);
  generate(a.view, g, seed, name, contract);
  return a;
}

template <class T>
std::vector<T> values(const Array& a) {
  const T* p = static_cast<const T*>(a.view.data);
  return {p, p + a.view.elements()};
}

TEST(Generate, BitsAreFixedForever) {
  EXPECT_THAT(values<double>(made(DType::f64_, {2}, Generator::uniform)),
              ElementsAre(0x1.5e505dc03405dp-1, 0x1.d7eb599215634p-3));
  EXPECT_THAT(values<float>(made(DType::f32_, {2}, Generator::normal)), ElementsAre(0x1.7d67cap-3f, 0x1.81c226p+0f));
}

TEST(Generate, SeedAndNameSeparateStreams) {
  const auto a = values<float>(made(DType::f32_, {8}, Generator::normal));
  EXPECT_EQ(a, values<float>(made(DType::f32_, {2, 4}, Generator::normal)));
  EXPECT_NE(a, values<float>(made(DType::f32_, {8}, Generator::normal, 1)));
  EXPECT_NE(a, values<float>(made(DType::f32_, {8}, Generator::normal, 0, "y")));
}

TEST(Generate, NormalHasTheMomentsOfANormal) {
  const auto v = values<double>(made(DType::f64_, {200000}, Generator::normal));
  double m1 = 0, m2 = 0, m4 = 0, lag = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    ASSERT_TRUE(std::isfinite(v[i]));
    m1 += v[i];
    m2 += v[i] * v[i];
    m4 += v[i] * v[i] * v[i] * v[i];
    if (i) lag += v[i] * v[i - 1];
  }
  const double n = static_cast<double>(v.size());
  EXPECT_NEAR(m1 / n, 0, 0.01);
  EXPECT_NEAR(m2 / n, 1, 0.02);
  EXPECT_NEAR(m4 / n, 3, 0.1);
  EXPECT_NEAR(lag / n, 0, 0.01);
}

TEST(Generate, UniformFloatsLieBetweenZeroAndOne) {
  double sum = 0;
  for (float v : values<float>(made(DType::f32_, {10000}, Generator::uniform))) {
    ASSERT_GE(v, 0);
    ASSERT_LE(v, 1);
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Generate, SimpleOnesAreExact) {
  EXPECT_THAT(values<std::int8_t>(made(DType::i8_, {3}, Generator::arange)), ElementsAre(0, 1, 2));
  EXPECT_THAT(values<float>(made(DType::f32_, {2, 2}, Generator::arange)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values<std::uint16_t>(made(DType::bf16_, {2}, Generator::ones)), ElementsAre(0x3f80, 0x3f80));
  EXPECT_THAT(values<std::uint8_t>(made(DType::bool_, {3}, Generator::arange)), ElementsAre(0, 1, 1));
  EXPECT_THAT(values<double>(made(DType::f64_, {2}, Generator::zeros)), ElementsAre(0, 0));
  EXPECT_EQ(values<std::int8_t>(made(DType::i8_, {200}, Generator::arange)).back(), static_cast<std::int8_t>(199));
}

TEST(Generate, IndexStaysInsideItsContract) {
  std::set<std::int32_t> seen;
  for (std::int32_t v :
       values<std::int32_t>(made(DType::i32_, {500}, Generator::index, 0, "x", ContractBounds{-2, 3, false, false})))
    seen.insert(v);
  EXPECT_THAT(seen, ElementsAre(-2, -1, 0, 1, 2));
}

TEST(Generate, IndexKeepsSortedAndDistinct) {
  const auto rows =
      values<std::int64_t>(made(DType::i64_, {4, 20}, Generator::index, 3, "x", ContractBounds{0, 100, true, false}));
  for (int r = 0; r < 4; ++r) EXPECT_TRUE(std::is_sorted(rows.begin() + r * 20, rows.begin() + r * 20 + 20));
  const auto all = values<std::int32_t>(made(DType::i32_, {50}, Generator::index, 3, "x", ContractBounds{0, 50, false, true}));
  EXPECT_EQ(std::set<std::int32_t>(all.begin(), all.end()).size(), 50u);
}

std::string refusal(DType t, Generator g, std::optional<ContractBounds> contract = {}) {
  try {
    made(t, {60}, g, 0, "x", contract);
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::bad_argument);
    return e.what();
  }
  return "accepted";
}

TEST(Generate, ImpossibleOnesAreRefused) {
  EXPECT_THAT(refusal(DType::i32_, Generator::normal), HasSubstr("floating"));
  EXPECT_THAT(refusal(DType::f32_, Generator::index), HasSubstr("integers"));
  EXPECT_THAT(refusal(DType::i32_, Generator::index), HasSubstr("contract"));
  EXPECT_THAT(refusal(DType::i32_, Generator::index, ContractBounds{0, std::nullopt, false, false}), HasSubstr("both bounds"));
  EXPECT_THAT(refusal(DType::i32_, Generator::index, ContractBounds{0, 0, false, false}), HasSubstr("empty"));
  EXPECT_THAT(refusal(DType::i32_, Generator::index, ContractBounds{0, 50, false, true}), HasSubstr("60 distinct"));
}

TEST(Generate, AnEmptyContractIsFineForNoElements) {
  EXPECT_EQ(made(DType::i32_, {0, 3}, Generator::index, 0, "x", ContractBounds{0, 0, false, false}).view.elements(), 0);
}

}  // namespace
}  // namespace cosmati::tools
