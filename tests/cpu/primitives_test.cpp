// Every primitive on every type it has, over all combinations of edge values, against ops::reference bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "cpu/fixture.h"

namespace cosmati::test {
namespace {

const std::vector<DType> wide_types = {DType::bool_, DType::i8_,  DType::i16_, DType::i32_, DType::i64_,
                                       DType::u8_,   DType::u16_, DType::u32_, DType::f32_, DType::f64_};

std::vector<ops::Scalar> edges(DType t, bool few = false) {
  std::vector<ops::Scalar> values;
  if (is_bool(t)) return {{0, 0}, {0, 1}};
  if (is_float(t)) {
    using L32 = std::numeric_limits<float>;
    using L64 = std::numeric_limits<double>;
    std::vector<double> list = {0.0,    -0.0,   1,           -1,      1.5, INFINITY, -INFINITY, NAN, L32::denorm_min(),
                                -3e-39, 3.4e38, 1 + 0x1p-23, -0x1p-60};
    if (!few) {
      for (const double x : {0.5,          2.5,
                             -2.5,         3.5,
                             0.3,          127.5,
                             255.0,        256.0,
                             65535.9,      65536.0,
                             2147483520.0, 2147483648.0,
                             4294967296.0, 9223372036854775808.0,
                             1e30,         0x1p-126,
                             8388609.0,    1e19,
                             0.49999997,   4503599627370497.5})
        values.push_back({x, 0}), values.push_back({-x, 0});
      if (t == DType::f64_)
        for (const double x : {L64::denorm_min(), L64::max(), -L64::min(), 2147483647.5, 4294967295.5, 1e300, 0x1.00000001p0})
          list.push_back(x);
    }
    for (const double x : list) values.push_back({x, 0});
    for (ops::Scalar& v : values) v.f = ops::round_to(t, v.f);
    return values;
  }
  const int bits = 8 * byte_size(t);
  std::vector<std::uint64_t> raw = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    8,
                                    31,
                                    32,
                                    33,
                                    63,
                                    100,
                                    ~0ull,
                                    ~1ull,
                                    ~6ull,
                                    1ull << (bits - 1),
                                    (1ull << (bits - 1)) - 1,
                                    (1ull << (bits - 1)) + 1,
                                    0x5555555555555555ull};
  if (few) raw = {0, 1, ~0ull, 7, 1ull << (bits - 1), (1ull << (bits - 1)) - 1};
  for (const std::uint64_t r : raw) values.push_back({0, ops::wrap_to(t, static_cast<std::int64_t>(r))});
  return values;
}

// All combinations of the edge values of the argument types, one list an argument.
std::vector<std::vector<ops::Scalar>> combinations(const std::vector<DType>& types) {
  std::vector<std::vector<ops::Scalar>> lists(types.size()), columns(types.size());
  std::size_t count = 1;
  for (std::size_t a = 0; a < types.size(); ++a) count *= (lists[a] = edges(types[a], types.size() == 3)).size();
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t a = 0, rest = i; a < types.size(); rest /= lists[a].size(), ++a)
      columns[a].push_back(lists[a][rest % lists[a].size()]);
  return columns;
}

// Runs `op` over columns of arguments and returns the elements that differ, as text.
std::string check(Op op, const std::vector<DType>& types, DType result, const std::vector<std::vector<ops::Scalar>>& columns,
                  auto expected) {
  Kit kit("map");
  const ParamId n = kit.param("n");
  std::vector<BufferId> in;
  for (std::size_t a = 0; a < types.size(); ++a) in.push_back(kit.argument("x" + std::to_string(a), types[a]));
  const BufferId y = kit.out("y", result);
  Block body;
  std::vector<ExprId> args;
  for (const BufferId x : in) args.push_back(kit.b.load(x, kit.b.group()));
  const ExprId value = op == Op::cast   ? kit.b.cast(result, args[0])
                       : op == Op::bits ? kit.b.bits(result, args[0])
                                        : kit.b.apply(op, args);
  kit.b.store(body, y, kit.b.group(), value);
  kit.phase("main", kit.b.param(n), body);

  std::vector<Array> arrays;
  for (std::size_t a = 0; a < types.size(); ++a) arrays.emplace_back(types[a], columns[a]);
  Array got(result, columns[0].size()), want(result, columns[0].size());
  std::vector<kernel::Memory> memory;
  for (Array& a : arrays) memory.push_back(a.memory());
  memory.push_back(got.memory());
  run(kit.kernel, memory, {got.size()});
  std::string wrong;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    std::vector<ops::Scalar> row;
    for (const Array& a : arrays) row.push_back(a[i]);
    ops::store(result, want.at(i), expected(row.data()));
    if (same(result, got.at(i), want.at(i)) || wrong.size() > 1000) continue;
    wrong += std::string(ops::name(op)) + "(";
    for (std::size_t a = 0; a < row.size(); ++a)
      wrong += std::string(name(types[a])) + " " + std::to_string(is_float(types[a]) ? row[a].f : row[a].i) + ", ";
    const ops::Scalar g = got[i], w = want[i];
    wrong +=
        ") is " + std::to_string(is_float(result) ? g.f : g.i) + ", not " + std::to_string(is_float(result) ? w.f : w.i) + "\n";
  }
  return wrong;
}

