// The pass that leaves only primitives: expanded operations and conversions of narrow floats become Lets before the statement
// that holds them (for the `next` of a loop, at the end of its body). f64 keeps its transcendental functions: executors call
// the C library for them.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/expand.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

struct Row {
  Op op;
  Expansion expansion;
};

constexpr Row rows[] = {
#define COSMATI_primitive(name)
#define COSMATI_expanded(name) {Op::name, expand_##name},
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) COSMATI_##kind(name)
#include <cosmati/ops.def>
#undef OP
#undef COSMATI_primitive
#undef COSMATI_expanded
};

// What executors call for f64.
constexpr Op c_library[] = {Op::exp, Op::exp2, Op::expm1, Op::log, Op::log2, Op::log1p,
                            Op::sin, Op::cos,  Op::tanh,  Op::erf, Op::pow,  Op::ldexp};

class Expander {
 public:
  Expander(Kernel& k, Native native) : k_(k), builder_(k), native_(native) {}

  Block block(const Block& old) {
    Block out;
    for (StmtId s : old) {
      StmtNode node = k_[s].node;
      std::visit(support::overloaded{
                     [&](Let& let) { let.value = expression(let.value, out); },
                     [&](For& loop) { this->loop(loop, out); },
                     [&](If& branch) {
                       branch.condition = expression(branch.condition, out);
                       branch.then = block(branch.then);
                       branch.otherwise = block(branch.otherwise);
                     },
                     [&](Store& store) {
                       store.ref.offset = expression(store.ref.offset, out);
                       store.value = expression(store.value, out);
                       if (store.guard) store.guard = expression(*store.guard, out);
                     },
                     [](Fence&) {},
                     [&](Prefetch& prefetch) { prefetch.ref.offset = expression(prefetch.ref.offset, out); },
                 },
                 node);
      k_.stmts[s.index].node = std::move(node);
      out.push_back(s);
    }
    return out;
  }

  // The same value in primitives; what it needs bound is appended to `out`.
  ExprId expression(ExprId e, Block& out) {
    ExprNode node = k_[e].node;
    if (Load* load = std::get_if<Load>(&node)) {
      load->ref.offset = expression(load->ref.offset, out);
      if (load->guard) load->guard = expression(*load->guard, out);
      if (load->otherwise) load->otherwise = expression(*load->otherwise, out);
      k_.exprs[e.index].node = std::move(node);
      return e;
    }
    if (Shuffle* shuffle = std::get_if<Shuffle>(&node)) {
      shuffle->value = expression(shuffle->value, out);
      k_.exprs[e.index].node = *shuffle;
      return e;
    }
    Apply* apply = std::get_if<Apply>(&node);
    if (!apply) return e;
    for (ExprId& arg : apply->args) arg = expression(arg, out);
    if (auto primitives = expansion(*apply, k_[e].dtype, out)) return *primitives;
    k_.exprs[e.index].node = std::move(node);
    return e;
  }

 private:
  void loop(For& loop, Block& out) {
    loop.lo = expression(loop.lo, out);
    loop.hi = expression(loop.hi, out);
    for (For::Carry& carry : loop.carries) carry.init = expression(carry.init, out);
    loop.body = block(loop.body);
    for (For::Carry& carry : loop.carries) carry.next = expression(carry.next, loop.body);
  }

  std::optional<ExprId> expansion(const Apply& apply, DType result, Block& out) {
    const DType argument = k_[apply.args[0]].dtype;
    if (apply.op == Op::cast) {
      if (!is_narrow_float(argument) && !is_narrow_float(result)) return std::nullopt;
      if (const Const* value = std::get_if<Const>(&k_[apply.args[0]].node); value && is_float(result))
        return builder_.constant(result, ops::cast(argument, result, {.f = value->f, .i = value->i}).f);
      Code code(builder_, out, native_);
      return expand_cast(code, native_, result, code.let("x", {&code, apply.args[0]})).id;
    }
    if (argument == DType::f64_ && std::find(std::begin(c_library), std::end(c_library), apply.op) != std::end(c_library))
      return std::nullopt;
    if (native_.exp && apply.op == Op::exp && argument == DType::f32_) return std::nullopt;
    for (const Row& row : rows) {
      if (row.op != apply.op) continue;
      Code code(builder_, out, native_);
      Value args[3];
      for (std::size_t i = 0; i < apply.args.size(); ++i) args[i] = code.let("x", {&code, apply.args[i]});
      return row.expansion(code, args).id;
    }
    return std::nullopt;
  }

  Kernel& k_;
  Builder builder_;
  const Native native_;
};

}  // namespace

Kernel expand(Kernel k, Native native) {
  Expander expander(k, native);
  for (std::size_t p = 0; p < k.phases.size(); ++p) {
    Block body = expander.block(k.phases[p].body);
    k.phases[p].body = std::move(body);
  }
  // Sizes are expressions of params outside any block: nothing can be bound there.
  Block none;
  for (Phase& phase : k.phases) phase.groups = expander.expression(phase.groups, none);
  for (Buffer& buffer : k.buffers)
    if (buffer.elements.valid()) buffer.elements = expander.expression(buffer.elements, none);
  COSMATI_CHECK(none.empty(), "a size of {} needs an expansion that binds values", k.name);
  return k;
}

}  // namespace cosmati::kernel
