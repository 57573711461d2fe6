// Reducers: the rows of the table and a user's own, evaluated on small data in several trees.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/fixture.h"

namespace cosmati::ir {
namespace {

using ops::Op;
using ops::Scalar;
using State = std::vector<Scalar>;
constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

// Evaluates a lambda on its parameters.
class Evaluator {
 public:
  Evaluator(const Program& p, const State& args) : p_(p), args_(args) {}
  State of(const Lambda& f) const {
    State out;
    for (ValueId v : f.results) out.push_back(value(v));
    return out;
  }

 private:
  Scalar value(ValueId v) const {
    const Value& at = p_[v];
    if (const auto* c = std::get_if<Const>(&at.node)) return {c->f, c->i};
    if (const auto* a = std::get_if<Arg>(&at.node)) return args_.at(a->slot);
    const auto& n = std::get<Elementwise>(at.node);
    Scalar args[3];
    for (std::size_t k = 0; k < n.args.size(); ++k) args[k] = value(n.args[k]);
    if (n.op == Op::cast) return ops::cast(p_[n.args[0]].dtype, at.dtype, args[0]);
    return ops::reference(n.op, p_[n.args.back()].dtype, at.dtype, args);
  }
  const Program& p_;
  const State& args_;
};

class Reducers : public Building {
 protected:
  AxisId n = axis("n");
  const Reducer* r = nullptr;

