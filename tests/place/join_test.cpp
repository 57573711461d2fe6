// Elementwise operations against enumeration, and the table of what passes parts against the operations' own reference values.
// SPDX-License-Identifier: Apache-2.0
#include "place/join.h"

#include <gtest/gtest.h>

#include <cmath>

#include "place/enumerate.h"
#include "place/reducers.h"

namespace cosmati::place {
namespace {

using ir::AxisId;
using ops::Op;
using ops::Scalar;

// Whether op(merge(a, b)) is merge(op(a), op(b)) for these parts and same values: exactly, or for floats as real numbers.
bool law_holds(Op fold, Op op, const std::string& arguments, DType type, std::mt19937& random) {
  const auto draw = [&]() -> Scalar {
    if (type == DType::bool_) return {0, static_cast<std::int64_t>(random() % 2)};
    if (is_float(type))
      return {std::ldexp(static_cast<double>(random()) / 4294967296.0 - 0.5, static_cast<int>(random() % 6)), 0};
    return {0, ops::wrap_to(type, static_cast<std::int64_t>(random()) << (random() % 2 ? 0 : 8))};
  };
  for (int trial = 0; trial < 200; ++trial) {
    Scalar a[3], b[3], merged[3];
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      a[k] = b[k] = merged[k] = draw();
      if (arguments[k] == 's') continue;
      b[k] = draw();
      const Scalar both[] = {a[k], b[k]};
      merged[k] = ops::reference(fold, type, type, both);
    }
    const Scalar parts[] = {ops::reference(op, type, type, a), ops::reference(op, type, type, b)};
    const Scalar late = ops::reference(fold, type, type, parts), early = ops::reference(op, type, type, merged);
    if (!is_float(type) ? late.i != early.i : !(std::fabs(late.f - early.f) <= 1e-9 * (1 + std::fabs(early.f)))) return false;
  }
  return true;
}

// Every reducer's fold, every operation that does arithmetic, picks or joins, every way to give it a part: the table says yes
// exactly where the law holds.
TEST(Passes, TheTableIsWhatTheLawSays) {
  std::mt19937 random(7);
  const Op folds[] = {Op::add, Op::mul, Op::minimum, Op::maximum, Op::logical_and, Op::logical_or};
  const Op operations[] = {Op::neg, Op::abs,     Op::add,     Op::sub,         Op::mul,        Op::div,
                           Op::fma, Op::minimum, Op::maximum, Op::logical_and, Op::logical_or, Op::logical_not};
  int yes = 0;
  for (const Op fold : folds)
    for (const Op op : operations) {
      const ops::OpInfo &of_fold = info(fold), &of_op = info(op);
      for (int bits = 0; bits < 1 << of_op.arity; ++bits) {
        std::string arguments;
        for (int k = 0; k < of_op.arity; ++k) arguments += bits >> k & 1 ? 'p' : 's';
        if (arguments.find('p') == std::string::npos) continue;
        for (const DType type : {DType::f64_, DType::i32_, DType::bool_}) {
          const auto takes = [&](const ops::OpInfo& row) {
            return (row.typing == ops::Typing::logical) == (type == DType::bool_) &&
                   (is_float(type) ? row.on_floats : row.on_integers);
          };
          if (!takes(of_fold) || !takes(of_op)) continue;
          const bool said = passes(fold, op, arguments, type);
          EXPECT_EQ(said, law_holds(fold, op, arguments, type, random))
              << of_fold.name << " " << of_op.name << "(" << arguments << ") " << info(type).name;
          yes += said;
        }
      }
    }
  EXPECT_GT(yes, 40);
}

TEST(Passes, OnlyReducersThatShowTheirState) {
  const ir::Program p = test::reducers();
  EXPECT_TRUE(passes(p, test::sum, Op::neg, "p", DType::f32_));
  EXPECT_FALSE(passes(p, test::sum, Op::exp, "p", DType::f32_));
  EXPECT_FALSE(passes(p, test::mean, Op::neg, "p", DType::f32_));  // what a user sees is the quotient
  EXPECT_FALSE(passes(p, test::pairs, Op::where, "spp", DType::f32_));
  EXPECT_TRUE(passes(p, test::sum, Op::where, "spp", DType::f32_));
  EXPECT_FALSE(passes(p, test::sum, Op::where, "pss", DType::f32_));
  EXPECT_TRUE(settles_after(p, test::sum, {{Op::mul, "ps", DType::f32_}, {Op::add, "pp", DType::f32_}}));
  const Verdict late = settles_after(p, test::max, {{Op::maximum, "pp", DType::f32_}, {Op::exp, "p", DType::f32_}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.refused().witness, "exp(p)");
}

// The joined value is where every operand's element is with the worker, and it holds every combination once a holder.
TEST(Join, IsFreeExactlyWhereOperandsAgree) {
  ir::Program program = test::reducers();
  program.axes = {{"row"}, {"col"}};
  std::mt19937 random(8);
  int joined = 0, refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    test::Shape shape;
    shape.axes = 2;
    shape.counts = hardware(1, 1, random() % 2 ? 2 : 4, 4);
    shape.registers = {1, 2, 4};
    shape.steps = {1};
    const Placement p = test::random_placement(random, shape);
    const Extents extents = test::covered(p);
    // A vector over axis 1: as the matrix has it, or somewhere else.
    Placement v = random() % 2 ? p : test::random_other(random, shape, extents);
    v.axes = {*v.find(AxisId{1})};
    v.rest.clear();
    Result<Placement> whole = complete(v, shape.counts);
    ASSERT_TRUE(whole);
    const Result<Joined> j = join(program, Op::add, DType::f32_, {p, *whole}, extents);
    bool agree = true;
    test::each_worker(shape.counts, [&](const Counts& worker) {
      const auto of_v = test::held_by(*whole, worker, extents);
      std::set<std::int64_t> has;
      for (const auto& at : of_v) has.insert(at[1]);
      for (const auto& at : test::held_by(p, worker, extents)) agree = agree && has.count(at[1]);
    });
    if (j) {
      ASSERT_TRUE(agree) << print(p, program) << " and " << print(*whole, program);
      ASSERT_EQ(j->result, normal_form(p));
      ASSERT_TRUE(ownership(j->result, shape.counts, extents));
      ++joined;
    } else {
      ASSERT_TRUE(j.refused().reason == Reason::indivisible || !agree) << print(j.refused());
      ++refused;
    }
  }
  EXPECT_GT(joined, 500);
  EXPECT_GT(refused, 500);
}

TEST(Join, PartsPassOrAreSettledFirst) {
  const ir::Program program = test::reducers();
  const Counts counts = hardware(1, 1, 1, 8);
  const AxisMap row{AxisId{0}, {digit(Res::lane, 1, 2)}};
  const Placement part{{row}, {free_segment(Res::lane, 2, 4, Held::part, test::sum)}};
  const Placement same{{row}, {free_segment(Res::lane, 2, 4)}};
  const Placement most{{row}, {free_segment(Res::lane, 2, 4, Held::part, test::max)}};
  const Placement first{{row}, {free_segment(Res::lane, 2, 4, Held::first)}};
  const Placement split{{row, {AxisId{1}, {digit(Res::lane, 2, 4)}}}, {}};
  const Extents extents{2, 4};
  const auto answer = [&](Op op, const std::vector<Placement>& operands, DType type = DType::f32_) {
    const Result<Joined> j = join(program, op, type, operands, extents);
    if (!j) return std::string(name(j.refused().reason));
    EXPECT_TRUE(ownership(j->result, counts, extents));
    return std::string(j->result == normal_form(part) ? "part"
                       : j->result == same            ? "same"
                       : j->result == first           ? "first"
                                                      : "other");
  };
  EXPECT_EQ(answer(Op::neg, {part}), "part");
  EXPECT_EQ(answer(Op::mul, {part, same}), "part");
  EXPECT_EQ(answer(Op::mul, {same, part}), "part");
  EXPECT_EQ(answer(Op::add, {part, part}), "part");
  EXPECT_EQ(answer(Op::add, {part, same}), "does_not_pass");
  EXPECT_EQ(answer(Op::mul, {part, part}), "does_not_pass");
  EXPECT_EQ(answer(Op::exp, {part}), "does_not_pass");
  EXPECT_EQ(answer(Op::add, {part, most}), "unsettled");
  EXPECT_EQ(answer(Op::add, {most, same}), "other");  // max passes a sum with a same value
  EXPECT_EQ(answer(Op::add, {most, same}, DType::i32_), "does_not_pass");
  EXPECT_EQ(answer(Op::mul, {part, split}), "unsettled");
  EXPECT_EQ(answer(Op::mul, {first, split}), "not_first");
  EXPECT_EQ(answer(Op::mul, {first, same}), "first");
  EXPECT_EQ(answer(Op::mul, {first, part}), "unsettled");
  EXPECT_EQ(answer(Op::mul, {same, same}), "same");
}

}  // namespace
}  // namespace cosmati::place
