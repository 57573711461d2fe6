// Structure: loops, guards, branches, phases, scratch, addresses, and what a launch may not disturb.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cosmati/error.h>

#include "cpu/fixture.h"

namespace cosmati::test {
namespace {

using Kind = kernel::Buffer::Kind;

std::vector<ops::Scalar> integers(std::initializer_list<std::int64_t> list) {
  std::vector<ops::Scalar> values;
  for (const std::int64_t i : list) values.push_back({0, i});
  return values;
}

// y[g] = the g-th pair of Fibonacci numbers: two carries that swap, read after the loop.
TEST(launch, carried_values_move_at_once) {
  Kit k("fibonacci");
  const ParamId n = k.param("n");
  const BufferId y = k.out("y", DType::i64_);
  const VarId i = k.b.fresh("i", DType::i64_), a = k.b.fresh("a", DType::i64_), b = k.b.fresh("b", DType::i64_),
              ra = k.b.fresh("ra", DType::i64_), rb = k.b.fresh("rb", DType::i64_);
  Block body;
  body.push_back(k.b.statement(
      kernel::For{i,
                  k.b.integer(0),
                  k.b.group(),
                  {{a, ra, k.b.integer(0), k.b.var(b)}, {b, rb, k.b.integer(1), k.b.apply(Op::add, {k.b.var(a), k.b.var(b)})}},
                  {}}));
  k.b.store(body, y, k.b.apply(Op::mul, {k.b.group(), k.b.integer(2)}), k.b.var(ra));
  k.b.store(body, y, k.b.apply(Op::add, {k.b.apply(Op::mul, {k.b.group(), k.b.integer(2)}), k.b.integer(1)}), k.b.var(rb));
  k.phase("main", k.b.param(n), body);
  Array out(DType::i64_, 20);
  run(k.kernel, {out.memory()}, {10});
  std::int64_t x = 0, z = 1;
  for (int g = 0; g < 10; ++g, std::swap(x, z), z += x) {
    EXPECT_EQ(out[2 * g].i, x);
    EXPECT_EQ(out[2 * g + 1].i, z);
  }
}

TEST(launch, loops_over_nothing_give_what_entered) {
  for (const auto& [lo, hi] :
       {std::pair<std::int64_t, std::int64_t>{0, 0}, {5, 3}, {INT64_MAX, INT64_MIN}, {INT64_MAX - 1, INT64_MAX}}) {
    Kit k("empty");
    const ParamId l = k.param("l"), h = k.param("h");
    const BufferId y = k.out("y", DType::i64_);
    const VarId i = k.b.fresh("i", DType::i64_), a = k.b.fresh("a", DType::i64_), r = k.b.fresh("r", DType::i64_);
    Block body;
    body.push_back(k.b.statement(kernel::For{
        i, k.b.param(l), k.b.param(h), {{a, r, k.b.integer(41), k.b.apply(Op::add, {k.b.var(a), k.b.integer(1)})}}, {}}));
    k.b.store(body, y, k.b.integer(0), k.b.var(r));
    k.phase("main", k.b.integer(1), body);
    Array out(DType::i64_, 1);
    run(k.kernel, {out.memory()}, {lo, hi});
    EXPECT_EQ(out[0].i, lo == INT64_MAX - 1 ? 42 : 41);
  }
}

// Nothing behind a false guard is touched: neither the element, nor what its offset or value would read.
TEST(launch, false_guards_touch_no_memory) {
  Kit k("guards");
  const ParamId on = k.param("on", DType::bool_);
  const BufferId x = k.argument("x", DType::f32_), index = k.argument("index", DType::i64_), y = k.out("y", DType::f32_),
                 z = k.out("z", DType::f32_);
  Block body;
  const ExprId gathered = k.b.load(x, k.b.load(index, k.b.integer(0)), k.b.param(on), k.b.constant(DType::f32_, 7));
  k.b.store(body, y, k.b.integer(0), gathered);
  k.b.store(body, z, k.b.integer(0), k.b.load(x, k.b.integer(0)), k.b.param(on));
  k.phase("main", k.b.integer(1), body);
  Array out(DType::f32_, 1), data(DType::f32_, {{1, 0}, {2, 0}}), at(DType::i64_, integers({1})), z1(DType::f32_, 1);
  const kernel::Memory nothing = {};
  run(k.kernel, {nothing, nothing, out.memory(), nothing}, {0});
  EXPECT_EQ(out[0].f, 7);
  run(k.kernel, {data.memory(), at.memory(), out.memory(), z1.memory()}, {1});
  EXPECT_EQ(out[0].f, 2);
  EXPECT_EQ(z1[0].f, 1);
}

TEST(launch, branches_run_one_side) {
  Kit k("branches");
  const ParamId n = k.param("n");
  const BufferId x = k.argument("x", DType::bool_), y = k.out("y", DType::i32_);
  Block then, otherwise, body;
  k.b.store(then, y, k.b.group(), k.b.integer(1, DType::i32_));
  k.b.store(otherwise, y, k.b.group(), k.b.integer(2, DType::i32_));
  body.push_back(k.b.statement(kernel::If{k.b.load(x, k.b.group()), then, otherwise}));
  k.phase("main", k.b.param(n), body);
  Array in(DType::bool_, integers({1, 0, 0, 1})), out(DType::i32_, 4);
  in.bytes[3] = 0x80;  // any byte that is not 0 is true
  run(k.kernel, {in.memory(), out.memory()}, {4});
  EXPECT_EQ(out[0].i, 1);
  EXPECT_EQ(out[1].i, 2);
  EXPECT_EQ(out[2].i, 2);
  EXPECT_EQ(out[3].i, 1);
}

TEST(launch, params_of_every_type_arrive) {
  Kit k("params");
  const std::vector<std::pair<DType, std::int64_t>> rows = {{DType::bool_, 1},
                                                            {DType::i8_, -128},
                                                            {DType::i16_, -2},
                                                            {DType::i32_, INT32_MIN},
                                                            {DType::i64_, -5},
                                                            {DType::u8_, 255},
                                                            {DType::u16_, 65535},
                                                            {DType::u32_, 4294967295},
                                                            {DType::f16_, 0xC000},
                                                            {DType::bf16_, 0x7F80},
                                                            {DType::f32_, std::bit_cast<std::int32_t>(-1.5f)},
                                                            {DType::f64_, std::bit_cast<std::int64_t>(1e300)}};
  Block body;
  std::vector<Array> out;
  std::vector<std::int64_t> words;
  for (const auto& [t, word] : rows) {
    const ParamId p = k.param("p" + std::to_string(words.size()), t);
    k.b.store(body, k.out("y" + std::to_string(words.size()), t), k.b.integer(0), k.b.param(p));
    out.emplace_back(t, 1);
    words.push_back(word);
  }
  k.phase("main", k.b.integer(1), body);
  std::vector<kernel::Memory> memory;
  for (Array& a : out) memory.push_back(a.memory());
  run(k.kernel, memory, words);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(std::memcmp(out[i].at(0), &words[i], byte_size(rows[i].first)), 0) << name(rows[i].first);
}

// Two phases through launch scratch: y[g] = sum of the squares written by the first phase.
TEST(launch, phases_wait_for_each_other) {
  Kit k("phases");
  const ParamId n = k.param("n");
  const BufferId y = k.out("y", DType::i64_), kept = k.scratch("kept", DType::i64_, Kind::launch_scratch, k.b.param(n));
  Block first, second;
  k.b.store(first, kept, k.b.group(), k.b.apply(Op::mul, {k.b.group(), k.b.group()}));
  const VarId i = k.b.fresh("i", DType::i64_), a = k.b.fresh("a", DType::i64_), r = k.b.fresh("r", DType::i64_);
  second.push_back(
      k.b.statement(kernel::For{i,
                                k.b.integer(0),
                                k.b.param(n),
                                {{a, r, k.b.integer(0), k.b.apply(Op::add, {k.b.var(a), k.b.load(kept, k.b.var(i))})}},
                                {}}));
  k.b.store(second, y, k.b.group(), k.b.var(r));
  k.phase("square", k.b.param(n), first);
  k.phase("sum", k.b.param(n), second);
  const std::int64_t size = 3000;
  Array out(DType::i64_, size), scratch(DType::i64_, size);
  run(k.kernel, {out.memory(), scratch.memory()}, {size}, {.threads = 7});
  for (std::int64_t g = 0; g < size; ++g) ASSERT_EQ(out[g].i, (size - 1) * size * (2 * size - 1) / 6);
}

// Each group fills its worker's scratch and sums it; a group that saw another worker's elements would sum something else.
kernel::Kernel private_sums(Kit& k) {
  const ParamId n = k.param("n"), m = k.param("m");
  const BufferId y = k.out("y", DType::i64_), own = k.scratch("own", DType::i32_, Kind::worker_scratch, k.b.param(m)),
                 who = k.out("who", DType::i64_);
  const VarId i = k.b.fresh("i", DType::i64_), j = k.b.fresh("j", DType::i64_), a = k.b.fresh("a", DType::i64_),
              r = k.b.fresh("r", DType::i64_);
  Block fill, body;
  k.b.store(fill, own, k.b.var(i), k.b.cast(DType::i32_, k.b.apply(Op::add, {k.b.group(), k.b.var(i)})));
  body.push_back(k.b.statement(kernel::For{i, k.b.integer(0), k.b.param(m), {}, fill}));
  body.push_back(k.b.statement(
      kernel::For{j,
                  k.b.integer(0),
                  k.b.param(m),
                  {{a, r, k.b.integer(0), k.b.apply(Op::add, {k.b.var(a), k.b.cast(DType::i64_, k.b.load(own, k.b.var(j)))})}},
                  {}}));
  k.b.store(body, y, k.b.group(), k.b.var(r));
  k.b.store(body, who, k.b.group(), k.b.worker());
  k.phase("main", k.b.param(n), body);
  return k.kernel;
}

TEST(launch, workers_have_their_own_scratch_at_any_thread_count) {
  Kit k("private");
  private_sums(k);
  const std::int64_t n = 500, m = 301;
  for (const int threads : {0, 1, 2, 3, 16}) {
    const auto code = cpu::compile(k.kernel, {.threads = threads});
    ASSERT_TRUE(threads == 0 ? code->workers() >= 1 : code->workers() == threads);
    Array out(DType::i64_, n), scratch(DType::i32_, m * code->workers()), who(DType::i64_, n);
    code->run({{out.memory(), scratch.memory(), who.memory()}, {n, m}});
    for (std::int64_t g = 0; g < n; ++g) {
      ASSERT_EQ(out[g].i, g * m + m * (m - 1) / 2);
      ASSERT_GE(who[g].i, 0);
      ASSERT_LT(who[g].i, code->workers());
    }
  }
}

TEST(launch, a_callers_executor_runs_the_tasks) {
  Kit k("private");
  private_sums(k);
  const std::int64_t n = 500, m = 301;
  int calls = 0, ran = 0;
  const auto code = cpu::compile(k.kernel, {.threads = 4, .executor = [&](int tasks, const std::function<void(int)>& task) {
                                              ++calls;
                                              for (int i = tasks; i-- > 0; ++ran) task(i);
                                            }});
  Array out(DType::i64_, n), scratch(DType::i32_, m * 4), who(DType::i64_, n);
  const std::int64_t untouched = scratch[0].i;
  code->run({{out.memory(), scratch.memory(), who.memory()}, {n, m}});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ran, 4);
  for (std::int64_t g = 0; g < n; ++g) ASSERT_EQ(out[g].i, g * m + m * (m - 1) / 2);
  // The task that ran first had every group, in its own part of the scratch.
  EXPECT_EQ(scratch[3 * m].i, n - 1);
  EXPECT_EQ(scratch[3 * m - 1].i, untouched);
  code->run({{out.memory(), scratch.memory(), who.memory()}, {2, 3}});  // too small to hand over
  EXPECT_EQ(calls, 1);
}

TEST(launch, no_groups_and_negative_groups_do_nothing) {
  Kit k("none");
  const ParamId n = k.param("n");
  const BufferId y = k.out("y", DType::i64_);
  Block body;
  k.b.store(body, y, k.b.group(), k.b.group());
  k.phase("main", k.b.param(n), body);
  const auto code = cpu::compile(k.kernel);
  for (const std::int64_t groups : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) code->run({{kernel::Memory{}}, {groups}});
}

// Elements lie at any byte address, and before the origin where a stride is negative.
TEST(launch, views_have_any_alignment_and_direction) {
  for (const DType t : {DType::i16_, DType::f32_, DType::f64_, DType::i64_}) {
    Kit k("reverse");
    const ParamId n = k.param("n"), s = k.param("s");
    const BufferId x = k.argument("x", t), y = k.out("y", t);
    Block body;
    k.b.store(body, y, k.b.group(), k.b.load(x, k.b.apply(Op::mul, {k.b.group(), k.b.param(s)})));
    k.phase("main", k.b.param(n), body);
    const std::int64_t size = 100, bytes = byte_size(t);
    std::vector<unsigned char> in(size * bytes + 1), out(size * bytes + 3);
    std::iota(in.begin(), in.end(), static_cast<unsigned char>(1));
    run(k.kernel, {{in.data() + 1 + (size - 1) * bytes, 1 - size, 1}, {out.data() + 3, 0, size}}, {size, -1});
    for (std::int64_t g = 0; g < size; ++g)
      ASSERT_EQ(std::memcmp(out.data() + 3 + g * bytes, in.data() + 1 + (size - 1 - g) * bytes, bytes), 0);
  }
}

kernel::Kernel roundings(Kit& k) {
  const ParamId n = k.param("n");
  const BufferId x = k.argument("x", DType::f32_), y = k.out("y", DType::f32_);
  Block body;
  const auto at = [&] { return k.b.load(x, k.b.group()); };
  const ExprId third = k.b.apply(Op::div, {at(), k.b.constant(DType::f32_, 3)});
  const ExprId whole = k.b.apply(Op::round, {at()});
  const ExprId power = k.b.cast(DType::f32_, k.b.apply(Op::exp, {k.b.cast(DType::f64_, k.b.apply(Op::neg, {at()}))}));
  k.b.store(body, y, k.b.group(), k.b.apply(Op::add, {third, k.b.apply(Op::mul, {power, whole})}));
  k.phase("main", k.b.param(n), body);
  return k.kernel;
}

TEST(launch, the_callers_float_state_changes_nothing_and_stays) {
  Kit k("roundings");
  roundings(k);
  std::vector<ops::Scalar> values;
  for (int i = 0; i < 20000; ++i) values.push_back({ops::round_to(DType::f32_, i % 2 ? 0.0131 * i : 1e-39 * i), 0});
  Array in(DType::f32_, values), plain(DType::f32_, values.size()), odd(DType::f32_, values.size());
  // The caller alone, and tasks on threads that start with the caller's state.
  const auto alone = cpu::compile(k.kernel, {.threads = 1});
  const auto spread = cpu::compile(k.kernel, {.threads = 2, .executor = [](int tasks, const std::function<void(int)>& task) {
                                                for (int i = 0; i < tasks; ++i) std::thread(task, i).join();
                                              }});
  alone->run({{in.memory(), plain.memory()}, {in.size()}});
  for (const auto* code : {alone.get(), spread.get()})
    for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(rounding);
#if defined(__x86_64__)
      const unsigned before = (_mm_getcsr() | 0x8040) & ~0x3fu;  // flush to zero, denormals are zero; no flag raised
      _mm_setcsr(before);
#endif
      code->run({{in.memory(), odd.memory()}, {in.size()}});
#if defined(__x86_64__)
      const unsigned after = _mm_getcsr();
      _mm_setcsr(0x1f80);
      EXPECT_EQ(after, before);
#else
      EXPECT_EQ(std::fegetround(), rounding);
#endif
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(odd.bytes, plain.bytes);
    }
  for (const std::int64_t i : {2, 4, 100}) {
    const float x = static_cast<float>(values[i].f);
    EXPECT_EQ(plain[i].f, x / 3 + static_cast<float>(std::exp(-static_cast<double>(x))) * std::nearbyint(x));
    EXPECT_NE(plain[i].f, 0);
  }
}

