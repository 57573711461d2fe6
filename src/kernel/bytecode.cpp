// Assembles the instructions of a kernel. Leaves need no instruction: their slots are filled before a group starts.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/bytecode.h"

#include <algorithm>
#include <utility>

#include <cosmati/error.h>
#include <fmt/format.h>

#include "kernel/varying.h"
#include "support/overloaded.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

struct FastOp {
  DType type;
  Op op;
  Code code;
};
constexpr FastOp fast_ops[] = {
#define COSMATI_ROW(type, op, formula) {DType::type##_, Op::op, Code::type##_##op},
    COSMATI_FAST_OPS(COSMATI_ROW, COSMATI_ROW, COSMATI_ROW)
#undef COSMATI_ROW
        {DType::bool_, Op::logical_and, Code::both},
    {DType::bool_, Op::logical_or, Code::either},
};

struct Slots {  // of one value
  std::uint32_t at = 0;
  bool varies = false;
  std::uint32_t mask() const { return varies ? ~0u : 0; }
};

class Assembler {
 public:
  explicit Assembler(const Kernel& k) : k_(k), varying_(varying(k)) {
    std::uint32_t lanes = 1;
    for (const Phase& p : k.phases) lanes = std::max(lanes, static_cast<std::uint32_t>(p.lanes));
    out_.first_param = lane_slot + lanes;
    out_.slots = out_.first_param + static_cast<std::uint32_t>(k.params.size());
    const auto reserve = [&](bool varies) { return std::exchange(out_.slots, out_.slots + (varies ? lanes : 1)); };
    for (bool varies : varying_.vars) vars_.push_back(reserve(varies));
    for (bool varies : varying_.exprs) exprs_.push_back(reserve(varies));
    for (std::uint32_t i = 0; i < lanes; ++i) out_.constants.emplace_back(lane_slot + i, i);
    for (std::uint32_t i = 0; i < k.exprs.size(); ++i)
      if (const Const* c = std::get_if<Const>(&k.exprs[i].node))
        out_.constants.emplace_back(exprs_[i], slot_of_scalar(k.exprs[i].dtype, {c->f, c->i}));
  }

  Bytecode run() {
    for (const Phase& p : k_.phases) {
      code_.clear();
      lanes_ = static_cast<std::uint32_t>(p.lanes);
      block(p.body);
      out_.phases.push_back(code_);
    }
    return std::move(out_);
  }

 private:
  Slots slot(VarId v) const { return {vars_[v.index], varying_(v)}; }
  Slots slot(ExprId e) const { return {exprs_[e.index], varying_(e)}; }
  std::uint32_t here() const { return static_cast<std::uint32_t>(code_.size()); }
  std::uint32_t emit(Instruction i) {
    code_.push_back(i);
    return here() - 1;
  }
  Instruction make(Code code, Slots dst, Slots a, Slots b = {}, Slots c = {}) const {
    Instruction i{code};
    i.dst = dst.at, i.a = a.at, i.b = b.at, i.c = c.at;
    i.lanes = dst.varies ? lanes_ : 1;
    i.a_lanes = a.mask(), i.b_lanes = b.mask(), i.c_lanes = c.mask();
    return i;
  }

  // The slots where the value of `e` stands once the instructions emitted here have run.
  Slots value(ExprId e) {
    const ExprNode& x = k_[e].node;
    if (const Id* i = std::get_if<Id>(&x)) {
      if (i->what == Id::What::lane) return {lane_slot, true};
      return {i->what == Id::What::group ? group_slot : worker_slot};
    }
    if (const ParamRef* p = std::get_if<ParamRef>(&x)) return {out_.first_param + p->param.index};
    if (const VarRef* v = std::get_if<VarRef>(&x)) return slot(v->var);
    if (!std::holds_alternative<Const>(x)) compute(e, slot(e));
    return slot(e);
  }

  void value_into(ExprId e, Slots dst) {
    const ExprNode& x = k_[e].node;
    if (std::holds_alternative<Apply>(x) || std::holds_alternative<Load>(x))
      compute(e, dst);
    else
      emit(make(Code::copy, dst, value(e)));
  }