  void builtin(const std::string& reducer, DType t) {
    const ValueId x = bare(in("x" + std::to_string(b.program().tensors.size()), t, {n}));
    r = &b.program()[*b.builtin(reducer, {x}, at())];
  }
  State eval(const Lambda& f, const State& args) { return Evaluator(b.program(), args).of(f); }
  State merge(State a, const State& c) {
    a.insert(a.end(), c.begin(), c.end());
    return eval(r->merge, a);
  }
  // The results over `data`, merged in order, as a balanced tree, or shuffled with identities in between.
  State over(const std::vector<State>& data, int tree) {
    std::vector<State> states;
    for (const State& x : data) states.push_back(eval(r->lift, x));
    if (tree == 2) {
      std::mt19937 random(3);
      std::shuffle(states.begin(), states.end(), random);
      for (std::size_t k = states.size(); k > 0; --k)
        states.insert(states.begin() + static_cast<std::ptrdiff_t>(k), eval(r->identity, {}));
    }
    State all = eval(r->identity, {});
    if (tree == 1 && !states.empty()) {
      while (states.size() > 1) {
        std::vector<State> next;
        for (std::size_t k = 0; k < states.size(); k += 2)
          next.push_back(k + 1 < states.size() ? merge(states[k], states[k + 1]) : states[k]);
        states = next;
      }
      all = states[0];
    } else {
      for (const State& s : states) all = merge(all, s);
    }
    const double count = static_cast<double>(data.size());
    all.push_back({count, 0});
    return eval(r->finish, all);
  }
  static std::vector<State> floats(const std::vector<double>& values) {
    std::vector<State> out;
    for (std::size_t k = 0; k < values.size(); ++k) out.push_back({{values[k], 0}, {0, static_cast<std::int64_t>(k)}});
    return out;
  }
  static std::vector<State> ints(const std::vector<std::int64_t>& values) {
    std::vector<State> out;
    for (std::size_t k = 0; k < values.size(); ++k) out.push_back({{0, values[k]}, {0, static_cast<std::int64_t>(k)}});
    return out;
  }
  void expect(const std::vector<State>& data, double value, std::size_t slot = 0) {
    for (int tree = 0; tree < 3; ++tree) {
      const double got = over(data, tree)[slot].f;
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(got)) << r->name << " tree " << tree << " gave " << got;
      else if (std::isinf(value))
        EXPECT_EQ(got, value) << r->name << " tree " << tree;
      else
        EXPECT_NEAR(got, value, 1e-6 * std::max(1.0, std::fabs(value))) << r->name << " tree " << tree;
    }
  }
  void expect_int(const std::vector<State>& data, std::int64_t value) {
    for (int tree = 0; tree < 3; ++tree) EXPECT_EQ(over(data, tree)[0].i, value) << r->name << " tree " << tree;
  }
};

TEST_F(Reducers, sums_and_means) {
  builtin("sum", DType::f16_);
  EXPECT_EQ(r->state_types, std::vector{DType::f32_});
  EXPECT_EQ(r->arg_types, std::vector{DType::f16_});
  EXPECT_EQ(r->fold, Op::add);
  expect(floats({1, 2, 3.5}), 6.5);
  expect({}, 0);
  builtin("sum", DType::i8_);
  EXPECT_EQ(r->result_types, std::vector{DType::i32_});
  expect_int(ints({127, 127, 3}), 257);
  builtin("product", DType::f32_);
  expect({}, 1);
  builtin("mean", DType::i32_);
  EXPECT_EQ(r->result_types, std::vector{DType::f32_});
  expect(ints({1, 2, 4}), 7.0 / 3);
  expect({}, nan);
  builtin("mean", DType::f64_);
  EXPECT_EQ(r->result_types, std::vector{DType::f64_});
}

TEST_F(Reducers, extremes_of_nothing_are_the_limits_of_the_stored_type) {
  builtin("max", DType::f32_);
  expect({}, -inf);
  expect(floats({1, nan, 2}), nan);
  builtin("max_num", DType::f32_);
  expect(floats({1, nan, 2}), 2);
  builtin("max", DType::i8_);
  EXPECT_EQ(r->result_types, std::vector{DType::i32_});
  expect_int({}, -128);
  builtin("min", DType::u16_);
  expect_int({}, 65535);
  builtin("min", DType::i64_);
  expect_int({}, std::numeric_limits<std::int64_t>::max());
  builtin("max", DType::u32_);
  expect_int({}, 0);
}

TEST_F(Reducers, logic) {
  builtin("any", DType::bool_);
  expect_int({}, 0);
  expect_int(ints({0, 1, 0}), 1);
  builtin("all", DType::bool_);
  expect_int({}, 1);
  expect_int(ints({1, 1, 0}), 0);
}

TEST_F(Reducers, argmax_takes_the_lowest_index_and_nan_wins) {
  builtin("argmax", DType::f32_);
  EXPECT_TRUE(r->index);
  EXPECT_EQ(r->result_types, std::vector{DType::i64_});
  expect_int({}, -1);
  expect_int(floats({1, 3, 3, 2}), 1);
  expect_int(floats({1, nan, 9, nan}), 1);
  expect_int(floats({-inf, -inf}), 0);
  expect_int(floats({-0.0, 0.0}), 0);
  builtin("argmin", DType::f32_);
  expect_int(floats({2, 1, nan}), 2);
  expect_int(floats({inf, inf, inf}), 0);
  builtin("argmin", DType::i32_);
  expect_int(ints({4, -4, -4}), 1);
  builtin("argmax", DType::i8_);
  expect_int(ints({-128, -128}), 0);
}

TEST_F(Reducers, mean_and_variance) {
  builtin("mean_var", DType::f32_);
  expect(floats({1, 2, 3, 4, 10}), 4);
  expect(floats({1, 2, 3, 4, 10}), 10, 1);
  expect({}, nan);
  expect({}, nan, 1);
  expect(floats({1, inf, 2, 3}), inf);
  expect(floats({1, inf, 2, 3}), nan, 1);
  expect(floats({inf, 1, -inf}), nan);
  expect(floats({nan}), nan);
  expect(floats({nan}), nan, 1);
  expect(floats({3e38, -3e38, 3e38}), 1e38);
  for (std::size_t count : {1u, 2u, 3u, 7u, 100u}) {
    const double x = static_cast<double>(0.1f);
    for (int tree = 0; tree < 3; ++tree) {
      const State s = over(floats(std::vector<double>(count, x)), tree);
      EXPECT_EQ(s[0].f, x) << count;  // a constant row is exact
      EXPECT_EQ(s[1].f, 0) << count;
    }
  }
}

TEST_F(Reducers, logsumexp) {
  builtin("logsumexp", DType::f32_);
  expect({}, -inf);
  expect(floats({-inf, -inf}), -inf);
  expect(floats({1000, 1000}), 1000 + std::log(2.0));
  expect(floats({inf, 1}), inf);
  expect(floats({0, -inf, 0}), std::log(2.0));
  expect(floats({nan, 1}), nan);
}

TEST_F(Reducers, merges_give_the_same_bits_on_either_side) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0, 3);
  const double edges[] = {inf, -inf, nan, 0.0, -0.0, 3e38, 1e-44};
  for (const char* reducer : {"sum", "max", "min_num", "argmax", "argmin", "mean", "mean_var", "logsumexp"}) {
    builtin(reducer, DType::f32_);
    for (int k = 0; k < 200; ++k) {
      auto state = [&](std::int64_t first) {
        State all = eval(r->identity, {});
        for (std::int64_t j = 0; j < static_cast<std::int64_t>(random() % 4); ++j) {
          const double x = random() % 5 == 0 ? edges[random() % 7] : static_cast<double>(static_cast<float>(normal(random)));
          all = merge(all, eval(r->lift, {{x, 0}, {0, first + j}}));
        }
        return all;
      };
      const State a = state(0), c = state(10), ac = merge(a, c), ca = merge(c, a);
      for (std::size_t s = 0; s < ac.size(); ++s) {
        EXPECT_TRUE(ac[s].f == ca[s].f || (std::isnan(ac[s].f) && std::isnan(ca[s].f))) << reducer << " state " << s;
        EXPECT_EQ(ac[s].i, ca[s].i) << reducer << " state " << s;
      }
    }
  }
}