TEST(launch, products_and_sums_are_not_contracted) {
  Kit k("contract");
  const BufferId x = k.argument("x", DType::f32_), y = k.out("y", DType::f32_);
  Block body;
  const auto at = [&](int i) { return k.b.load(x, k.b.integer(i)); };
  k.b.store(body, y, k.b.integer(0), k.b.apply(Op::add, {k.b.apply(Op::mul, {at(0), at(1)}), at(2)}));
  k.b.store(body, y, k.b.integer(1), k.b.apply(Op::fma, {at(0), at(1), at(2)}));
  k.phase("main", k.b.integer(1), body);
  const float e = 1 + 0x1p-12f;
  Array in(DType::f32_, {{e, 0}, {e, 0}, {-(1 + 0x1p-11f), 0}}), out(DType::f32_, 2);
  run(k.kernel, {in.memory(), out.memory()}, {});
  EXPECT_EQ(out[0].f, 0);
  EXPECT_EQ(out[1].f, 0x1p-24);
}

TEST(launch, both_optimisation_levels_give_the_same_bits) {
  Kit k("roundings");
  roundings(k);
  std::mt19937 random(3);
  std::vector<ops::Scalar> values;
  for (int i = 0; i < 1000; ++i) values.push_back({static_cast<float>(std::normal_distribution<>(0, 10)(random)), 0});
  Array in(DType::f32_, values), a(DType::f32_, 1000), b(DType::f32_, 1000);
  run(k.kernel, {in.memory(), a.memory()}, {1000}, {.optimization = 0});
  run(k.kernel, {in.memory(), b.memory()}, {1000}, {.optimization = 1});
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(launch, deep_expressions_are_refused_not_crashed) {
  Kit k("deep");
  const BufferId y = k.out("y", DType::f32_);
  Block body;
  ExprId sum = k.b.constant(DType::f32_, 1);
  for (int i = 0; i < 100000; ++i) sum = k.b.apply(Op::neg, {sum});
  k.b.store(body, y, k.b.integer(0), sum);
  k.phase("main", k.b.integer(1), body);
  EXPECT_THROW(cpu::compile(k.kernel), Error);
}

TEST(launch, code_is_shown_as_llvm_and_assembly) {
  Kit k("shown");
  roundings(k);
  EXPECT_NE(cpu::emit(k.kernel, "llvm").find("define void @shown_phase_0("), std::string::npos);
  EXPECT_NE(cpu::emit(k.kernel, "asm").find("shown_phase_0:"), std::string::npos);
  EXPECT_THROW(cpu::emit(k.kernel, "ptx"), Error);
  EXPECT_EQ(cpu::emit(k.kernel, "llvm").find("alloca"), std::string::npos);
}

}  // namespace
}  // namespace cosmati::test
