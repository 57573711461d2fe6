// A fast evaluator of straight-line kernels: Lets and one Store at [group], with Loads at [group]. Each operation runs over
// `width` lanes in a loop that the compiler vectorises; what has no loop here falls back to the reference of ops, lane by lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "kernel/kernel.h"
#include "support/check.h"

namespace cosmati::ulp {

using kernel::ExprId;
using ops::Op;

inline constexpr int width = 512;

class Lanes {
 public:
  explicit Lanes(const kernel::Kernel& k) : k_(k) {
    inputs_.resize(k.buffers.size());
    for (std::size_t b = 0; b < k.buffers.size(); ++b) inputs_[b] = fresh();
    for (kernel::StmtId s : k.phases.at(0).body) {
      if (const auto* let = std::get_if<kernel::Let>(&k[s].node)) {
        vars_[let->var.index] = compile(let->value);
        kept_[vars_[let->var.index]] = true;
      } else {
        const auto* store = std::get_if<kernel::Store>(&k[s].node);
        COSMATI_CHECK(store, "straight-line code only");
        output_ = compile(store->value);
      }
    }
  }

  template <class T>
  T* input(int buffer) {
    return slot<T>(inputs_[buffer]);
  }
  template <class T>
  const T* output() {
    return slot<T>(output_);
  }

  void run() {
    for (const Step& s : steps_)
      if (!fast(s)) slow(s);
  }

 private:
  struct Step {
    Op op;
    DType argument, result;
    int args[3], out;
  };
  struct alignas(64) Slot {
    unsigned char bytes[8 * width];
  };

  int fresh() {
    if (!free_.empty()) {
      const int s = free_.back();
      free_.pop_back();
      return s;
    }
    slots_.emplace_back();
    kept_.push_back(false);
    return static_cast<int>(slots_.size()) - 1;
  }

  int compile(ExprId e) {
    const kernel::Expr& expr = k_[e];
    if (const auto* v = std::get_if<kernel::VarRef>(&expr.node)) return vars_.at(v->var.index);
    if (const auto* load = std::get_if<kernel::Load>(&expr.node)) {
      kept_[inputs_[load->ref.buffer.index]] = true;
      return inputs_[load->ref.buffer.index];
    }
    if (const auto* c = std::get_if<kernel::Const>(&expr.node)) {
      slots_.emplace_back();
      kept_.push_back(true);
      for (int i = 0; i < width; ++i)
        ops::store(expr.dtype, slots_.back().bytes + i * byte_size(expr.dtype), {.f = c->f, .i = c->i});
      return static_cast<int>(slots_.size()) - 1;
    }
    const auto* apply = std::get_if<kernel::Apply>(&expr.node);
    COSMATI_CHECK(apply, "an expression of values only");
    Step s{apply->op, k_[apply->args.back()].dtype, expr.dtype, {}, 0};
    for (std::size_t i = 0; i < apply->args.size(); ++i) s.args[i] = compile(apply->args[i]);
    s.out = fresh();
    for (std::size_t i = 0; i < apply->args.size(); ++i)
      if (!kept_[s.args[i]]) free_.push_back(s.args[i]);
    steps_.push_back(s);
    return s.out;
  }

  template <class T>
  T* slot(int s) {
    return reinterpret_cast<T*>(slots_[s].bytes);
  }

  template <class R, class T, class F>
  bool map(const Step& s, F f) {
    const T *a = slot<T>(s.args[0]), *b = slot<T>(s.args[1]), *c = slot<T>(s.args[2]);
    R* out = slot<R>(s.out);
    if constexpr (std::is_invocable_v<F, T>)
      for (int i = 0; i < width; ++i) out[i] = f(a[i]);
    else if constexpr (std::is_invocable_v<F, T, T>)
      for (int i = 0; i < width; ++i) out[i] = f(a[i], b[i]);
    else
      for (int i = 0; i < width; ++i) out[i] = f(a[i], b[i], c[i]);
    return true;
  }

  template <class T>
  bool select(const Step& s) {
    const std::uint8_t* c = slot<std::uint8_t>(s.args[0]);
    const T *a = slot<T>(s.args[1]), *b = slot<T>(s.args[2]);
    T* out = slot<T>(s.out);
    for (int i = 0; i < width; ++i) out[i] = c[i] ? a[i] : b[i];
    return true;
  }

  template <class T>
  bool common(const Step& s) {
    using B = std::uint8_t;
    switch (s.op) {
      case Op::where:
        return select<T>(s);
      case Op::eq:
        return map<B, T>(s, [](T a, T b) { return B(a == b); });
      case Op::ne:
        return map<B, T>(s, [](T a, T b) { return B(a != b); });
      case Op::lt:
        return map<B, T>(s, [](T a, T b) { return B(a < b); });
      case Op::le:
        return map<B, T>(s, [](T a, T b) { return B(a <= b); });
      case Op::gt:
        return map<B, T>(s, [](T a, T b) { return B(a > b); });
      case Op::ge:
        return map<B, T>(s, [](T a, T b) { return B(a >= b); });
      default:
        return false;
    }
  }

