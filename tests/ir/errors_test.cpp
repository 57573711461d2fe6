// Every rule of axes, declarations and stores that the builder enforces, with the text the user reads.
// SPDX-License-Identifier: Apache-2.0
#include "ir/fixture.h"

namespace cosmati::ir {
namespace {

using ops::Op;
constexpr DType f32 = DType::f32_, i32 = DType::i32_;

class Rows : public Building {
 protected:
  AxisId row = axis("row"), col = axis("col"), c = axis("c"), n = axis("n");
  TensorId x = in("x", f32, {row, col}), g = in("g", f32, {c}), z = in("z", f32, {n}), y = out("y", f32, {row, col}),
           s = out("s", f32, {row}), t = out("t", f32, {col});
};

TEST_F(Rows, extra_axis_tells_where_it_entered) {
  b.parallel({row}, at());
  line = 9;
  const ValueId product = op(Op::mul, {bare(x), bare(g)});
  line = 10;
  const ValueId more = op(Op::add, {product, i(1)});
  line = 12;
  refused(ErrorCode::extra_axis, [&] { store(y, {row, col}, more); },
          {"t.tile:12:1: extra_axis: value stored to y has axis c, which the index does not name. c entered at line 9: x * g. "
           "Hint: reduce over it or index with it"});
}

TEST_F(Rows, no_such_axis) {
  b.parallel({row}, at());
  refused(ErrorCode::no_such_axis, [&] { reduce("sum", bare(x), {n}); },
          {"sum over n, but the value has no axis n (it has row, col)"});
  refused(ErrorCode::no_such_axis, [&] { b.replace(bare(x), {{n, i(0)}}, std::nullopt, at()); }, {"no axis n (it has row, col)"});
  refused(ErrorCode::no_such_axis, [&] { reduce("sum", bare(x), {}); });
}

TEST_F(Rows, unfinished_reduction) {
  b.parallel({row}, at());
  const ValueId total = reduce("sum", bare(x), {row});
  EXPECT_EQ(b[total].done, AxisSet{row});
  EXPECT_EQ(b[total].axes, AxisSet{col});
  refused(ErrorCode::unfinished_reduction, [&] { op(Op::sub, {bare(x), op(Op::mul, {total, f(2)})}); },
          {"sum(x, row) exists only when every instance of row has finished; it is joined here with x, which still has row"});
  refused(ErrorCode::unfinished_reduction, [&] { store(y, {row, col}, total); },
          {"it is stored here at y[row, col], which still has row"});
  store(t, {col}, op(Op::add, {total, reduce("max", bare(x), {row})}));  // over the same axes it combines
}

TEST_F(Rows, store_conflict) {
  b.parallel({row}, at());
  refused(ErrorCode::store_conflict, [&] { store(t, {col}, bare(x)); },
          {"every instance of row would store t[col]", "Hint: sum(..., row), or index t with row"});
  refused(ErrorCode::store_conflict, [&] { store(t, {col}, f(0)); }, {"every instance of row would store t[col]"});
}

TEST_F(Rows, repeated_axis) {
  refused(ErrorCode::repeated_axis, [&] { in("w", f32, {row, row}); }, {"axis row appears twice in the dimensions of w"});
  refused(ErrorCode::repeated_axis, [&] { b.parallel({row, row}, at()); });
}

TEST_F(Rows, repeated_axis_in_reductions_and_replacements) {
  b.parallel({row}, at());
  refused(ErrorCode::repeated_axis, [&] { reduce("sum", bare(x), {col, col}); });
  refused(ErrorCode::repeated_axis, [&] { b.replace(bare(x), {{col, i(0)}, {col, i(1)}}, std::nullopt, at()); });
}

TEST_F(Rows, ranges_depend_on_program_axes_only) {
  b.parallel({row}, at());
  const AxisId u = axis("u");
  refused(ErrorCode::range_on_tile_axis, [&] { b.range(u, i(0), coord(col), at()); },
          {"the range of u depends on col, which is not a program axis", "Hint: add col to parallel, or mask with where"});
  b.range(u, i(0), op(Op::add, {coord(row), i(1)}), at());
  EXPECT_EQ(range_axes(b.program(), u), AxisSet{row});
  refused(ErrorCode::not_supported, [&] { b.extent(u, at()); }, {"extent(u) is not known at launch"});
  refused(ErrorCode::redefined, [&] { b.range(u, i(0), i(3), at()); });
  const ValueId v = b.load(z, {{coord(u)}}, std::nullopt, at());
  EXPECT_EQ(b[v].axes, AxisSet{u});
  const ValueId sum = reduce("sum", v, {u});
  EXPECT_EQ(b[sum].axes, AxisSet{row});  // how many elements there are depends on row
  refused(ErrorCode::not_supported, [&] { reduce("sum", v, {row}); }, {"still has u, whose range depends on row"});
  const ValueId both = reduce("sum", v, {u, row});
  EXPECT_TRUE(b[both].axes.empty());
  EXPECT_EQ(b[both].done, AxisSet{row});
}

TEST_F(Rows, declarations) {
  refused(ErrorCode::redefined, [&] { in("x", f32, {row}); }, {"x is already a parameter"});
  refused(ErrorCode::type_mismatch, [&] { b.contract(x, {i(0), i(5), false, false}, at()); },
          {"contracts are promises about integers"});
  refused(ErrorCode::type_mismatch, [&] { b.require(i(3), at()); });
  refused(ErrorCode::type_mismatch, [&] { b.scalar("k", i32, f(0.5), at()); });
  refused(ErrorCode::type_mismatch, [&] { b.scalar("m", DType::i8_, i(300), at()); }, {"300 does not fit i8"});
  refused(ErrorCode::not_supported, [&] { b.require(op(Op::lt, {coord(row), i(3)}), at()); });
  refused(ErrorCode::not_supported, [&] { store(s, {row}, f(0)); }, {"before parallel"});
  b.parallel({row}, at());
  refused(ErrorCode::not_supported, [&] { b.parallel({col}, at()); });
  refused(ErrorCode::not_supported, [&] { in("late", f32, {row}); });
}

TEST_F(Rows, accesses) {
  b.parallel({row}, at());
  refused(ErrorCode::not_supported, [&] { bare(y); }, {"y is an out parameter and cannot be read"});
  refused(ErrorCode::not_supported, [&] { store(x, {row, col}, f(0)); }, {"x is an in parameter"});
  refused(ErrorCode::type_mismatch, [&] { b.load(x, {{coord(row)}}, std::nullopt, at()); },
          {"x[row, col] has 2 dimensions and is indexed with 1"});
  refused(ErrorCode::type_mismatch, [&] { b.load(x, {{coord(row)}, {bare(x)}}, std::nullopt, at()); },
          {"must be an integer; x is f32"});
  refused(ErrorCode::type_mismatch, [&] { b.load(x, {{coord(row)}, {coord(col), i(0)}}, std::nullopt, at()); });
}

TEST_F(Rows, extents_must_be_bound) {
  const AxisId loose = axis("loose");
  b.parallel({row}, at());
  store(y, {row, col}, bare(x));
  store(s, {row}, reduce("sum", bare(x), {col}));
  store(t, {col}, reduce("sum", bare(x), {row}));
  refused(ErrorCode::unknown_name, [&] { b.finish(at()); }, {"nothing binds the extent of axis loose", "axis loose = ..."});
  b.range(loose, i(0), op(Op::mul, {b.extent(loose, at()), i(2)}), at());
  refused(ErrorCode::unknown_name, [&] { b.finish(at()); }, {"depends on itself"});
}

TEST_F(Rows, every_out_is_stored) {
  b.parallel({row}, at());
  store(y, {row, col}, bare(x));
  refused(ErrorCode::partial_out, [&] { b.finish(at()); }, {"out s is never stored", "declare s inout to keep what is there"});
}

TEST_F(Building, a_program_has_a_region) {
  refused(ErrorCode::syntax, [&] { b.finish(at()); }, {"program p has no region"});
}

TEST_F(Building, composite_dimensions_have_one_unknown_factor) {
  const AxisId g = axis("g"), r = axis("r");
  const TensorId y = b.tensor("y", Access::out, f32, {{{g, 0}, {r, 0}}}, at());
  b.parallel({g, r}, at());
  b.store(y, {{coord(g), coord(r)}}, f(0), at());
  refused(ErrorCode::unknown_name, [&] { b.finish(at()); },
          {"nothing tells the extent of axis g from the others of its dimension"});
}

TEST_F(Building, a_dimension_that_is_no_axis_must_be_indexed) {
  const AxisId a = axis("a");
  const TensorId x = b.tensor("x", Access::in, f32, {{{a, 2}}}, at());
  b.parallel({a}, at());
  refused(ErrorCode::not_supported, [&] { bare(x); }, {"x[a + 2] is a + 2, which is not an axis"});
}

TEST_F(Rows, finished_programs_verify_and_damage_is_named) {
  b.parallel({row}, at());
  store(y, {row, col}, op(Op::sub, {bare(x), reduce("max", bare(x), {col})}));
  store(s, {row}, reduce("mean", bare(x), {col}));
  store(t, {col}, reduce("sum", bare(x), {row}));
  const Program good = b.finish(at());
  verify(good, "test");
  auto breaks = [&](const char* invariant, const std::function<void(Program&)>& damage) {
    Program bad = good;
    damage(bad);
    try {
      verify(bad, "damage");
      ADD_FAILURE() << invariant << " was not noticed";
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(std::string("breaks ") + invariant + " after damage"), std::string::npos) << e.what();
    }
  };
  const ValueId stored = good.stores[0].value;
  breaks("V1", [&](Program& p) { std::get<Elementwise>(p.values[stored.index].node).args[0] = stored; });
  breaks("V2", [&](Program& p) { p.values[stored.index].axes = {col, row}; });
  breaks("V3", [&](Program& p) { p.values[stored.index].axes = {row}; });
  breaks("V4", [&](Program& p) { p.values[stored.index].dtype = DType::bool_; });
  breaks("V6", [&](Program& p) { p.reducers[0].state_types[0] = DType::f64_; });
  breaks("V8", [&](Program& p) { p.tensors[p.stores[0].tensor.index].dtype = DType::f16_; });
  breaks("V8", [&](Program& p) { p.program_axes.push_back(c); });
  breaks("V12", [&](Program& p) { p.values[p.stores[0].value.index].weak = true; });
  breaks("V13", [&](Program& p) { p.parameters.pop_back(); });
}

}  // namespace
}  // namespace cosmati::ir