bool has(const ops::OpInfo& row, DType t) {
  using ops::Typing;
  if (is_bool(t)) return row.typing == Typing::logical || row.typing == Typing::select || row.name == "eq" || row.name == "ne";
  if (row.typing == Typing::logical) return false;
  return is_float(t) ? row.on_floats || row.typing == Typing::select : row.on_integers || row.typing == Typing::select;
}

TEST(primitives, equal_the_reference_on_all_edges) {
  int checked = 0;
  for (int i = 0; i < ops::op_count; ++i) {
    const Op op = static_cast<Op>(i);
    const ops::OpInfo& row = ops::info(op);
    if (op == Op::cast || op == Op::bits || row.kind != ops::Kind::primitive) continue;
    for (const DType t : wide_types) {
      if (!has(row, t)) continue;
      using ops::Typing;
      const bool boolean = row.typing == Typing::comparison || row.typing == Typing::logical || row.typing == Typing::test;
      const DType result = boolean ? DType::bool_ : t;
      std::vector<DType> types(row.arity, t);
      if (row.typing == Typing::select) types[0] = DType::bool_;
      EXPECT_EQ(check(op, types, result, combinations(types),
                      [&](const ops::Scalar* args) { return ops::reference(op, t, result, args); }),
                "")
          << row.name << " on " << name(t);
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(primitives, casts_equal_the_reference) {
  for (const DType from : wide_types)
    for (const DType to : wide_types) {
      if (from == to) continue;
      EXPECT_EQ(check(Op::cast, {from}, to, combinations({from}), [&](const ops::Scalar* x) { return ops::cast(from, to, *x); }),
                "")
          << name(from) << " to " << name(to);
    }
}

TEST(primitives, bits_keep_the_bits) {
  for (int f = 0; f < dtype_count; ++f)
    for (int t = 0; t < dtype_count; ++t) {
      const DType from = static_cast<DType>(f), to = static_cast<DType>(t);
      if (from == to || byte_size(from) != byte_size(to) || is_bool(from) || is_bool(to)) continue;
      EXPECT_EQ(
          check(Op::bits, {from}, to, combinations({from}), [&](const ops::Scalar* x) { return ops::reinterpret(from, to, *x); }),
          "")
          << name(from) << " to " << name(to);
    }
}

TEST(primitives, library_functions_are_those_of_the_host) {
  using One = double (*)(double);
  const std::vector<std::pair<Op, One>> rows = {
      {Op::exp, std::exp},     {Op::exp2, std::exp2}, {Op::expm1, std::expm1}, {Op::log, std::log},   {Op::log2, std::log2},
      {Op::log1p, std::log1p}, {Op::sin, std::sin},   {Op::cos, std::cos},     {Op::tanh, std::tanh}, {Op::erf, std::erf}};
  std::mt19937_64 random(1);
  std::vector<ops::Scalar> x = edges(DType::f64_), y = x;
  for (int i = 0; i < 2000; ++i) {
    x.push_back({std::normal_distribution<>(0, 5)(random), 0});
    y.push_back({i % 3 ? std::normal_distribution<>(0, 5)(random) : i % 7 / 2.0, 0});
  }
  for (const auto& [op, f] : rows)
    EXPECT_EQ(check(op, {DType::f64_}, DType::f64_, {x}, [f = f](const ops::Scalar* a) { return ops::Scalar{f(a->f), 0}; }), "");
  const auto power = [](const ops::Scalar* a) { return ops::Scalar{std::pow(a[0].f, a[1].f), 0}; };
  EXPECT_EQ(check(Op::pow, {DType::f64_, DType::f64_}, DType::f64_, {x, y}, power), "");
}

// A constant is the same value as one from memory, in every type (the narrow floats as their bits).
TEST(primitives, constants_have_the_bits_of_their_type) {
  for (int t = 0; t < dtype_count; ++t) {
    const DType type = static_cast<DType>(t);
    std::vector<ops::Scalar> values = edges(type);
    Kit kit("constants");
    const BufferId out = kit.out("y", type);
    Block body;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ExprId c = is_float(type)  ? kit.b.constant(type, values[i].f)
                       : is_bool(type) ? kit.b.boolean(values[i].i != 0)
                                       : kit.b.integer(values[i].i, type);
      kit.b.store(body, out, kit.b.integer(static_cast<std::int64_t>(i)), c);
    }
    kit.phase("main", kit.b.integer(1), body);
    Array got(type, values.size()), want(type, values);
    run(kit.kernel, {got.memory()}, {});
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(same(type, got.at(i), want.at(i))) << name(type) << " " << i;
  }
}

}  // namespace
}  // namespace cosmati::test