TEST_F(Reducers, arguments) {
  const ValueId q = bare(in("q", DType::i32_, {n})), c = bare(in("c", DType::bool_, {n}));
  EXPECT_EQ(b.builtin("median", {q}, at()), std::nullopt);
  EXPECT_EQ(Builder::builtin_arity("argmax"), 1);
  EXPECT_EQ(Builder::builtin_arity("sum"), 1);
  EXPECT_EQ(Builder::builtin_arity("median"), std::nullopt);
  refused(ErrorCode::type_mismatch, [&] { b.builtin("sum", {c}, at()); }, {"sum needs numbers; c is bool", "i32(c)"});
  refused(ErrorCode::type_mismatch, [&] { b.builtin("any", {q}, at()); }, {"q != 0"});
  refused(ErrorCode::type_mismatch, [&] { b.builtin("mean_var", {q}, at()); }, {"f32(q)"});
  refused(ErrorCode::type_mismatch, [&] { b.builtin("sum", {q, q}, at()); });
  EXPECT_EQ(b.builtin("sum", {q}, at()), b.builtin("sum", {q}, at()));
  const AxisId m = axis("m");
  const ValueId wide = bare(in("wide", DType::f32_, {n, m}));
  refused(ErrorCode::not_supported, [&] { reduce("argmax", wide, {n, m}); }, {"argmax reduces over one axis, and 2 are given"});
  EXPECT_EQ(reduce("sum", op(Op::mul, {wide, wide}), {n}), b.contract(wide, wide, {n}, {}, at()));
}

// reducer best(x, i): the largest value and where it is.
Builder::ReducerBody best(Builder& b) {
  auto op = [&b](Op o, std::vector<ValueId> args) { return b.elementwise(o, std::move(args), {"t.tile", 3, 1}); };
  Builder::ReducerBody body;
  body.arg_names = {"x", "i"};
  body.state_names = {"v", "i"};
  body.identity = [&b] { return std::vector{b.literal(-inf), b.literal(std::int64_t{-1})}; };
  body.lift = [](const std::vector<ValueId>& args) { return args; };
  body.merge = [&b, op](const std::vector<ValueId>& a, const std::vector<ValueId>& c) {
    const ValueId first = op(Op::logical_or, {op(Op::gt, {a[0], c[0]}), op(Op::lt, {c[1], b.literal(std::int64_t{0})})});
    b.name("first", first);
    return std::vector{op(Op::maximum, {a[0], c[0]}), op(Op::where, {first, a[1], c[1]})};
  };
  body.finish = [](const std::vector<ValueId>& s) { return s; };
  return body;
}

