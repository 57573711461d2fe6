// The meaning of operations at their edges.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ops/ops.h"

namespace cosmati::ops {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
constexpr std::int64_t int_min = std::numeric_limits<std::int64_t>::min();

double f32(Op op, double a, double b = 0, double c = 0) {
  const Scalar args[3] = {{a, 0}, {b, 0}, {c, 0}};
  return reference(op, DType::f32_, DType::f32_, args).f;
}
std::int64_t i(Op op, DType t, std::int64_t a, std::int64_t b = 0, std::int64_t c = 0) {
  const Scalar args[3] = {{0, a}, {0, b}, {0, c}};
  return reference(op, t, info(op).typing == Typing::comparison ? DType::bool_ : t, args).i;
}
bool holds(Op op, double a, double b = 0) {
  const Scalar args[2] = {{a, 0}, {b, 0}};
  return reference(op, DType::f32_, DType::bool_, args).i != 0;
}

TEST(reference, rows_are_found_by_name) {
  for (int k = 0; k < op_count; ++k) {
    const Op op = static_cast<Op>(k);
    EXPECT_EQ(op_from_name(name(op)), op);
    EXPECT_GE(info(op).arity, 1);
    EXPECT_TRUE(info(op).on_floats || info(op).on_integers) << name(op);
  }
  EXPECT_EQ(op_from_name("none"), std::nullopt);
  EXPECT_FALSE(info(Op::div).on_integers);
  EXPECT_FALSE(info(Op::bit_and).on_floats);
}

TEST(reference, minimum_and_maximum_propagate_nan_and_order_zeros) {
  EXPECT_TRUE(std::isnan(f32(Op::minimum, nan, 1)));
  EXPECT_TRUE(std::isnan(f32(Op::maximum, 1, nan)));
  EXPECT_EQ(f32(Op::minimum_num, nan, 1), 1);
  EXPECT_EQ(f32(Op::maximum_num, 1, nan), 1);
  EXPECT_TRUE(std::isnan(f32(Op::maximum_num, nan, nan)));
  for (Op op : {Op::minimum, Op::minimum_num}) {
    EXPECT_TRUE(std::signbit(f32(op, 0.0, -0.0)));
    EXPECT_TRUE(std::signbit(f32(op, -0.0, 0.0)));
  }
  for (Op op : {Op::maximum, Op::maximum_num}) {
    EXPECT_FALSE(std::signbit(f32(op, 0.0, -0.0)));
    EXPECT_FALSE(std::signbit(f32(op, -0.0, 0.0)));
  }
  EXPECT_EQ(f32(Op::clamp, 5, -1, 1), 1);
  EXPECT_TRUE(std::isnan(f32(Op::clamp, nan, -1, 1)));
}

TEST(reference, exp_diff_is_neutral_at_minus_infinity) {
  EXPECT_EQ(f32(Op::exp_diff, -inf, -inf), 0);
  EXPECT_EQ(f32(Op::exp_diff, -inf, 3), 0);
  EXPECT_EQ(f32(Op::exp_diff, 2, 2), 1);
  EXPECT_TRUE(std::isnan(f32(Op::exp_diff, inf, inf)));
}

TEST(reference, floats_round_once_in_their_type) {
  EXPECT_EQ(f32(Op::add, 1, std::ldexp(1, -24)), 1);
  EXPECT_EQ(f32(Op::div, 1, 3), static_cast<double>(1.0f / 3.0f));
  const float a = 1 + std::ldexp(1.0f, -12);
  EXPECT_EQ(f32(Op::fma, a, a, -1), static_cast<double>(std::fma(a, a, -1.0f)));
  EXPECT_NE(f32(Op::fma, a, a, -1), f32(Op::sub, f32(Op::mul, a, a), 1));
  EXPECT_GT(f32(Op::mul, std::ldexp(1, -100), std::ldexp(1, -40)), 0);  // subnormals are kept
}

TEST(reference, rounding_functions) {
  EXPECT_EQ(f32(Op::round, 2.5), 2);
  EXPECT_EQ(f32(Op::round, 3.5), 4);
  EXPECT_EQ(f32(Op::floor, -0.5), -1);
  EXPECT_TRUE(std::signbit(f32(Op::ceil, -0.5)));
  EXPECT_EQ(f32(Op::trunc, -1.9), -1);
  EXPECT_EQ(f32(Op::sign, -3), -1);
  EXPECT_TRUE(std::signbit(f32(Op::sign, -0.0)));
  EXPECT_TRUE(std::isnan(f32(Op::sign, nan)));
}

TEST(reference, comparisons_with_nan) {
  EXPECT_FALSE(holds(Op::eq, nan, nan));
  EXPECT_TRUE(holds(Op::ne, nan, nan));
  EXPECT_FALSE(holds(Op::lt, nan, 1));
  EXPECT_FALSE(holds(Op::ge, 1, nan));
  EXPECT_TRUE(holds(Op::eq, 0.0, -0.0));
  EXPECT_TRUE(holds(Op::is_nan, nan));
  EXPECT_TRUE(holds(Op::is_inf, -inf));
}

TEST(reference, integer_division_rounds_down_and_is_total) {
  const std::int64_t values[] = {int_min, int_min + 1, -7, -2, -1, 0, 1, 2, 7, -(int_min + 1)};
  for (std::int64_t a : values)
    for (std::int64_t b : values) {
      const std::int64_t q = i(Op::floordiv, DType::i64_, a, b), r = i(Op::mod, DType::i64_, a, b);
      if (b == 0) {
        EXPECT_EQ(q, 0);
        EXPECT_EQ(r, 0);
        continue;
      }
      EXPECT_EQ(static_cast<std::uint64_t>(q) * static_cast<std::uint64_t>(b) + static_cast<std::uint64_t>(r),
                static_cast<std::uint64_t>(a));
      EXPECT_TRUE(r == 0 || (r < 0) == (b < 0)) << a << " % " << b;
      EXPECT_TRUE(b > 0 ? r < b : r > b || b == int_min);
    }
  EXPECT_EQ(i(Op::floordiv, DType::i32_, std::numeric_limits<std::int32_t>::min(), -1), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(i(Op::floordiv, DType::i64_, int_min, -1), int_min);
}

TEST(reference, integers_wrap_to_their_type) {
  EXPECT_EQ(i(Op::add, DType::i32_, 2147483647, 1), -2147483648LL);
  EXPECT_EQ(i(Op::sub, DType::u32_, 0, 1), 4294967295LL);
  EXPECT_EQ(i(Op::mul, DType::i64_, int_min, -1), int_min);
  EXPECT_EQ(i(Op::neg, DType::i64_, int_min), int_min);
  EXPECT_EQ(i(Op::abs, DType::i32_, -2147483648LL), -2147483648LL);
}

TEST(reference, shifts_count_modulo_the_width) {
  EXPECT_EQ(i(Op::shift_left, DType::i32_, 1, 33), 2);
  EXPECT_EQ(i(Op::shift_left, DType::i32_, 1, 31), -2147483648LL);
  EXPECT_EQ(i(Op::shift_right, DType::i32_, -8, 1), -4);
  EXPECT_EQ(i(Op::shift_right, DType::u32_, 0x80000000LL, 31), 1);
  EXPECT_EQ(i(Op::shift_left, DType::i64_, 1, 65), 2);
  EXPECT_EQ(i(Op::shift_left, DType::i32_, 1, -1), -2147483648LL);
}

TEST(reference, where_selects_by_an_integer_condition) {
  const Scalar yes[3] = {{0, 1}, {2.5, 0}, {nan, 0}}, no[3] = {{0, 0}, {nan, 0}, {-0.0, 0}};
  EXPECT_EQ(reference(Op::where, DType::f32_, DType::f32_, yes).f, 2.5);
  EXPECT_TRUE(std::signbit(reference(Op::where, DType::f32_, DType::f32_, no).f));
  const double wide[3] = {1, 2.5, 0.1};
  EXPECT_EQ(reference_wide(Op::where, wide), 2.5);
}

TEST(reference, wide_does_not_round_to_float) {
  const double args[2] = {1, 1e-12};
  EXPECT_EQ(reference_wide(Op::add, args), 1 + 1e-12);
  const double shift[2] = {3, 2};
  EXPECT_EQ(reference_wide(Op::shift_left, shift), 12);
}

}  // namespace
}  // namespace cosmati::ops
