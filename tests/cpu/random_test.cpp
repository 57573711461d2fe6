// Random kernels of nested loops with carries, branches, guards, every operation and every conversion, and of several lanes with
// accesses to neighbours, to elements apart, and exchanges, with numbers at the ends of the integer types among them: the CPU and
// the simulator store the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "cpu/fixture.h"

namespace cosmati::test {
namespace {

constexpr std::int64_t elements = 37;  // of every array

// A number near an end of i64, of i32 or of u32; what is beyond wraps.
std::int64_t near_an_end(std::mt19937_64& random) {
  constexpr std::int64_t ends[] = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::uint32_t>::max()};
  const std::size_t kind = random() % (2 * std::size(ends));  // the end of i64, which lanes count up to, half of the time
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(ends[kind < std::size(ends) ? kind : 0]) + random() % 41 - 20);
}

class Generator {
 public:
  // ends: with numbers at the ends of the integer types.
  Generator(std::uint64_t seed, int lanes, bool ends) : k_("random"), random_(seed), lanes_(lanes), ends_(ends) {}

  // x of every type to read, one y of a few types to write; the kernel, expanded.
  kernel::Kernel make() {
    n_ = k_.param("n");
    scale_ = k_.param("scale", DType::f32_);
    for (int t = 0; t < dtype_count; ++t) inputs_.push_back(k_.argument("x" + std::to_string(t), static_cast<DType>(t)));
    Block body;
    element_ = k_.b.group();
    if (lanes_ > 1) {
      element_ = k_.b.let(body, "element",
                          k_.b.apply(Op::add, {k_.b.apply(Op::mul, {k_.b.group(), k_.b.integer(lanes_)}), k_.b.lane()}));
      inside_ = k_.b.let(body, "inside", k_.b.apply(Op::lt, {element_, k_.b.param(n_)}));
    }
    statements(body, 3);
    blocks_.push_back(&body);
    for (int i = 0; i < outputs; ++i) {
      const DType t = static_cast<DType>(pick(dtype_count));
      const BufferId y = k_.out("y" + std::to_string(i), t);
      k_.b.store(body, y, element_, value(t, 3), inside_);
    }
    for (int i = 0; ends_ && i < masks; ++i)
      k_.b.store(body, k_.out("m" + std::to_string(i), DType::bool_), element_, bound(), inside_);
    const ExprId more = k_.b.apply(Op::add, {k_.b.param(n_), k_.b.integer(lanes_ - 1)});
    k_.phase("main", k_.b.apply(Op::floordiv, {more, k_.b.integer(lanes_)}), body);
    k_.kernel.phases[0].lanes = lanes_;
    kernel::verify(k_.kernel, "random");
    kernel::Kernel expanded = kernel::expand(k_.kernel, cpu::native());
    kernel::verify(expanded, "expand");
    return expanded;
  }

  static constexpr int outputs = 3, masks = 6;

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  DType any() { return static_cast<DType>(pick(dtype_count)); }

  // Where the types make an operation illegal for the language, arithmetic happens in the compute type.
  ExprId value(DType t, int depth) {
    const DType compute = compute_type(t);
    if (depth <= 0 || pick(8) == 0) return leaf(t);
    if (compute != t || pick(5) == 0) return k_.b.cast(t, value(compute == t ? compute_type(any()) : compute, depth - 1));
    if (pick(6) == 0) return load(t, depth);
    if (ends_ && is_bool(t) && pick(2)) return bound();
    if (lanes_ > 1 && pick(10) == 0) return k_.b.swap(value(t, depth - 1), 1u << pick(lanes_ == 2 ? 1 : 2));
    for (;;) {
      const Op op = static_cast<Op>(pick(ops::op_count - 2));
      const ops::OpInfo& row = ops::info(op);
      using ops::Typing;
      const bool gives_bool = row.typing == Typing::comparison || row.typing == Typing::test || row.typing == Typing::logical;
      if (gives_bool != is_bool(t) && row.typing != Typing::select) continue;
      DType argument = t;
      if (row.typing == Typing::comparison || row.typing == Typing::test) do
          argument = compute_type(any());
        while (is_bool(argument) || (row.typing == Typing::test && !is_float(argument)));
      else if (row.typing != Typing::logical && row.typing != Typing::select && !(is_float(t) ? row.on_floats : row.on_integers))
        continue;
      std::vector<ExprId> args;
      for (int a = 0; a < row.arity; ++a)
        args.push_back(value(a == 0 && row.typing == Typing::select ? DType::bool_ : argument, depth - 1));
      return k_.b.apply(op, args);
    }
  }

