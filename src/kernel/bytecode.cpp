// Assembles the instructions of a kernel. Leaves need no instruction: their slots are filled before a group starts.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/bytecode.h"

#include <cosmati/error.h>
#include <fmt/format.h>

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

class Assembler {
 public:
  explicit Assembler(const Kernel& k) : k_(k) {
    out_.first_param = worker_slot + 1;
    first_var_ = out_.first_param + static_cast<std::uint32_t>(k.params.size());
    first_expr_ = first_var_ + static_cast<std::uint32_t>(k.vars.size());
    out_.slots = first_expr_ + static_cast<std::uint32_t>(k.exprs.size());
    for (std::uint32_t i = 0; i < k.exprs.size(); ++i)
      if (const Const* c = std::get_if<Const>(&k.exprs[i].node))
        out_.constants.emplace_back(first_expr_ + i, slot_of_scalar(k.exprs[i].dtype, {c->f, c->i}));
  }

  Bytecode run() {
    for (const Phase& p : k_.phases) {
      code_.clear();
      block(p.body);
      out_.phases.push_back(code_);
    }
    return std::move(out_);
  }

 private:
  std::uint32_t slot(VarId v) const { return first_var_ + v.index; }
  std::uint32_t here() const { return static_cast<std::uint32_t>(code_.size()); }
  std::uint32_t emit(Instruction i) {
    code_.push_back(i);
    return here() - 1;
  }
  static Instruction make(Code code, std::uint32_t dst, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
    Instruction i{code};
    i.dst = dst, i.a = a, i.b = b, i.c = c;
    return i;
  }

  // The slot where the value of `e` stands once the instructions emitted here have run.
  std::uint32_t value(ExprId e) {
    const ExprNode& x = k_[e].node;
    if (const Id* i = std::get_if<Id>(&x)) return i->what == Id::What::group ? group_slot : worker_slot;
    if (const ParamRef* p = std::get_if<ParamRef>(&x)) return out_.first_param + p->param.index;
    if (const VarRef* v = std::get_if<VarRef>(&x)) return slot(v->var);
    const std::uint32_t own = first_expr_ + e.index;
    if (!std::holds_alternative<Const>(x)) compute(e, own);
    return own;
  }

  void value_into(ExprId e, std::uint32_t dst) {
    const ExprNode& x = k_[e].node;
    if (std::holds_alternative<Apply>(x) || std::holds_alternative<Load>(x))
      compute(e, dst);
    else
      emit(make(Code::copy, dst, value(e)));
  }

  void compute(ExprId e, std::uint32_t dst) {
    const Expr& x = k_[e];
    if (const Load* l = std::get_if<Load>(&x.node)) {
      Instruction i = make(l->guard ? Code::load_guarded : Code::load, dst, value(l->ref.offset));
      i.buffer_or_target = l->ref.buffer.index;
      if (l->guard) i.b = value(*l->guard), i.c = value(*l->otherwise);
      emit(i);
      return;
    }
    const Apply& a = std::get<Apply>(x.node);
    std::uint32_t args[3] = {};
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
    if (ops::info(op).kind == ops::Kind::primitive) return Code::reference;
    if (argument == DType::f64_) return Code::library;
    throw InternalError(fmt::format("simulator: kernel {}: {} on {} is not expanded", k_.name, ops::name(op), name(argument)));
  }

  void block(const Block& b) {
    for (StmtId s : b) std::visit([&](const auto& x) { statement(x); }, k_[s].node);
  }

  void statement(const Let& x) { value_into(x.value, slot(x.var)); }

  void statement(const For& x) {
    value_into(x.lo, slot(x.var));
    const std::uint32_t hi = value(x.hi);
    for (const For::Carry& c : x.carries) value_into(c.init, slot(c.inner));
    const std::uint32_t test = emit(make(Code::jump_unless_below, 0, slot(x.var), hi));
    block(x.body);
    // All next values are complete before the first inner name changes.
    for (const For::Carry& c : x.carries) value_into(c.next, first_expr_ + c.next.index);
    for (const For::Carry& c : x.carries) emit(make(Code::copy, slot(c.inner), first_expr_ + c.next.index));
    emit(make(Code::increment, slot(x.var), 0));
    code_[emit(make(Code::jump, 0, 0))].buffer_or_target = test;
    code_[test].buffer_or_target = here();
    for (const For::Carry& c : x.carries) emit(make(Code::copy, slot(c.result), slot(c.inner)));
  }

  void statement(const If& x) {
    const std::uint32_t test = emit(make(Code::jump_unless, 0, value(x.condition)));
    block(x.then);
    if (x.otherwise.empty()) {
      code_[test].buffer_or_target = here();
      return;
    }
    const std::uint32_t over = emit(make(Code::jump, 0, 0));
    code_[test].buffer_or_target = here();
    block(x.otherwise);
    code_[over].buffer_or_target = here();
  }

  void statement(const Store& x) {
    Instruction i = make(x.guard ? Code::store_guarded : Code::store, 0, value(x.ref.offset));
    i.b = value(x.value);
    if (x.guard) i.c = value(*x.guard);
    i.buffer_or_target = x.ref.buffer.index;
    emit(i);
  }

  const Kernel& k_;
  Bytecode out_;
  Instructions code_;
  std::uint32_t first_var_ = 0, first_expr_ = 0;
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
