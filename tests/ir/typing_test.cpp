// Joins of types, weak values, folding, and what a store keeps.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/fixture.h"

namespace cosmati::ir {
namespace {

using ops::Op;

class Typing : public Building {
 protected:
  AxisId n = axis("n");
  ValueId of(DType t) {
    const std::string label = "v_" + std::string(name(t));
    for (std::uint32_t k = 0; k < b.program().tensors.size(); ++k)
      if (b.program().tensors[k].name == label) return bare(TensorId{k});
    return bare(in(label, t, {n}));
  }
  DType joined(DType a, DType c) { return type(op(Op::add, {of(a), of(c)})); }
  double constant(ValueId v) {
    const auto& c = std::get<Const>(b[v].node);
    return is_float(b[v].dtype) ? c.f : static_cast<double>(c.i);
  }
};

TEST_F(Typing, joins) {
  EXPECT_EQ(joined(DType::f16_, DType::bf16_), DType::f32_);
  EXPECT_EQ(joined(DType::f16_, DType::f16_), DType::f32_);
  EXPECT_EQ(joined(DType::f64_, DType::f8e4m3_), DType::f64_);
  EXPECT_EQ(joined(DType::i8_, DType::i8_), DType::i32_);
  EXPECT_EQ(joined(DType::u8_, DType::i32_), DType::i32_);
  EXPECT_EQ(joined(DType::i32_, DType::i64_), DType::i64_);
  EXPECT_EQ(joined(DType::u8_, DType::u32_), DType::u32_);
  for (const auto& [a, c] : std::vector<std::pair<DType, DType>>{{DType::i32_, DType::f32_},
                                                                 {DType::i32_, DType::u32_},
                                                                 {DType::i64_, DType::u32_},
                                                                 {DType::bool_, DType::bool_},
                                                                 {DType::bool_, DType::f32_},
                                                                 {DType::f16_, DType::u8_}})
    refused(ErrorCode::type_mismatch, [&] { joined(a, c); });
  refused(ErrorCode::type_mismatch, [&] { joined(DType::i32_, DType::f32_); },
          {"v_i32 + v_f32: v_i32 is i32 and v_f32 is f32, which do not join", "Hint: name the cast, as in f32(v_i32)"});
}

// What a message offers is taken at its word: `TYPE(NAME)` in the hint replaces that operand, and the operation is accepted.
TEST_F(Typing, hints_of_casts_join) {
  auto message = [&](Op o, const std::vector<ValueId>& args) -> std::string {
    try {
      op(o, args);
    } catch (const Error& e) {
      return e.hint;
    }
    return "";
  };
  int followed = 0;
  for (Op o : {Op::add, Op::minimum, Op::lt, Op::eq, Op::where, Op::mod, Op::bit_and, Op::div})
    for (int a = 0; a < dtype_count; ++a)
      for (int c = 0; c < dtype_count; ++c) {
        std::vector<ValueId> args{of(static_cast<DType>(a)), of(static_cast<DType>(c))};
        if (o == Op::where) args.insert(args.begin(), b.literal(true));
        const std::string before = describe(b.program(), o, args);
        for (int step = 0; step < 3; ++step) {
          const std::string hint = message(o, args);
          if (hint.empty()) break;
          SCOPED_TRACE(before + ": " + hint);
          ASSERT_LT(step, 2) << "two casts are enough for two operands";
          const std::size_t open = hint.find('('), close = hint.find(')'), space = hint.rfind(' ', open);
          const std::optional<DType> to = dtype_from_name(hint.substr(space + 1, open - space - 1));
          ASSERT_TRUE(to.has_value());
          const std::string named = hint.substr(open + 1, close - open - 1);
          int replaced = 0;
          for (ValueId& v : args)
            if (describe(b.program(), v) == named && b[v].dtype != *to) {
              v = b.cast(*to, v, at());
              ++replaced;
            }
          ASSERT_GE(replaced, 1);
          ++followed;
        }
        EXPECT_EQ(message(o, args), "") << before;
      }
  EXPECT_GT(followed, 200);
}

TEST_F(Typing, weak_sides_take_the_type_of_the_other) {
  const ValueId half = op(Op::mul, {of(DType::f16_), f(0.1)});
  EXPECT_EQ(type(half), DType::f32_);
  EXPECT_EQ(type(std::get<Elementwise>(b[half].node).args[1]), DType::f32_);
  EXPECT_EQ(constant(std::get<Elementwise>(b[half].node).args[1]), 0.1);  // with the digits that the wide oracle computes with
  EXPECT_EQ(type(op(Op::add, {of(DType::f64_), i(1)})), DType::f64_);
  EXPECT_EQ(type(op(Op::add, {of(DType::i32_), i(1)})), DType::i32_);
  EXPECT_EQ(type(op(Op::add, {of(DType::i32_), b.extent(n, at())})), DType::i32_);
  EXPECT_EQ(type(op(Op::mul, {of(DType::f32_), b.extent(n, at())})), DType::f32_);
  EXPECT_EQ(type(op(Op::add, {coord(n), b.extent(n, at())})), DType::i64_);
  refused(ErrorCode::type_mismatch, [&] { op(Op::mul, {of(DType::i32_), f(0.5)}); }, {"0.5 is a real number"});
  refused(ErrorCode::type_mismatch, [&] { op(Op::add, {of(DType::i32_), i(3000000000)}); }, {"3000000000 does not fit i32"});
  refused(ErrorCode::type_mismatch, [&] { op(Op::eq, {of(DType::bool_), i(1)}); });
}

TEST_F(Typing, literals_fold_in_float64_and_stay_weak) {
  const ValueId r = op(Op::div, {i(1), op(Op::sqrt, {i(2)})});
  EXPECT_TRUE(b[r].weak);
  EXPECT_NEAR(constant(r), 1 / std::sqrt(2.0), 1e-16);
  EXPECT_EQ(constant(op(Op::floordiv, {i(-7), i(2)})), -4);
  EXPECT_EQ(constant(op(Op::lt, {i(1), f(1.5)})), 1);
  EXPECT_EQ(type(op(Op::lt, {i(1), f(1.5)})), DType::bool_);
  refused(ErrorCode::type_mismatch, [&] { op(Op::div, {i(1), i(2)}); }, {"use // to round down"});
  // A cast literal keeps its digits like one that is joined; what is made of it is made of the rounded value.
  EXPECT_EQ(constant(b.cast(DType::f16_, f(0.1), at())), 0.1);
  EXPECT_EQ(constant(b.cast(DType::f32_, b.cast(DType::f16_, f(0.1), at()), at())), 0.0999755859375);
  EXPECT_EQ(constant(b.cast(DType::i32_, b.cast(DType::f16_, f(2048.9), at()), at())), 2048);
  EXPECT_EQ(constant(op(Op::sub, {b.cast(DType::f16_, f(0.1), at()), b.cast(DType::f32_, f(0.0999755859375), at())})), 0);
  EXPECT_EQ(constant(op(Op::mul, {b.cast(DType::f32_, f(0.1), at()), b.cast(DType::f64_, i(1), at())})),
            static_cast<double>(0.1f));
  EXPECT_EQ(constant(b.cast(DType::i32_, f(2.9), at())), 2);
  EXPECT_FALSE(b[b.cast(DType::i64_, i(2), at())].weak);
}

TEST_F(Typing, classes_of_operations) {
  refused(ErrorCode::type_mismatch, [&] { op(Op::sqrt, {of(DType::i32_)}); },
          {"sqrt(v_i32) needs floats; v_i32 is i32", "f32(v_i32)"});
  refused(ErrorCode::type_mismatch, [&] { op(Op::bit_and, {of(DType::f32_), i(1)}); });
  refused(ErrorCode::type_mismatch, [&] { op(Op::logical_and, {of(DType::i32_), of(DType::bool_)}); }, {"v_i32 != 0"});
  refused(ErrorCode::type_mismatch, [&] { op(Op::where, {of(DType::i32_), i(1), i(2)}); }, {"where needs a condition"});
  refused(ErrorCode::type_mismatch, [&] { op(Op::lt, {of(DType::bool_), of(DType::bool_)}); });
  EXPECT_EQ(type(op(Op::eq, {of(DType::bool_), of(DType::bool_)})), DType::bool_);
  EXPECT_EQ(type(op(Op::is_nan, {of(DType::f16_)})), DType::bool_);
  EXPECT_EQ(type(op(Op::where, {of(DType::bool_), of(DType::bool_), b.literal(true)})), DType::bool_);
  refused(ErrorCode::type_mismatch, [&] { op(Op::pow, {of(DType::f32_)}); }, {"pow takes 2 arguments, and 1 are given"});
  EXPECT_EQ(type(b.bits(DType::u32_, of(DType::f32_), at())), DType::u32_);
  refused(ErrorCode::type_mismatch, [&] { b.bits(DType::u32_, of(DType::i32_), at()); });
}

TEST_F(Typing, equal_values_are_one) {
  EXPECT_EQ(op(Op::add, {of(DType::f32_), f(1)}), op(Op::add, {of(DType::f32_), i(1)}));
  EXPECT_NE(f(0.0), f(-0.0));
  EXPECT_EQ(b.literal(std::nan("")), b.literal(std::nan("")));
  EXPECT_NE(b.cast(DType::f64_, f(1), at()), f(1));  // weakness is part of the identity
  line = 7;
  const ValueId v = op(Op::exp, {of(DType::f32_)});
  line = 8;
  EXPECT_EQ(b[op(Op::exp, {of(DType::f32_)})].where.line, 7);
  EXPECT_EQ(b[v].where.line, 7);
}

TEST_F(Typing, weak_branches_become_the_type_itself) {
  const ValueId chosen = op(Op::where, {of(DType::bool_), f(0.1), i(1)});
  EXPECT_TRUE(b[chosen].weak);
  const ValueId product = op(Op::mul, {of(DType::f32_), chosen});
  const ValueId inner = std::get<Elementwise>(b[product].node).args[1];
  EXPECT_EQ(std::get<Elementwise>(b[inner].node).op, Op::where);
  EXPECT_EQ(type(inner), DType::f32_);
}

class Stores : public Typing {
 protected:
  bool stores(DType to, const std::function<ValueId()>& make) {
    Builder fresh("q");
    std::swap(b, fresh);
    n = axis("n");
    for (DType t :
         {DType::i8_, DType::u8_, DType::i32_, DType::i64_, DType::u32_, DType::f32_, DType::f64_, DType::f16_, DType::bool_})
      of(t);
    const AxisId k = axis("k");
    in("wide", DType::i8_, {n, k});
    const TensorId y = out("y", to, {n});
    b.parallel({n}, at());
    const ValueId v = make();
    try {
      store(y, {n}, v);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::type_mismatch) << e.what();
      return false;
    }
    const Program p = b.finish(at());
    EXPECT_EQ(p[p.stores[0].value].dtype, to);
    return true;
  }
  ValueId wide() { return bare(TensorId{9}); }
  AxisId k() { return AxisId{1}; }
};

TEST_F(Stores, floats_and_literals_convert) {
  EXPECT_TRUE(stores(DType::f16_, [&] { return op(Op::exp, {of(DType::f64_)}); }));
  EXPECT_TRUE(stores(DType::f32_, [&] { return i(0); }));
  EXPECT_TRUE(stores(DType::u8_, [&] { return i(255); }));
  EXPECT_TRUE(stores(DType::i32_, [&] { return b.extent(n, at()); }));
  EXPECT_FALSE(stores(DType::u8_, [&] { return i(256); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return f(0.5); }));
  EXPECT_FALSE(stores(DType::bool_, [&] { return i(1); }));
}

TEST_F(Stores, a_change_of_kind_needs_a_cast) {
  EXPECT_FALSE(stores(DType::i32_, [&] { return of(DType::f32_); }));
  EXPECT_FALSE(stores(DType::f32_, [&] { return of(DType::i32_); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return of(DType::bool_); }));
  EXPECT_FALSE(stores(DType::bool_, [&] { return of(DType::i32_); }));
  EXPECT_FALSE(stores(DType::u32_, [&] { return of(DType::i32_); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return of(DType::i64_); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return coord(n); }));
  EXPECT_TRUE(stores(DType::i32_, [&] { return b.cast(DType::i32_, of(DType::f32_), at()); }));
  EXPECT_TRUE(stores(DType::i64_, [&] { return of(DType::i32_); }));
}

TEST_F(Stores, narrow_integers_keep_what_was_selected_from_them) {
  EXPECT_TRUE(stores(DType::i8_, [&] { return of(DType::i8_); }));
  EXPECT_TRUE(stores(DType::i8_, [&] { return op(Op::maximum, {of(DType::i8_), i(0)}); }));
  EXPECT_TRUE(stores(DType::i8_, [&] { return op(Op::where, {of(DType::bool_), of(DType::i8_), i(-128)}); }));
  EXPECT_TRUE(stores(DType::i8_, [&] { return reduce("min", wide(), {k()}); }));
  EXPECT_FALSE(stores(DType::i8_, [&] { return op(Op::maximum, {of(DType::i8_), i(200)}); }));
  EXPECT_FALSE(stores(DType::i8_, [&] { return op(Op::add, {of(DType::i8_), i(1)}); }));
  EXPECT_FALSE(stores(DType::i8_, [&] { return reduce("sum", wide(), {k()}); }));
  EXPECT_FALSE(stores(DType::u8_, [&] { return op(Op::maximum, {of(DType::i8_), i(0)}); }));
}

TEST_F(Stores, chosen_literals_take_the_stored_type) {
  EXPECT_TRUE(stores(DType::i8_, [&] { return op(Op::where, {of(DType::bool_), i(0), i(1)}); }));
  EXPECT_TRUE(stores(DType::f16_, [&] { return op(Op::where, {of(DType::bool_), i(0), f(0.5)}); }));
  EXPECT_TRUE(stores(DType::f64_, [&] { return op(Op::where, {of(DType::bool_), i(0), f(0.5)}); }));
  EXPECT_FALSE(stores(DType::i8_, [&] { return op(Op::where, {of(DType::bool_), i(0), i(200)}); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return op(Op::where, {of(DType::bool_), i(0), f(0.5)}); }));
}

TEST_F(Stores, chosen_indices_fit_i32) {
  EXPECT_TRUE(stores(DType::i32_, [&] { return reduce("argmax", wide(), {k()}); }));
  EXPECT_TRUE(stores(DType::i64_, [&] { return reduce("argmin", wide(), {k()}); }));
  EXPECT_TRUE(stores(DType::i32_, [&] { return op(Op::where, {of(DType::bool_), reduce("argmax", wide(), {k()}), i(-1)}); }));
  EXPECT_FALSE(stores(DType::i32_, [&] { return op(Op::add, {reduce("argmax", wide(), {k()}), i(1)}); }));
  EXPECT_FALSE(stores(DType::i8_, [&] { return reduce("argmax", wide(), {k()}); }));
}

class Else : public Typing {};

TEST_F(Else, takes_the_type_of_the_tensor_or_joins_it) {
  const TensorId x = in("x", DType::f16_, {n}), q = in("q", DType::i32_, {n});
  b.parallel({n}, at());
  const std::vector<Index> left{{op(Op::sub, {coord(n), i(1)})}};
  EXPECT_EQ(type(b.load(x, left, i(0), at())), DType::f16_);
  const ValueId mixed = b.load(x, left, b.constant(DType::f32_, 0.1), at());
  EXPECT_EQ(type(mixed), DType::f32_);
  EXPECT_EQ(std::get<Elementwise>(b[mixed].node).op, Op::where);
  refused(ErrorCode::type_mismatch, [&] { b.load(q, left, f(0.5), at()); });
  const ValueId shifted = b.replace(bare(x), {{n, op(Op::sub, {coord(n), i(1)})}}, i(0), at());
  EXPECT_EQ(type(shifted), DType::f16_);
  EXPECT_EQ(b[shifted].axes, AxisSet{n});
  EXPECT_TRUE(b[b.replace(bare(x), {{n, i(0)}}, std::nullopt, at())].axes.empty());
}

}  // namespace
}  // namespace cosmati::ir
