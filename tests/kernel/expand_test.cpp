// Expansions: bounds on a sample of all float32 (bench/ulp takes every one), every edge, every conversion of narrow floats, and
// where the pass puts what it binds.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "bench/ulp/accuracy.h"
#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "ops/ops.h"

namespace cosmati::kernel {
namespace {

using ops::Op;
using ops::Scalar;

constexpr DType narrow_floats[] = {DType::f16_, DType::bf16_, DType::f8e4m3_, DType::f8e5m2_};
constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- accuracy ----
class Bound : public testing::TestWithParam<ulp::Function> {};

void expect_within(const ulp::Function& f, const ulp::Accuracy& a) {
  EXPECT_LE(a.normal, ops::info(f.op).ulp) << "at " << a.worst_x << ", " << a.worst_y;
  EXPECT_LE(a.subnormal, ops::info(f.op).ulp);
  EXPECT_EQ(a.wrong, 0u) << a.first_wrong;
}

TEST_P(Bound, holds_on_a_sample) {
  const ulp::Function& f = GetParam();
  if (ops::info(f.op).arity == 2)
    expect_within(f, ulp::measure(f, ulp::random_pairs(7, 1 << 18)));
  else
    expect_within(f, ulp::measure(f, ulp::patterns(0, std::uint64_t{1} << 32, 4093)));
}

TEST_P(Bound, holds_at_the_edges) { expect_within(GetParam(), ulp::measure(GetParam(), ulp::edge_pairs())); }

INSTANTIATE_TEST_SUITE_P(Expand, Bound, testing::ValuesIn(ulp::functions()),
                         [](const auto& info) { return std::string(ops::name(info.param.op)); });

TEST(Expand, every_expanded_operation_is_measured_or_exact) {
  for (int i = 0; i < ops::op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (ops::info(op).kind != ops::Kind::expanded || op == Op::clamp) continue;
    EXPECT_TRUE(std::any_of(ulp::functions().begin(), ulp::functions().end(), [&](auto& f) { return f.op == op; }))
        << ops::name(op);
  }
}

TEST(Expand, the_simulator_computes_the_same_bits) {
  const std::vector<float> all = ulp::edges();
  for (const ulp::Function& f : ulp::functions()) {
    const Kernel k = expand(ulp::elementwise(f.op, DType::f32_, DType::f32_));
    const int arity = ops::info(f.op).arity;
    ulp::Lanes lanes(k);
    std::vector<std::vector<float>> data(static_cast<std::size_t>(arity) + 1, std::vector<float>(ulp::width));
    for (int a = 0; a < arity; ++a)
      for (int i = 0; i < ulp::width; ++i)
        data[a][i] = lanes.input<float>(a)[i] = all[static_cast<std::size_t>(a == 0 ? i : i * 7) % all.size()];
    lanes.run();
    Launch launch;
    for (auto& buffer : data) launch.buffers.push_back({buffer.data(), 0, ulp::width});
    simulate(k)->run(launch);
    for (int i = 0; i < ulp::width; ++i) {
      const float want = lanes.output<float>()[i], got = data.back()[i];
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want))
          << ops::name(f.op) << " of " << data[0][i] << ": " << got << ", not " << want;
    }
  }
}

// ---- values, compared with the reference of ops ----
bool same(DType t, Scalar a, Scalar b, double tolerance) {
  if (!is_float(t)) return a.i == b.i;
  if (std::isnan(a.f)) return std::isnan(b.f);
  if (std::signbit(a.f) != std::signbit(b.f)) return false;
  return a.f == b.f || (std::isfinite(a.f) && std::fabs(a.f - b.f) <= tolerance * std::fabs(b.f));
}

