// A walk that marks what the lane reaches. A carried value varies where its start or its next value does, so loops are walked
// until nothing new is found.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/varying.h"

#include "support/overloaded.h"

namespace cosmati::kernel {

namespace {

class Marker {
 public:
  explicit Marker(const Kernel& k) : k_(k), out_{std::vector<bool>(k.exprs.size()), std::vector<bool>(k.vars.size())} {}

  Varying run() {
    for (const Phase& phase : k_.phases) block(phase.body);
    return std::move(out_);
  }

 private:
  // Small frames: trees may be deep.
  bool expr(ExprId e) {
    const ExprNode& x = k_[e].node;
    bool varies = false;
    if (const Apply* a = std::get_if<Apply>(&x)) {
      for (ExprId arg : a->args) varies |= expr(arg);
    } else if (const Load* l = std::get_if<Load>(&x)) {
      varies = expr(l->ref.offset);
      if (l->guard) varies |= expr(*l->guard);
      if (l->otherwise) varies |= expr(*l->otherwise);
    } else if (const Shuffle* s = std::get_if<Shuffle>(&x)) {
      expr(s->value);
      varies = s->mask.has_value();
    } else if (const VarRef* v = std::get_if<VarRef>(&x)) {
      varies = out_(v->var);
    } else if (const Id* i = std::get_if<Id>(&x)) {
      varies = i->what == Id::What::lane;
    }
    out_.exprs[e.index] = varies;
    return varies;
  }

  void block(const Block& b) {
    for (StmtId s : b)
      std::visit(support::overloaded{
                     [&](const Let& x) { out_.vars[x.var.index] = expr(x.value); },
                     [&](const For& x) { loop(x); },
                     [&](const If& x) {
                       expr(x.condition);
                       block(x.then);
                       block(x.otherwise);
                     },
                     [&](const Store& x) {
                       expr(x.ref.offset);
                       expr(x.value);
                       if (x.guard) expr(*x.guard);
                     },
                     [&](const Prefetch& x) { expr(x.ref.offset); },
                     [](const Fence&) {},
                 },
                 k_[s].node);
  }

  void loop(const For& x) {
    expr(x.lo);
    expr(x.hi);
    for (const For::Carry& c : x.carries) out_.vars[c.inner.index] = expr(c.init);
    for (bool again = true; again;) {
      again = false;
      block(x.body);
      for (const For::Carry& c : x.carries) {
        if (!expr(c.next) || out_(c.inner)) continue;
        out_.vars[c.inner.index] = again = true;
      }
    }
    for (const For::Carry& c : x.carries) out_.vars[c.result.index] = out_(c.inner);
  }

  const Kernel& k_;
  Varying out_;
};

}  // namespace

Varying varying(const Kernel& k) { return Marker(k).run(); }

}  // namespace cosmati::kernel
