// The builder: what it folds is exact, what it must not fold stays, names are usable.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include <cosmati/error.h>

#include "kernel/kernel.h"

namespace cosmati::kernel {
namespace {

using ops::Op;

struct BuilderTest : testing::Test {
  Kernel k;
  Builder b{k};
  Block block;

  BuilderTest() {
    k.name = "k";
    k.params.push_back({Param::Source::extent, 0, 0, "n", DType::i64_});
    k.params.push_back({Param::Source::scalar, 0, 0, "flag", DType::bool_});
    k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::read_write, 0, {}, "x", DType::f32_});
    k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::read, 1, {}, "i", DType::i64_});
  }
  ExprId n() { return b.param(ParamId{0}); }
  ExprId flag() { return b.param(ParamId{1}); }
  ExprId one_load() { return b.load(BufferId{1}, n()); }
  std::int64_t integer(ExprId e) { return std::get<Const>(k[e].node).i; }
  bool is_apply(ExprId e, Op op) {
    const Apply* a = std::get_if<Apply>(&k[e].node);
    return a && a->op == op;
  }
};

TEST_F(BuilderTest, FoldsIntegersAsTheReferenceDoes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round)
    for (int o = 0; o < ops::op_count; ++o) {
      const Op op = static_cast<Op>(o);
      const ops::OpInfo& row = ops::info(op);
      if (!row.on_integers || op == Op::cast || op == Op::bits || row.typing == ops::Typing::logical) continue;
      for (const DType t : {DType::i64_, DType::i32_, DType::u32_}) {
        std::vector<ExprId> args;
        ops::Scalar values[3];
        for (int a = 0; a < row.arity; ++a) {
          const bool condition = op == Op::where && a == 0;
          values[a].i = condition ? random() % 2 : ops::wrap_to(t, static_cast<std::int64_t>(random()) >> random() % 64);
          args.push_back(condition ? b.boolean(values[a].i) : b.integer(values[a].i, t));
        }
        const ExprId e = b.apply(op, args);
        ASSERT_TRUE(std::holds_alternative<Const>(k[e].node)) << row.name;
        EXPECT_EQ(integer(e), ops::reference(op, t, k[e].dtype, values).i) << row.name;
      }
    }
}

TEST_F(BuilderTest, FoldsIntegerConversions) {
  EXPECT_EQ(integer(b.cast(DType::u8_, b.integer(-1))), 255);
  EXPECT_EQ(integer(b.cast(DType::bool_, b.integer(256))), 1);
  EXPECT_EQ(integer(b.bits(DType::i32_, b.integer(0xffffffff, DType::u32_))), -1);
  const ExprId same = b.load(BufferId{0}, n());
  EXPECT_EQ(b.cast(DType::f32_, same), same);
  EXPECT_TRUE(is_apply(b.cast(DType::f32_, b.integer(1)), Op::cast));
}

TEST_F(BuilderTest, IdentitiesKeepTheOperand) {
  const ExprId x = n(), zero = b.integer(0), one = b.integer(1);
  EXPECT_EQ(b.apply(Op::add, {x, zero}), x);
  EXPECT_EQ(b.apply(Op::add, {zero, x}), x);
  EXPECT_EQ(b.apply(Op::sub, {x, zero}), x);
  EXPECT_EQ(b.apply(Op::mul, {x, one}), x);
  EXPECT_EQ(b.apply(Op::mul, {one, x}), x);
  EXPECT_EQ(b.apply(Op::floordiv, {x, one}), x);
  EXPECT_EQ(integer(b.apply(Op::mul, {x, zero})), 0);
  EXPECT_EQ(integer(b.apply(Op::mul, {zero, x})), 0);
  EXPECT_EQ(integer(b.apply(Op::floordiv, {zero, x})), 0);
  EXPECT_EQ(integer(b.apply(Op::mod, {x, one})), 0);
  EXPECT_TRUE(is_apply(b.apply(Op::sub, {zero, x}), Op::sub));
  EXPECT_TRUE(is_apply(b.apply(Op::floordiv, {x, zero}), Op::floordiv));
  EXPECT_EQ(integer(b.apply(Op::logical_and, {flag(), b.boolean(false)})), 0);
  const ExprId f = flag();
  EXPECT_EQ(b.apply(Op::logical_and, {f, b.boolean(true)}), f);
  EXPECT_EQ(integer(b.apply(Op::logical_or, {f, b.boolean(true)})), 1);
}