// Runs the expansion of a conversion or an operation over all arguments, and compares.
void expect_reference(Op op, DType from, DType to, const std::vector<std::vector<Scalar>>& arguments, double tolerance = 0) {
  const Kernel k = expand(ulp::elementwise(op, from, to));
  verify(k, "expand");
  ulp::Lanes lanes(k);
  const std::size_t n = arguments[0].size();
  int shown = 0;
  for (std::size_t base = 0; base < n; base += ulp::width) {
    auto at = [&](int lane) { return std::min(base + static_cast<std::size_t>(lane), n - 1); };
    for (std::size_t a = 0; a < arguments.size(); ++a)
      for (int i = 0; i < ulp::width; ++i)
        ops::store(from, lanes.input<unsigned char>(static_cast<int>(a)) + i * byte_size(from), arguments[a][at(i)]);
    lanes.run();
    for (int i = 0; i < ulp::width; ++i) {
      const Scalar got = ops::load(to, lanes.output<unsigned char>() + i * byte_size(to));
      Scalar args[3];
      for (std::size_t a = 0; a < arguments.size(); ++a) args[a] = arguments[a][at(i)];
      const Scalar want = op == Op::cast ? ops::cast(from, to, args[0]) : ops::reference(op, from, to, args);
      if (same(to, got, want, tolerance) || shown++ > 3) continue;
      ADD_FAILURE() << ops::name(op) << " of " << name(from) << " to " << name(to) << ": " << args[0].f << " " << args[0].i
                    << " gives " << got.f << " " << got.i << ", not " << want.f << " " << want.i;
    }
  }
}

std::vector<Scalar> every_value(DType t) {
  std::vector<Scalar> all;
  for (std::uint32_t bits = 0; bits < 1u << (8 * byte_size(t)); ++bits) {
    const std::uint16_t wide = static_cast<std::uint16_t>(bits);
    const std::uint8_t byte = static_cast<std::uint8_t>(bits);
    all.push_back(ops::load(t, byte_size(t) == 1 ? static_cast<const void*>(&byte) : &wide));
  }
  return all;
}

TEST(Expand, narrow_floats_widen_exactly) {
  for (DType from : narrow_floats)
    for (DType to : {DType::f32_, DType::f64_, DType::i8_, DType::u8_, DType::i32_, DType::u32_, DType::i64_, DType::bool_})
      expect_reference(Op::cast, from, to, {every_value(from)});
}

TEST(Expand, narrow_floats_convert_to_each_other) {
  for (DType from : narrow_floats)
    for (DType to : narrow_floats)
      if (from != to) expect_reference(Op::cast, from, to, {every_value(from)});
}

// Every value of the type, the middles between neighbours, and what lies next to those in the wider type.
std::vector<Scalar> around_ties(DType to, DType from) {
  std::vector<Scalar> all;
  auto near = [&](double v) {
    for (double s : {v, -v}) {
      if (from == DType::f32_) {
        const float f = static_cast<float>(s);
        for (float w : {f, std::nextafter(f, 0.0f), std::nextafter(f, HUGE_VALF)}) all.push_back({.f = w});
      } else {
        for (double w : {s, std::nextafter(s, 0.0), std::nextafter(s, infinity)}) all.push_back({.f = w});
      }
    }
  };
  std::vector<double> values;
  for (Scalar v : every_value(to))
    if (std::isfinite(v.f) && v.f >= 0) values.push_back(v.f);
  std::sort(values.begin(), values.end());
  values.push_back(2 * values.back() - values[values.size() - 2]);
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    near(values[i]);
    near(values[i] / 2 + values[i + 1] / 2);
  }
  near(0x1p-149);
  near(0x1p127);
  near(infinity);
  all.push_back({.f = std::nan("")});
  return all;
}

TEST(Expand, floats_narrow_to_nearest_even) {
  std::vector<Scalar> sample;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 16381)
    sample.push_back({.f = std::bit_cast<float>(static_cast<std::uint32_t>(bits))});
  for (DType to : narrow_floats) {
    expect_reference(Op::cast, DType::f32_, to, {sample});
    expect_reference(Op::cast, DType::f32_, to, {around_ties(to, DType::f32_)});
  }
}

TEST(Expand, f64_narrows_with_one_rounding) {
  for (DType to : narrow_floats) {
    std::vector<Scalar> values = around_ties(to, DType::f64_);
    for (double v : {1e-300, -1e-300, 1e300, -1e300, 0x1p-1074}) values.push_back({.f = v});
    expect_reference(Op::cast, DType::f64_, to, {values});
  }
}

