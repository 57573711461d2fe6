// The narrow float formats against brute force: every code, every midpoint between neighbours, both sides of every midpoint.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/ops.h"

namespace cosmati::ops {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

double value_of(DType t, std::uint32_t code) {
  if (byte_size(t) == 1) {
    const auto byte = static_cast<std::uint8_t>(code);
    return load(t, &byte).f;
  }
  const auto half = static_cast<std::uint16_t>(code);
  return load(t, &half).f;
}
std::uint32_t code_of(DType t, double value) {
  if (byte_size(t) == 1) {
    std::uint8_t byte;
    store(t, &byte, {value, 0});
    return byte;
  }
  std::uint16_t half;
  store(t, &half, {value, 0});
  return half;
}

class Narrow : public testing::TestWithParam<DType> {
 protected:
  DType t = GetParam();
  std::uint32_t sign = 1u << (8 * byte_size(t) - 1);
};

TEST_P(Narrow, every_code_survives_memory) {
  for (std::uint32_t code = 0; code < 2 * sign; ++code) {
    const double value = value_of(t, code);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(value_of(t, code_of(t, value))));
      EXPECT_TRUE(std::isnan(round_to(t, value)));
      continue;
    }
    ASSERT_EQ(code_of(t, value), code);
    ASSERT_EQ(round_to(t, value), value);
    ASSERT_EQ(std::signbit(round_to(t, value)), (code & sign) != 0);
  }
}

TEST_P(Narrow, rounds_to_nearest_even_between_all_neighbours) {
  // Positive finite values are in the order of their codes.
  std::uint32_t last = 0;
  for (std::uint32_t code = 0; code < sign && std::isfinite(value_of(t, code)); ++code) last = code;
  for (std::uint32_t code = 0; code < last; ++code) {
    const double lo = value_of(t, code), hi = value_of(t, code + 1), middle = (lo + hi) / 2;
    ASSERT_LT(lo, hi);
    const double even = code % 2 == 0 ? lo : hi;
    ASSERT_EQ(round_to(t, middle), even) << code;
    ASSERT_EQ(round_to(t, -middle), -even) << code;
    ASSERT_EQ(round_to(t, std::nextafter(middle, 0)), lo) << code;
    ASSERT_EQ(round_to(t, std::nextafter(middle, inf)), hi) << code;
  }
}

TEST_P(Narrow, overflow) {
  std::uint32_t last = 0;
  for (std::uint32_t code = 0; code < sign && std::isfinite(value_of(t, code)); ++code) last = code;
  const double largest = value_of(t, last), step = largest - value_of(t, last - 1);
  const bool tie_stays = last % 2 == 0;
  auto overflown = [&](double x) { return t == DType::f8e4m3_ ? std::isnan(x) : std::isinf(x); };
  EXPECT_EQ(round_to(t, std::nextafter(largest + step / 2, 0)), largest);
  EXPECT_EQ(overflown(round_to(t, largest + step / 2)), !tie_stays);
  EXPECT_TRUE(overflown(round_to(t, std::nextafter(largest + step / 2, inf))));
  EXPECT_TRUE(overflown(round_to(t, 1e300)));
  EXPECT_TRUE(overflown(round_to(t, -inf)));
  EXPECT_TRUE(std::signbit(round_to(t, -inf)));
}
INSTANTIATE_TEST_SUITE_P(formats, Narrow, testing::Values(DType::f16_, DType::bf16_, DType::f8e4m3_, DType::f8e5m2_),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(conversions, known_values) {
  EXPECT_EQ(value_of(DType::f8e4m3_, 0x7e), 448);
  EXPECT_TRUE(std::isnan(value_of(DType::f8e4m3_, 0x7f)));
  EXPECT_TRUE(std::isnan(value_of(DType::f8e4m3_, 0xff)));
  EXPECT_EQ(value_of(DType::f8e4m3_, 0x01), std::ldexp(1, -9));
  EXPECT_EQ(value_of(DType::f8e5m2_, 0x7b), 57344);
  EXPECT_EQ(value_of(DType::f8e5m2_, 0x7c), inf);
  EXPECT_EQ(value_of(DType::f16_, 0x7bff), 65504);
  EXPECT_EQ(value_of(DType::f16_, 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(value_of(DType::bf16_, 0x3f80), 1);
  EXPECT_EQ(round_to(DType::f8e4m3_, 464), 448);
  EXPECT_TRUE(std::isnan(round_to(DType::f8e4m3_, 465)));
}

TEST(conversions, a_double_rounds_once) {
  // Through float this would first round up to the tie and then to even, away from the nearest.
  const double just_above = 1 + std::ldexp(1, -11) + std::ldexp(1, -40);
  EXPECT_EQ(round_to(DType::f16_, just_above), 1 + std::ldexp(1, -10));
  EXPECT_EQ(round_to(DType::bf16_, 1 + std::ldexp(1, -8) + std::ldexp(1, -40)), 1 + std::ldexp(1, -7));
}

TEST(conversions, integers_to_floats_round_once) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100000; ++k) {
    const auto i = static_cast<std::int64_t>(random() >> (random() % 64));
    ASSERT_EQ(cast(DType::i64_, DType::f32_, {0, i}).f, static_cast<double>(static_cast<float>(i))) << i;
    ASSERT_EQ(cast(DType::i64_, DType::f64_, {0, i}).f, static_cast<double>(i)) << i;
  }
  const std::int64_t above_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  EXPECT_EQ(cast(DType::i64_, DType::bf16_, {0, above_tie}).f, std::ldexp(1 + std::ldexp(1, -7), 62));
}

TEST(conversions, floats_to_integers_truncate_and_saturate) {
  auto to = [](DType t, double x) { return cast(DType::f64_, t, {x, 0}).i; };
  EXPECT_EQ(to(DType::i8_, -1.9), -1);
  EXPECT_EQ(to(DType::i8_, 200), 127);
  EXPECT_EQ(to(DType::i8_, -inf), -128);
  EXPECT_EQ(to(DType::u8_, -3), 0);
  EXPECT_EQ(to(DType::u32_, 1e20), 4294967295);
  EXPECT_EQ(to(DType::i64_, 1e30), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to(DType::i64_, -1e30), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to(DType::i32_, std::nan("")), 0);
  EXPECT_EQ(to(DType::bool_, 0.25), 1);
  EXPECT_EQ(to(DType::bool_, -0.0), 0);
}

TEST(conversions, integers_wrap) {
  EXPECT_EQ(cast(DType::i64_, DType::i8_, {0, 200}).i, -56);
  EXPECT_EQ(cast(DType::i32_, DType::u32_, {0, -1}).i, 4294967295);
  EXPECT_EQ(cast(DType::i32_, DType::u8_, {0, 257}).i, 1);
  EXPECT_EQ(cast(DType::i32_, DType::bool_, {0, 256}).i, 1);
}

TEST(conversions, bits) {
  EXPECT_EQ(reinterpret(DType::f32_, DType::u32_, {1.0, 0}).i, 0x3f800000);
  EXPECT_EQ(reinterpret(DType::f32_, DType::u32_, {-0.0, 0}).i, 0x80000000);
  EXPECT_EQ(reinterpret(DType::u32_, DType::f32_, {0, 0x7f800000}).f, inf);
}

}  // namespace
}  // namespace cosmati::ops