  template <class T>
  bool floats(const Step& s) {
    switch (s.op) {
      case Op::neg:
        return map<T, T>(s, [](T a) { return -a; });
      case Op::add:
        return map<T, T>(s, [](T a, T b) { return a + b; });
      case Op::sub:
        return map<T, T>(s, [](T a, T b) { return a - b; });
      case Op::mul:
        return map<T, T>(s, [](T a, T b) { return a * b; });
      case Op::div:
        return map<T, T>(s, [](T a, T b) { return a / b; });
      case Op::fma:
        return map<T, T>(s, [](T a, T b, T c) { return std::fma(a, b, c); });
      case Op::abs:
        return map<T, T>(s, [](T a) { return std::fabs(a); });
      case Op::sqrt:
        return map<T, T>(s, [](T a) { return std::sqrt(a); });
      case Op::floor:
        return map<T, T>(s, [](T a) { return std::floor(a); });
      case Op::round:
        return map<T, T>(s, [](T a) { return std::nearbyint(a); });
      case Op::is_nan:
        return map<std::uint8_t, T>(s, [](T a) { return std::uint8_t(a != a); });
      default:
        return common<T>(s);
    }
  }

  template <class T>
  bool integers(const Step& s) {
    using U = std::make_unsigned_t<T>;
    constexpr int mask = 8 * sizeof(T) - 1;
    switch (s.op) {
      case Op::add:
        return map<T, T>(s, [](T a, T b) { return T(U(a) + U(b)); });
      case Op::sub:
        return map<T, T>(s, [](T a, T b) { return T(U(a) - U(b)); });
      case Op::bit_and:
        return map<T, T>(s, [](T a, T b) { return T(a & b); });
      case Op::bit_or:
        return map<T, T>(s, [](T a, T b) { return T(a | b); });
      case Op::bit_xor:
        return map<T, T>(s, [](T a, T b) { return T(a ^ b); });
      case Op::shift_left:
        return map<T, T>(s, [](T a, T n) { return T(U(a) << (n & mask)); });
      case Op::shift_right:
        return map<T, T>(s, [](T a, T n) { return T(a >> (n & mask)); });
      case Op::minimum:
        return map<T, T>(s, [](T a, T b) { return a < b ? a : b; });
      default:
        return common<T>(s);
    }
  }

  template <class T>
  bool cast_from(const Step& s) {
    switch (s.result) {
      case DType::f32_:
        return map<float, T>(s, [](T a) { return static_cast<float>(a); });
      case DType::f64_:
        return map<double, T>(s, [](T a) { return static_cast<double>(a); });
      case DType::i32_:
        if constexpr (std::is_integral_v<T>) return map<std::int32_t, T>(s, [](T a) { return static_cast<std::int32_t>(a); });
        return false;
      case DType::i64_:
        if constexpr (std::is_integral_v<T>) return map<std::int64_t, T>(s, [](T a) { return static_cast<std::int64_t>(a); });
        return false;
      default:
        return false;
    }
  }

  bool fast(const Step& s) {
    if (s.op == Op::bits) {
      std::memcpy(slots_[s.out].bytes, slots_[s.args[0]].bytes, width * byte_size(s.result));
      return true;
    }
    switch (s.argument) {
      case DType::f32_:
        return s.op == Op::cast ? cast_from<float>(s) : floats<float>(s);
      case DType::f64_:
        return s.op == Op::cast ? cast_from<double>(s) : floats<double>(s);
      case DType::i32_:
        return s.op == Op::cast ? cast_from<std::int32_t>(s) : integers<std::int32_t>(s);
      case DType::i64_:
        return s.op == Op::cast ? cast_from<std::int64_t>(s) : integers<std::int64_t>(s);
      default:
        return false;
    }
  }

  void slow(const Step& s) {
    for (int i = 0; i < width; ++i) {
      ops::Scalar v[3];
      for (int a = 0; a < ops::info(s.op).arity; ++a) {
        const DType t = s.op == Op::where && a == 0 ? DType::bool_ : s.argument;
        v[a] = ops::load(t, slots_[s.args[a]].bytes + i * byte_size(t));
      }
      const ops::Scalar r =
          s.op == Op::cast ? ops::cast(s.argument, s.result, v[0]) : ops::reference(s.op, s.argument, s.result, v);
      ops::store(s.result, slots_[s.out].bytes + i * byte_size(s.result), r);
    }
  }

  const kernel::Kernel k_;
  std::vector<Slot> slots_;
  std::vector<bool> kept_;  // slots of inputs, variables and constants are never reused
  std::vector<int> free_, inputs_;
  std::unordered_map<std::uint32_t, int> vars_;
  std::vector<Step> steps_;
  int output_ = 0;
};

// out[group] = op(in0[group], ...), or a conversion, before expansion.
inline kernel::Kernel elementwise(Op op, DType argument, DType result) {
  kernel::Kernel k;
  k.name = "elementwise";
  kernel::Builder b(k);
  const int arity = ops::info(op).arity;
  for (int i = 0; i <= arity; ++i) {
    kernel::Buffer buffer;
    buffer.kind = kernel::Buffer::Kind::argument;
    buffer.access = i < arity ? kernel::Buffer::Access::read : kernel::Buffer::Access::write;
    buffer.tensor = static_cast<std::uint32_t>(i);
    buffer.name = i < arity ? "in" + std::to_string(i) : "out";
    buffer.dtype = i < arity ? argument : result;
    k.buffers.push_back(buffer);
  }
  std::vector<ExprId> args;
  for (int i = 0; i < arity; ++i) args.push_back(b.load({static_cast<std::uint32_t>(i)}, b.group()));
  const ExprId value = op == Op::cast ? b.cast(result, args[0]) : b.apply(op, args);
  kernel::Phase phase{"all", b.integer(width), {}};
  b.store(phase.body, {static_cast<std::uint32_t>(arity)}, b.group(), value);
  k.phases.push_back(phase);
  return k;
}

}  // namespace cosmati::ulp