TEST(Expand, integers_narrow_with_one_rounding) {
  for (DType from : {DType::i8_, DType::u8_, DType::i16_, DType::u16_, DType::i32_, DType::u32_, DType::i64_}) {
    std::vector<Scalar> values = {{.i = 0}};
    for (int high = 0; high < 63; ++high)
      for (int low = 0; low <= high; ++low)
        for (std::int64_t delta : {-1, 0, 1})
          for (std::int64_t sign : {-1, 1}) {
            const std::int64_t v = (std::int64_t{1} << high) + (std::int64_t{1} << low) / 2 * (high > low) + delta;
            values.push_back({.i = ops::wrap_to(from, sign * v)});
          }
    if (from == DType::i64_)
      for (std::int64_t v : {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
        values.push_back({.i = v});
    for (DType to : narrow_floats) expect_reference(Op::cast, from, to, {values});
  }
  for (DType to : narrow_floats) expect_reference(Op::cast, DType::bool_, to, {{{.i = 0}, {.i = 1}}});
}

TEST(Expand, clamp_is_minimum_of_maximum) {
  std::vector<Scalar> x, lo, hi;
  const double values[] = {std::nan(""), -infinity, -2, -0.0, 0.0, 1, 3, infinity};
  for (double a : values)
    for (double b : values)
      for (double c : values) {
        x.push_back({.f = a, .i = std::isfinite(a) ? static_cast<std::int64_t>(a) : 7});
        lo.push_back({.f = b, .i = std::isfinite(b) ? static_cast<std::int64_t>(b) : -7});
        hi.push_back({.f = c, .i = std::isfinite(c) ? static_cast<std::int64_t>(c) : 5});
      }
  for (DType t : {DType::f32_, DType::f64_, DType::i32_, DType::i64_}) expect_reference(Op::clamp, t, t, {x, lo, hi});
}

TEST(Expand, f64_composites_are_the_reference) {
  std::vector<Scalar> x, m;
  for (double a : {0.0, -0.0, 1.0, -3.5, 700.0, 1e-310, infinity, -infinity, std::nan("")})
    for (double b : {0.0, 2.0, -infinity, infinity, std::nan("")}) {
      x.push_back({.f = a});
      m.push_back({.f = b});
    }
  expect_reference(Op::exp_diff, DType::f64_, DType::f64_, {x, m});
  expect_reference(Op::rsqrt, DType::f64_, DType::f64_, {x}, 0x1p-51);
  expect_reference(Op::sigmoid, DType::f64_, DType::f64_, {x}, 0x1p-51);
}

// ---- the pass ----
struct Sample {
  Kernel k;
  Builder b{k};
  BufferId in, out;
  Sample() {
    k.name = "sample";
    for (auto access : {Buffer::Access::read, Buffer::Access::write}) {
      Buffer buffer;
      buffer.kind = Buffer::Kind::argument;
      buffer.access = access;
      buffer.tensor = static_cast<std::uint32_t>(k.buffers.size());
      buffer.name = access == Buffer::Access::read ? "source" : "target";
      buffer.dtype = DType::f32_;
      k.buffers.push_back(buffer);
    }
    in = {0};
    out = {1};
    k.phases.push_back({"main", b.integer(1), {}});
  }
  Block& body() { return k.phases[0].body; }
  ExprId exp_of_load() { return b.apply(Op::exp, {b.load(in, b.integer(0))}); }
};

bool expanded_remains(const Kernel& k, ExprId e) {
  if (const auto* load = std::get_if<Load>(&k[e].node))
    return expanded_remains(k, load->ref.offset) || (load->guard && expanded_remains(k, *load->guard)) ||
           (load->otherwise && expanded_remains(k, *load->otherwise));
  const auto* apply = std::get_if<Apply>(&k[e].node);
  if (!apply) return false;
  if (ops::info(apply->op).kind == ops::Kind::expanded) return true;
  for (ExprId arg : apply->args)
    if (expanded_remains(k, arg)) return true;
  return false;
}

template <class T>
const T& last(const Kernel& k, const Block& block) {
  return std::get<T>(k[block.back()].node);
}

TEST(Expand, binds_before_the_statement_that_holds_the_operation) {
  Sample s;
  s.b.store(s.body(), s.out, s.b.integer(0), s.exp_of_load(), s.b.apply(Op::gt, {s.exp_of_load(), s.b.constant(DType::f32_, 2)}));
  const Kernel k = expand(std::move(s.k));
  verify(k, "expand");
  const Block& body = k.phases[0].body;
  ASSERT_GT(body.size(), 2u);
  const auto& store = last<Store>(k, body);
  EXPECT_FALSE(expanded_remains(k, store.value));
  EXPECT_FALSE(expanded_remains(k, *store.guard));
  for (std::size_t i = 0; i + 1 < body.size(); ++i) EXPECT_TRUE(std::holds_alternative<Let>(k[body[i]].node));
}

TEST(Expand, guarded_loads_stay_guarded) {
  Sample s;
  const ExprId guard = s.b.apply(Op::lt, {s.b.group(), s.b.integer(5)});
  const ExprId load = s.b.load(s.in, s.b.group(), guard, s.exp_of_load());
  s.b.store(s.body(), s.out, s.b.integer(0), s.b.apply(Op::log, {load}));
  const Kernel k = expand(std::move(s.k));
  verify(k, "expand");
  int guarded = 0;
  for (StmtId id : k.phases[0].body)
    if (const auto* let = std::get_if<Let>(&k[id].node)) {
      EXPECT_FALSE(expanded_remains(k, let->value));
      if (const auto* l = std::get_if<Load>(&k[let->value].node)) guarded += l->guard.has_value();
    }
  EXPECT_EQ(guarded, 1);
}

TEST(Expand, what_a_loop_carries_on_is_computed_at_the_end_of_its_body) {
  Sample s;
  For loop;
  loop.var = s.b.fresh("i", DType::i64_);
  loop.lo = s.b.integer(0);
  loop.hi = s.b.integer(3);
  For::Carry carry;
  carry.inner = s.b.fresh("inner", DType::f32_);
  carry.result = s.b.fresh("result", DType::f32_);
  carry.init = s.exp_of_load();
  carry.next = s.b.apply(Op::tanh, {s.b.var(carry.inner)});
  loop.carries.push_back(carry);
  s.body().push_back(s.b.statement(loop));
  s.b.store(s.body(), s.out, s.b.integer(0), s.b.var(carry.result));
  const Kernel k = expand(std::move(s.k));
  verify(k, "expand");
  const Block& body = k.phases[0].body;
  const auto& after = std::get<For>(k[body[body.size() - 2]].node);
  EXPECT_GT(body.size(), 2u);        // of init, before the loop
  EXPECT_GT(after.body.size(), 0u);  // of next
  EXPECT_FALSE(expanded_remains(k, after.carries[0].init));
  EXPECT_FALSE(expanded_remains(k, after.carries[0].next));
}

TEST(Expand, a_condition_is_computed_before_it_is_asked) {
  Sample s;
  If branch;
  branch.condition = s.b.apply(Op::gt, {s.exp_of_load(), s.b.constant(DType::f32_, 1)});
  s.b.store(branch.then, s.out, s.b.integer(0), s.exp_of_load());
  s.body().push_back(s.b.statement(branch));
  const Kernel k = expand(std::move(s.k));
  verify(k, "expand");
  const auto& after = last<If>(k, k.phases[0].body);
  EXPECT_FALSE(expanded_remains(k, after.condition));
  EXPECT_GT(after.then.size(), 1u);
  EXPECT_GT(k.phases[0].body.size(), 1u);
}

TEST(Expand, a_constant_is_converted_where_it_stands) {
  Sample s;
  s.b.store(s.body(), s.out, s.b.integer(0), s.b.cast(DType::f32_, s.b.cast(DType::f8e4m3_, s.b.constant(DType::f32_, 17.5))));
  const Kernel k = expand(std::move(s.k));
  verify(k, "expand");
  ASSERT_EQ(k.phases[0].body.size(), 1u);
  const auto* value = std::get_if<Const>(&k[last<Store>(k, k.phases[0].body).value].node);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->f, 18);
}

TEST(Expand, f64_functions_stay_for_the_c_library) {
  const Kernel k = expand(ulp::elementwise(Op::exp, DType::f64_, DType::f64_));
  EXPECT_EQ(k.phases[0].body.size(), 1u);
}

TEST(Expand, an_expansion_stays_short) {
  for (const ulp::Function& f : ulp::functions()) {
    const Kernel k = expand(ulp::elementwise(f.op, DType::f32_, DType::f32_));
    EXPECT_LE(k.phases[0].body.size(), 32u) << ops::name(f.op);
  }
}

}  // namespace
}  // namespace cosmati::kernel