TEST_F(BuilderTest, AnAccessIsNotDropped) {
  EXPECT_TRUE(is_apply(b.apply(Op::mul, {one_load(), b.integer(0)}), Op::mul));
  EXPECT_TRUE(is_apply(b.apply(Op::where, {b.boolean(true), n(), one_load()}), Op::where));
}

TEST_F(BuilderTest, ChoosesByConstantConditions) {
  const ExprId x = b.load(BufferId{0}, n());
  EXPECT_EQ(b.apply(Op::where, {b.boolean(true), x, b.constant(DType::f32_, 0)}), x);
  const ExprId always = b.load(BufferId{0}, n(), b.boolean(true), b.constant(DType::f32_, 0));
  EXPECT_FALSE(std::get<Load>(k[always].node).guard);
  const ExprId other = b.constant(DType::f32_, 7);
  EXPECT_EQ(b.load(BufferId{0}, n(), b.boolean(false), other), other);
}

TEST_F(BuilderTest, FloatOperationsStay) {
  const auto number = [&](double v) { return b.constant(DType::f32_, v); };
  EXPECT_TRUE(is_apply(b.apply(Op::add, {number(1), number(2)}), Op::add));
  EXPECT_TRUE(is_apply(b.apply(Op::add, {b.load(BufferId{0}, n()), number(0)}), Op::add));
  EXPECT_TRUE(is_apply(b.apply(Op::mul, {b.load(BufferId{0}, n()), number(1)}), Op::mul));
  EXPECT_TRUE(is_apply(b.apply(Op::lt, {number(1), number(2)}), Op::lt));
}

TEST_F(BuilderTest, ConstantsAreValuesOfTheirType) {
  EXPECT_EQ(std::get<Const>(k[b.constant(DType::f32_, 0.1)].node).f, static_cast<double>(0.1f));
  EXPECT_EQ(integer(b.integer(300, DType::u8_)), 44);
}

TEST_F(BuilderTest, LetBindsOnlyWhatIsNoLeaf) {
  const ExprId leaf = n();
  EXPECT_EQ(b.let(block, "v", leaf), leaf);
  EXPECT_TRUE(block.empty());
  const ExprId bound = b.let(block, "v", b.apply(Op::add, {n(), b.integer(1)}));
  EXPECT_TRUE(std::holds_alternative<VarRef>(k[bound].node));
  EXPECT_EQ(block.size(), 1u);
}

TEST_F(BuilderTest, NamesAreUniqueIdentifiers) {
  EXPECT_EQ(k[b.fresh("v", DType::i64_)].name, "v");
  EXPECT_EQ(k[b.fresh("v", DType::i64_)].name, "v_1");
  EXPECT_EQ(k[b.fresh("x", DType::i64_)].name, "x_1") << "x is a buffer";
  EXPECT_EQ(k[b.fresh("n", DType::i64_)].name, "n_1") << "n is a param";
  EXPECT_EQ(k[b.fresh("group", DType::i64_)].name, "group_1");
  EXPECT_EQ(k[b.fresh("nan_f32", DType::i64_)].name, "nan_f32_1");
  EXPECT_EQ(k[b.fresh("2 \xc3\xa4.b", DType::i64_)].name, "v2____b");
  EXPECT_EQ(k[b.fresh("", DType::i64_)].name, "v_2");
  Builder other(k);
  EXPECT_EQ(k[other.fresh("v", DType::i64_)].name, "v_3");
  EXPECT_EQ(k[b.fresh("v", DType::i64_)].name, "v_4") << "what another builder named is seen";
}

TEST_F(BuilderTest, SizesAreEvaluated) {
  const ExprId size = b.apply(Op::add, {b.apply(Op::floordiv, {n(), b.integer(3)}), b.cast(DType::i64_, flag())});
  EXPECT_EQ(evaluate(k, size, {-7, 1}), -2);
  EXPECT_EQ(evaluate(k, b.apply(Op::where, {flag(), n(), b.integer(5)}), {9, 0}), 5);
  EXPECT_EQ(evaluate(k, b.cast(DType::i64_, b.apply(Op::lt, {n(), b.integer(5)})), {4, 0}), 1);
  EXPECT_THROW(evaluate(k, one_load(), {1, 1}), InternalError);
  EXPECT_THROW(evaluate(k, b.group(), {1, 1}), InternalError);
  EXPECT_THROW(evaluate(k, n(), {}), InternalError);
}

}  // namespace
}  // namespace cosmati::kernel