TEST_F(Reducers, a_users_reducer_is_made_for_its_types) {
  const ValueId x = bare(in("x", DType::f16_, {n}));
  const ReducerId id = b.reducer("best", best(b), {x, coord(n)}, at());
  r = &b.program()[id];
  EXPECT_EQ(r->arg_types, (std::vector{DType::f16_, DType::i64_}));
  EXPECT_EQ(r->state_types, (std::vector{DType::f32_, DType::i64_}));
  EXPECT_EQ(r->result_types, (std::vector{DType::f32_, DType::i64_}));
  EXPECT_EQ(r->merge.lets.size(), 1u);
  EXPECT_TRUE(b.program().names.empty());
  EXPECT_EQ(b.reducer("best", best(b), {x, coord(n)}, at()), id);
  EXPECT_EQ(over(floats({1, 5, 2}), 0)[1].i, 1);
  const std::vector<ValueId> parts = b.reduce(id, {x, coord(n)}, {n}, {}, at());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(type(parts[0]), DType::f32_);
  EXPECT_EQ(type(parts[1]), DType::i64_);
}

TEST_F(Reducers, a_users_state_settles_on_the_type_of_its_merge) {
  Builder::ReducerBody body;
  body.arg_names = {"x"};
  body.state_names = {"m", "s"};
  auto op2 = [this](Op o, ValueId a, ValueId c) { return op(o, {a, c}); };
  body.identity = [this] { return std::vector{f(-inf), i(0)}; };
  body.lift = [this](const std::vector<ValueId>& args) { return std::vector{args[0], i(1)}; };
  body.merge = [&](const std::vector<ValueId>& a, const std::vector<ValueId>& c) {
    const ValueId m = op2(Op::maximum, a[0], c[0]);
    return std::vector{
        m, op2(Op::add, op2(Op::mul, a[1], op2(Op::exp_diff, a[0], m)), op2(Op::mul, c[1], op2(Op::exp_diff, c[0], m)))};
  };
  body.finish = [&](const std::vector<ValueId>& s) { return std::vector{op2(Op::add, s[0], op(Op::log, {s[1]}))}; };
  const ValueId x = bare(in("x", DType::f64_, {n}));
  r = &b.program()[b.reducer("lse", body, {x}, at())];
  EXPECT_EQ(r->state_types, (std::vector{DType::f64_, DType::f64_}));
  expect(floats({0, 0, 0}), std::log(3.0));
  body.lift = [](const std::vector<ValueId>& args) { return std::vector{args[0]}; };
  refused(ErrorCode::type_mismatch, [&] { b.reducer("lse", body, {x}, at()); }, {"lift of lse gives 1 values for 2 states"});
  body.lift = [x](const std::vector<ValueId>& args) { return std::vector{args[0], x}; };
  refused(ErrorCode::not_supported, [&] { b.reducer("lse", body, {x}, at()); }, {"lift of lse uses x"});
}

TEST_F(Reducers, a_users_fold_is_recognised) {
  Builder::ReducerBody body;
  body.arg_names = {"x"};
  body.state_names = {"m"};
  body.identity = [this] { return std::vector{i(0)}; };
  body.lift = [this](const std::vector<ValueId>& args) { return std::vector{op(Op::abs, {args[0]})}; };
  body.merge = [this](const std::vector<ValueId>& a, const std::vector<ValueId>& c) {
    return std::vector{op(Op::maximum, {a[0], c[0]})};
  };
  body.finish = [](const std::vector<ValueId>& s) { return s; };
  r = &b.program()[b.reducer("max_abs", body, {bare(in("x", DType::f32_, {n}))}, at())];
  EXPECT_EQ(r->fold, Op::maximum);
  EXPECT_FALSE(r->builtin);
  expect(floats({1, -3, 2}), 3);
}

}  // namespace
}  // namespace cosmati::ir