  ExprId leaf(DType t) {
    std::vector<VarId> fit;
    for (const VarId v : scope_)
      if (k_.kernel[v].dtype == t) fit.push_back(v);
    if (!fit.empty() && pick(3)) return k_.b.var(fit[pick(static_cast<int>(fit.size()))]);
    if (t == DType::i64_ && pick(2)) return pick(4) ? element_ : k_.b.param(n_);
    if (t == DType::f32_ && pick(4) == 0) return k_.b.param(scale_);
    if (pick(2)) return load(t, 0);
    if (is_bool(t)) return k_.b.boolean(pick(2));
    if (is_int(t)) return k_.b.integer(ends_ && pick(3) == 0 ? near_an_end(random_) : pick(40) - 20, t);
    return k_.b.constant(t, std::normal_distribution<>(0, 3)(random_));
  }

  // A number that nothing folds.
  ExprId hidden(std::int64_t v) {
    return k_.b.apply(Op::sub,
                      {k_.b.param(n_), k_.b.integer(static_cast<std::int64_t>(elements - static_cast<std::uint64_t>(v)))});
  }

  // An affine function of the element, near an end of a type or near 0.
  ExprId affine(bool far) {
    ExprId from = element_;
    if (pick(3) == 0) from = k_.b.apply(Op::mul, {from, k_.b.integer(pick(2) ? 2 : -1)});
    const std::int64_t by = far ? near_an_end(random_) : pick(7) - 3;
    return k_.b.apply(Op::add, {from, far && pick(2) ? hidden(by) : k_.b.integer(by)});
  }

  // It, compared with a bound.
  ExprId bound() {
    constexpr Op comparisons[] = {Op::lt, Op::lt, Op::lt, Op::le, Op::gt, Op::ge, Op::eq, Op::ne};
    const std::int64_t to = pick(3) == 0 ? pick(40) : near_an_end(random_);
    return k_.b.apply(comparisons[pick(std::size(comparisons))], {affine(pick(2)), pick(2) ? k_.b.integer(to) : hidden(to)});
  }

  ExprId load(DType t, int depth) {
    const BufferId x = inputs_[static_cast<int>(t)];
    if (depth == 0 || pick(2)) {
      if (!inside_) return k_.b.load(x, element_);
      const ExprId zero = is_bool(t) ? k_.b.boolean(false) : is_float(t) ? k_.b.constant(t, 0) : k_.b.integer(0, t);
      if (!ends_ || pick(4)) return k_.b.load(x, element_, inside_, zero);
      const ExprId end = k_.b.apply(Op::minimum, {k_.b.param(n_), hidden(near_an_end(random_))});
      return k_.b.load(x, element_, k_.b.apply(Op::lt, {element_, end}), zero);
    }
    // The element may lie outside; the guard says whether it does.
    Block& here = *blocks_.back();
    const ExprId at = k_.b.let(here, "at", affine(ends_ && pick(3) == 0));
    const ExprId inside =
        k_.b.apply(Op::logical_and, {k_.b.apply(Op::ge, {at, k_.b.integer(0)}), k_.b.apply(Op::lt, {at, k_.b.param(n_)})});
    return k_.b.load(x, at, inside, value(t, depth - 1));
  }

  void let(Block& block) {
    const ExprId e = value(compute_type(any()), 3);
    const VarId v = k_.b.fresh("v", k_.kernel[e].dtype);
    block.push_back(k_.b.statement(kernel::Let{v, e}));
    scope_.push_back(v);
  }

  void statements(Block& block, int depth) {
    blocks_.push_back(&block);
    for (int count = 1 + pick(3); count-- > 0;) {
      if (depth == 0 || pick(2))
        let(block);
      else if (lanes_ > 1 || blocks_.size() > 1 || pick(4))  // a branch stores, and a store inside a loop would happen twice
        loop(block, depth);
      else
        branch(block, depth);
    }
    blocks_.pop_back();
  }