  void compute(ExprId e, Slots dst) {
    const Expr& x = k_[e];
    if (const Load* l = std::get_if<Load>(&x.node)) {
      const Slots offset = value(l->ref.offset);
      Instruction i = l->guard ? make(Code::load_guarded, dst, offset, value(*l->guard), value(*l->otherwise))
                               : make(Code::load, dst, offset);
      i.buffer_or_target = l->ref.buffer.index;
      emit(i);
      return;
    }
    if (const Shuffle* s = std::get_if<Shuffle>(&x.node)) {
      const Slots of = value(s->value);
      Instruction i = make(s->mask ? Code::swap : Code::first, dst, of);
      i.buffer_or_target = s->mask.value_or(0);
      i.from = x.dtype;
      if (!of.varies) i.code = Code::copy;
      if (i.code == Code::first) i.lanes = lanes_;  // of the argument
      emit(i);
      return;
    }
    const Apply& a = std::get<Apply>(x.node);
    Slots args[3] = {};
    for (std::size_t i = 0; i < a.args.size(); ++i) args[i] = value(a.args[i]);
    Instruction i = make(code_of(a.op, k_[a.args.back()].dtype), dst, args[0], args[1], args[2]);
    i.op = a.op, i.from = k_[a.args.back()].dtype, i.to = x.dtype;
    emit(i);
  }

  Code code_of(Op op, DType argument) const {
    if (op == Op::where) return Code::select;
    if (op == Op::cast) return Code::convert;
    if (op == Op::bits) return Code::reinterpret;
    for (const FastOp& f : fast_ops)
      if (f.type == argument && f.op == op) return f.code;
    if (ops::info(op).kind == ops::Kind::primitive || op == Op::ldexp) return Code::reference;
    if (argument == DType::f64_) return Code::library;
    throw InternalError(fmt::format("simulator: kernel {}: {} on {} is not expanded", k_.name, ops::name(op), name(argument)));
  }

  void block(const Block& b) {
    for (StmtId s : b) std::visit([&](const auto& x) { statement(x); }, k_[s].node);
  }

  void statement(const Let& x) { value_into(x.value, slot(x.var)); }

  void statement(const For& x) {
    value_into(x.lo, slot(x.var));
    const Slots hi = value(x.hi);
    for (const For::Carry& c : x.carries) value_into(c.init, slot(c.inner));
    const std::uint32_t test = emit(make(Code::jump_unless_below, {}, slot(x.var), hi));
    block(x.body);
    // All next values are complete before the first inner name changes.
    for (const For::Carry& c : x.carries) value_into(c.next, slot(c.next));
    for (const For::Carry& c : x.carries) emit(make(Code::copy, slot(c.inner), slot(c.next)));
    emit(make(Code::increment, slot(x.var), {}));
    code_[emit(make(Code::jump, {}, {}))].buffer_or_target = test;
    code_[test].buffer_or_target = here();
    for (const For::Carry& c : x.carries) emit(make(Code::copy, slot(c.result), slot(c.inner)));
  }

  void statement(const If& x) {
    const std::uint32_t test = emit(make(Code::jump_unless, {}, value(x.condition)));
    block(x.then);
    if (x.otherwise.empty()) {
      code_[test].buffer_or_target = here();
      return;
    }
    const std::uint32_t over = emit(make(Code::jump, {}, {}));
    code_[test].buffer_or_target = here();
    block(x.otherwise);
    code_[over].buffer_or_target = here();
  }

  void statement(const Prefetch&) {}
  void statement(const Fence&) { emit(make(Code::fence, {}, {})); }

  void statement(const Store& x) {
    const Slots offset = value(x.ref.offset), stored = value(x.value);
    Instruction i = make(x.guard ? Code::store_guarded : Code::store, {0, offset.varies}, offset, stored,
                         x.guard ? value(*x.guard) : Slots{});
    i.buffer_or_target = x.ref.buffer.index;
    emit(i);
  }

  const Kernel& k_;
  const Varying varying_;
  Bytecode out_;
  Instructions code_;
  std::uint32_t lanes_ = 1;
  std::vector<std::uint32_t> vars_, exprs_;  // where their slots start
};

}  // namespace

Bytecode assemble(const Kernel& k) { return Assembler(k).run(); }

ops::Scalar scalar_of_slot(DType t, std::uint64_t slot) {
  if (!is_float(t)) return {0, static_cast<std::int64_t>(slot)};
  return ops::load(t, &slot);  // the low bytes come first
}

std::uint64_t slot_of_scalar(DType t, ops::Scalar value) {
  if (!is_float(t)) return static_cast<std::uint64_t>(value.i);
  std::uint64_t slot = 0;
  ops::store(t, &slot, value);
  return slot;
}

}  // namespace cosmati::kernel