  void loop(Block& block, int depth) {
    kernel::For f;
    f.lo = k_.b.integer(pick(4) - 1);
    f.hi = pick(3) ? k_.b.integer(pick(5)) : k_.b.apply(Op::mod, {k_.b.group(), k_.b.integer(5)});
    if (ends_ && pick(4) == 0) {  // up to an end; from beyond it the loop is empty
      const std::int64_t lo = near_an_end(random_);
      f.lo = pick(2) ? k_.b.integer(lo) : hidden(lo);
      f.hi = k_.b.apply(Op::add, {pick(2) ? k_.b.integer(lo) : hidden(lo), f.hi});
    }
    for (int c = pick(4); c-- > 0;) {
      const ExprId init = value(compute_type(any()), 2);
      const DType t = k_.kernel[init].dtype;
      f.carries.push_back({k_.b.fresh("c", t), k_.b.fresh("r", t), init, ExprId{}});
    }
    f.var = k_.b.fresh("i", DType::i64_);
    const auto outer = scope_;
    scope_.push_back(f.var);
    for (const auto& carry : f.carries) scope_.push_back(carry.inner);
    statements(f.body, depth - 1);
    blocks_.push_back(&f.body);
    for (auto& carry : f.carries) carry.next = value(k_.kernel[carry.inner].dtype, 2);
    blocks_.pop_back();
    scope_ = outer;
    for (const auto& carry : f.carries) scope_.push_back(carry.result);
    block.push_back(k_.b.statement(f));
  }

  void branch(Block& block, int depth) {
    kernel::If i;
    i.condition = value(DType::bool_, 2);
    const auto outer = scope_;
    statements(i.then, depth - 1);
    scope_ = outer;
    statements(i.otherwise, depth - 1);
    scope_ = outer;
    // Each side stores its own view of the same element.
    const DType t = any();
    const BufferId y = k_.out("b" + std::to_string(extra_++), t);
    k_.b.store(i.then, y, k_.b.integer(0), k_.b.load(inputs_[static_cast<int>(t)], k_.b.group()),
               k_.b.apply(Op::eq, {k_.b.group(), k_.b.integer(0)}));
    block.push_back(k_.b.statement(i));
  }

  Kit k_;
  std::mt19937_64 random_;
  int lanes_;
  bool ends_;
  ParamId n_, scale_;
  ExprId element_;  // which element this lane stores, a leaf
  std::optional<ExprId> inside_;
  std::vector<BufferId> inputs_;
  std::vector<VarId> scope_;
  std::vector<Block*> blocks_;
  int extra_ = 0;
};

ops::Scalar any_scalar(DType t, std::mt19937_64& random, bool ends) {
  const int kind = static_cast<int>(random() % 10);
  if (is_bool(t)) return {0, static_cast<std::int64_t>(random() % 2)};
  if (is_int(t)) {
    if (ends && kind > 6) return {0, ops::wrap_to(t, near_an_end(random))};
    return {0, ops::wrap_to(t, kind < 5 ? static_cast<std::int64_t>(random() % 40) - 20 : static_cast<std::int64_t>(random()))};
  }
  constexpr double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40};
  const double x = kind == 0 ? special[random() % 6] : std::normal_distribution<>(0, kind < 7 ? 1 : 1000)(random);
  return {ops::round_to(t, x), 0};
}

void hold(std::uint64_t seed, bool ends) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int lanes[] = {1, 1, 2, 4, 8, 16};
  const kernel::Kernel k = Generator(seed, lanes[seed % 6], ends).make();
  std::mt19937_64 random(seed);
  std::vector<Array> a, b;
  for (const kernel::Buffer& buffer : k.buffers) {
    std::vector<ops::Scalar> values;
    for (std::int64_t i = 0; i < elements; ++i) values.push_back(any_scalar(buffer.dtype, random, ends));
    a.emplace_back(buffer.dtype, values);
    b.push_back(a.back());
  }
  std::vector<kernel::Memory> ma, mb;
  for (Array& x : a) ma.push_back(x.memory());
  for (Array& x : b) mb.push_back(x.memory());
  const std::vector<std::int64_t> params = {elements, 0x3f19999a};
  kernel::simulate(k)->run({ma, params});
  run(k, mb, params, {.threads = 3});
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t e = 0; e < elements; ++e)
      ASSERT_TRUE(same(a[i].dtype, a[i].at(e), b[i].at(e)))
          << k.buffers[i].name << "[" << e << "]: sim " << (is_float(a[i].dtype) ? a[i][e].f : static_cast<double>(a[i][e].i))
          << " cpu " << (is_float(a[i].dtype) ? b[i][e].f : static_cast<double>(b[i][e].i)) << "\n"
          << kernel::print(k);
}

TEST(random_kernels, store_the_bits_of_the_simulator) {
  // Among these is a kernel that LLVM's combiner does not finish in one sweep.
  constexpr std::uint64_t first = 20200;
  for (std::uint64_t seed = first; seed < first + 150 && !testing::Test::HasFatalFailure(); ++seed) hold(seed, false);
}

TEST(random_kernels, store_the_bits_of_the_simulator_at_the_ends_of_integers) {
  for (std::uint64_t seed = 1; seed <= 120 && !testing::Test::HasFatalFailure(); ++seed) hold(seed, true);
}

}  // namespace
}  // namespace cosmati::test
