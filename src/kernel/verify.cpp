// The laws of kernel IR. Every pass leaves them true; backends and the simulator rely on them.
//   K1  names are identifiers; params, buffers and vars share one namespace without repeats, and none of them is a word that the
//       text form reserves; phases do not repeat
//   K2  every id is inside its arena, and no id that is needed is missing
//   K3  a var is defined at most once: by a let, as a loop's variable, or as the inner or result name of a carried value
//   K4  a var is used only after its definition and inside the block of it (inner names: in the loop; results: after it)
//   K5  an expression that is not a leaf, and every statement, is used at most once
//   K6  an operation has its arity, arguments of one type as its row in ops.def allows, and the result type of the row;
//       arithmetic and tests are on compute types, so that no operation rounds twice, but for comparisons and extremes of short
//       integers; bits keep the size
//   K7  a constant is a value of its type
//   K8  group, worker and lane are i64; references to params and vars have the type of what they name
//   K9  offsets are i64; a load and a stored value have exactly the type of the buffer
//   K10 a buffer that is loaded from may be read, one that is stored to may be written
//   K11 a guard is bool; a load has `otherwise`, of the type of the buffer, exactly when it has a guard
//   K12 a loop's variable and bounds are i64; init, next, inner and result of a carried value have one type
//   K13 the condition of an if is bool
//   K14 groups and scratch sizes are i64 expressions of constants and integer params, conditions bool ones; arguments have no
//   size K15 a let has the type of its var K16 extents and strides are i64 K17 a phase has 1, 2, 4, ... 32 lanes, or several
//   subgroups of 32 up to 1024; a mask of a shuffle stays in a subgroup, and is
//       not 0
//   K18 what steers a group is uniform: bounds of loops, conditions, and whatever is stored to a uniform offset
//   K19 only lanes that go apart have fences
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>
#include <utility>

#include <cosmati/error.h>
#include <fmt/format.h>

#include "kernel/kernel.h"
#include "kernel/laws.h"
#include "kernel/text.h"
#include "kernel/varying.h"
#include "support/overloaded.h"

namespace cosmati::kernel {

using ops::Op;
using ops::Typing;

namespace {

struct Broken {
  std::string what;
};
template <class... T>
void law(bool holds, fmt::format_string<T...> text, T&&... args) {
  if (!holds) throw Broken{fmt::format(text, std::forward<T>(args)...)};
}

class Checker {
 public:
  explicit Checker(const Kernel& k)
      : k_(k), defined_(k.vars.size()), visible_(k.vars.size()), used_(k.exprs.size()), placed_(k.stmts.size()) {}

  std::optional<BrokenLaw> run() {
    try {
      names();
      for (const Param& p : k_.params)
        law(p.source == Param::Source::scalar || p.dtype == DType::i64_, "K16: param {} is {}, not i64", p.name, name(p.dtype));
      for (const Buffer& b : k_.buffers) {
        if (b.kind == Buffer::Kind::argument)
          law(!b.elements.valid(), "K14: argument {} has a size", b.name);
        else
          size(b.elements, "the size of " + b.name);
      }
      for (ExprId e : k_.conditions) {
        expr(e);
        law(k_[e].dtype == DType::bool_, "K14: a condition of the kernel is {}", name(k_[e].dtype));
        of_params(e, "a condition of the kernel");
      }
      for (const Phase& p : k_.phases) {
        size(p.groups, "the groups of phase " + p.name);
        const bool few = p.lanes >= 1 && p.lanes <= subgroup_lanes && (p.lanes & (p.lanes - 1)) == 0;
        law(few || (p.lanes > 0 && p.lanes <= most_lanes && p.lanes % subgroup_lanes == 0), "K17: phase {} has {} lanes", p.name,
            p.lanes);
        law(p.packed >= 1, "K17: phase {} packs {} groups", p.name, p.packed);
        lanes_ = p.lanes;
        apart_ = p.apart;
        block(p.body);
      }
      varying_ = varying(k_);
      for (const Phase& p : k_.phases) uniform(p.body);
    } catch (const Broken& b) {
      return BrokenLaw{b.what, at_};
    }
    return std::nullopt;
  }

 private:
  void names() {
    law(is_identifier(k_.name), "K1: the kernel '{}' has no usable name", k_.name);
    std::unordered_set<std::string> taken, phases;
    const auto claim = [&](const std::string& name, const char* what) {
      law(is_identifier(name) && !is_reserved(name), "K1: the {} '{}' has no usable name", what, name);
      law(taken.insert(name).second, "K1: the name {} is used twice", name);
    };
    for (const Param& p : k_.params) claim(p.name, "param");
    for (const Buffer& b : k_.buffers) claim(b.name, "buffer");
    for (const Var& v : k_.vars) claim(v.name, "var");
    for (const Phase& p : k_.phases) {
      law(is_identifier(p.name), "K1: the phase '{}' has no usable name", p.name);
      law(phases.insert(p.name).second, "K1: the phase {} is named twice", p.name);
    }
  }

  // ---- expressions ----
  static bool is_leaf(const Expr& x) {
    return !std::holds_alternative<Apply>(x.node) && !std::holds_alternative<Load>(x.node) &&
           !std::holds_alternative<Shuffle>(x.node);
  }
  void expr(ExprId e) {
    law(e.index < k_.exprs.size(), "K2: an expression is missing or outside the arena ({})", e.index);
    const Expr& x = k_[e];
    if (!is_leaf(x)) {
      law(!used_[e.index], "K5: expression {}, {}, is used more than once", e.index, what(x));
      used_[e.index] = true;
    }
    std::visit(support::overloaded{
                   [&](const Const& c) { constant(c, x.dtype); },
                   [&](const Id&) { law(x.dtype == DType::i64_, "K8: a group or worker id is {}", name(x.dtype)); },
                   [&](const ParamRef& p) {
                     law(p.param.index < k_.params.size(), "K2: a param is outside the arena ({})", p.param.index);
                     law(x.dtype == k_[p.param].dtype, "K8: param {} is used as {}", k_[p.param].name, name(x.dtype));
                   },
                   [&](const VarRef& v) {
                     var(v.var);
                     law(x.dtype == k_[v.var].dtype, "K8: var {} is used as {}", k_[v.var].name, name(x.dtype));
                     law(visible_[v.var.index], "K4: var {} is not defined here", k_[v.var].name);
                   },
                   [&](const Apply& a) { apply(a, x.dtype); },
                   [&](const Load& l) { load(l, x.dtype); },
                   [&](const Shuffle& s) {
                     expr(s.value);
                     law(x.dtype == k_[s.value].dtype, "K8: a shuffle of {} is {}", name(k_[s.value].dtype), name(x.dtype));
                     if (s.mask)
                       law(*s.mask > 0 && static_cast<int>(*s.mask) < std::min(lanes_, subgroup_lanes),
                           "K17: a shuffle by {} of {} lanes", *s.mask, lanes_);
                   },
               },
               x.node);
  }

  std::string what(const Expr& x) const {
    if (const Apply* a = std::get_if<Apply>(&x.node)) return std::string(ops::name(a->op));
    if (std::holds_alternative<Shuffle>(x.node)) return "a shuffle";
    const BufferId b = std::get<Load>(x.node).ref.buffer;
    return "a load of " + (b.index < k_.buffers.size() ? k_[b].name : "nothing");
  }

  void constant(const Const& c, DType t) {
    if (is_float(t))
      law(ops::round_to(t, c.f) == c.f || c.f != c.f, "K7: {} is not a value of {}", c.f, name(t));
    else if (is_bool(t))
      law(c.i == 0 || c.i == 1, "K7: {} is not a bool", c.i);
    else
      law(ops::wrap_to(t, c.i) == c.i, "K7: {} is not a value of {}", c.i, name(t));
  }

  void apply(const Apply& a, DType result) {
    const ops::OpInfo& row = ops::info(a.op);
    law(static_cast<int>(a.args.size()) == row.arity, "K6: {} has {} arguments", row.name, a.args.size());
    for (ExprId arg : a.args) expr(arg);
    const DType t = k_[a.args.back()].dtype;
    if (a.op == Op::cast) return;
    if (a.op == Op::bits) return law(byte_size(t) == byte_size(result), "K6: bits of {} as {}", name(t), name(result));
    for (std::size_t i = row.typing == Typing::select; i < a.args.size(); ++i)
      law(k_[a.args[i]].dtype == t, "K6: {} of {} and {}", row.name, name(k_[a.args[i]].dtype), name(t));
    law(result == result_type(k_, a.op, a.args), "K6: {} of {} gives {}", row.name, name(t), name(result));
    law(allowed(row, a, t), "K6: {} does not take {}", row.name, name(t));
  }

  // What gives one of its arguments, or compares them, has nothing to round or wrap.
  static bool chooses(Op op) {
    return op == Op::minimum || op == Op::maximum || op == Op::lt || op == Op::le || op == Op::gt || op == Op::ge ||
           op == Op::eq || op == Op::ne;
  }

  bool allowed(const ops::OpInfo& row, const Apply& a, DType t) const {
    if (row.typing == Typing::select) return k_[a.args[0]].dtype == DType::bool_;
    if (compute_type(t) != t && !(is_int(t) && chooses(a.op))) return false;
    switch (row.typing) {
      case Typing::numeric:
        return is_float(t) ? row.on_floats : is_int(t) && row.on_integers;
      case Typing::floating:
      case Typing::test:
        return is_float(t);
      case Typing::integral:
        return is_int(t);
      case Typing::logical:
        return is_bool(t);
      case Typing::comparison:
      case Typing::select:
        break;
    }
    return true;
  }

  void ref(const Ref& r, const char* verb, Buffer::Access refused) {
    law(r.buffer.index < k_.buffers.size(), "K2: a buffer is outside the arena ({})", r.buffer.index);
    expr(r.offset);
    const Buffer& b = k_[r.buffer];
    law(k_[r.offset].dtype == DType::i64_, "K9: an offset into {} is {}", b.name, name(k_[r.offset].dtype));
    law(b.access != refused, "K10: {} may not be {}", b.name, verb);
  }

  void guard(const std::optional<ExprId>& g, const std::string& buffer) {
    if (!g) return;
    expr(*g);
    law(k_[*g].dtype == DType::bool_, "K11: a guard at {} is {}", buffer, name(k_[*g].dtype));
  }

  void load(const Load& l, DType result) {
    ref(l.ref, "read", Buffer::Access::write);
    const Buffer& b = k_[l.ref.buffer];
    law(result == b.dtype, "K9: a load of {} is {}, not {}", b.name, name(result), name(b.dtype));
    guard(l.guard, b.name);
    law(l.guard.has_value() == l.otherwise.has_value(), "K11: a load of {} has only one of guard and otherwise", b.name);
    if (!l.otherwise) return;
    expr(*l.otherwise);
    law(k_[*l.otherwise].dtype == b.dtype, "K11: a load of {} is otherwise {}", b.name, name(k_[*l.otherwise].dtype));
  }

  void size(ExprId e, const std::string& what) {
    expr(e);
    law(k_[e].dtype == DType::i64_, "K14: {} is {}, not i64", what, name(k_[e].dtype));
    of_params(e, what);
  }

  void of_params(ExprId e, const std::string& what) {
    const Expr& x = k_[e];
    const Apply* a = std::get_if<Apply>(&x.node);
    law(a || std::holds_alternative<Const>(x.node) || std::holds_alternative<ParamRef>(x.node),
        "K14: {} is known only when the kernel runs", what);
    law(!is_float(x.dtype), "K14: {} has a value of type {}", what, name(x.dtype));
    if (!a) return;
    for (ExprId arg : a->args) of_params(arg, what);
  }

  // ---- statements ----
  void var(VarId v) { law(v.index < k_.vars.size(), "K2: a var is missing or outside the arena ({})", v.index); }

  void define(VarId v, std::vector<VarId>& scope) {
    var(v);
    law(!defined_[v.index], "K3: var {} is defined twice", k_[v].name);
    defined_[v.index] = visible_[v.index] = true;
    scope.push_back(v);
  }
  void leave(const std::vector<VarId>& scope) {
    for (VarId v : scope) visible_[v.index] = false;
  }

  void block(const Block& b, std::vector<VarId> scope = {}, const For* loop = nullptr) {
    for (StmtId s : b) {
      law(s.index < k_.stmts.size(), "K2: a statement is outside the arena ({})", s.index);
      const StmtId outer = std::exchange(at_, s);
      law(!placed_[s.index], "K5: statement {} is placed more than once", s.index);
      placed_[s.index] = true;
      std::visit([&](const auto& x) { statement(x, scope); }, k_[s].node);
      at_ = outer;
    }
    if (loop)
      for (const For::Carry& c : loop->carries) {
        expr(c.next);
        law(k_[c.next].dtype == k_[c.inner].dtype, "K12: the next {} is {}", k_[c.inner].name, name(k_[c.next].dtype));
      }
    leave(scope);
  }

  void statement(const Let& x, std::vector<VarId>& scope) {
    expr(x.value);
    define(x.var, scope);
    law(k_[x.value].dtype == k_[x.var].dtype, "K15: {} {} is bound to {}", name(k_[x.var].dtype), k_[x.var].name,
        name(k_[x.value].dtype));
  }

  void statement(const For& x, std::vector<VarId>& scope) {
    expr(x.lo);
    expr(x.hi);
    std::vector<VarId> inside;
    define(x.var, inside);
    for (ExprId bound : {x.lo, x.hi})
      law(k_[bound].dtype == DType::i64_, "K12: a bound of {} is {}", k_[x.var].name, name(k_[bound].dtype));
    law(k_[x.var].dtype == DType::i64_, "K12: the loop variable {} is {}", k_[x.var].name, name(k_[x.var].dtype));
    visible_[x.var.index] = false;
    for (const For::Carry& c : x.carries) expr(c.init);
    visible_[x.var.index] = true;
    for (const For::Carry& c : x.carries) {
      define(c.inner, inside);
      const DType t = k_[c.inner].dtype;
      law(k_[c.init].dtype == t, "K12: {} enters as {}", k_[c.inner].name, name(k_[c.init].dtype));
    }
    block(x.body, std::move(inside), &x);
    for (const For::Carry& c : x.carries) {
      define(c.result, scope);
      law(k_[c.result].dtype == k_[c.inner].dtype, "K12: {} leaves as {}", k_[c.inner].name, name(k_[c.result].dtype));
    }
  }

  void statement(const If& x, std::vector<VarId>&) {
    expr(x.condition);
    law(k_[x.condition].dtype == DType::bool_, "K13: a condition is {}", name(k_[x.condition].dtype));
    block(x.then);
    block(x.otherwise);
  }

  void statement(const Store& x, std::vector<VarId>&) {
    ref(x.ref, "written", Buffer::Access::read);
    expr(x.value);
    const Buffer& b = k_[x.ref.buffer];
    law(k_[x.value].dtype == b.dtype, "K9: {} is stored to {} {}", name(k_[x.value].dtype), name(b.dtype), b.name);
    guard(x.guard, b.name);
  }

  void statement(const Fence&, std::vector<VarId>&) { law(apart_, "K19: a fence where lanes are together"); }
  void statement(const Prefetch& x, std::vector<VarId>&) {
    ref(x.ref, x.write ? "written" : "read", x.write ? Buffer::Access::read : Buffer::Access::write);
  }

  // ---- uniformity ----
  void uniform(const Block& b) {
    for (StmtId s : b) {
      const StmtId outer = std::exchange(at_, s);
      std::visit(support::overloaded{
                     [](const Let&) {},
                     [&](const For& x) {
                       law(!varying_(x.lo) && !varying_(x.hi), "K18: the range of {} varies", k_[x.var].name);
                       uniform(x.body);
                     },
                     [&](const If& x) {
                       law(!varying_(x.condition), "K18: a condition varies");
                       uniform(x.then);
                       uniform(x.otherwise);
                     },
                     [&](const Store& x) {
                       const bool varies = varying_(x.value) || (x.guard && varying_(*x.guard));
                       law(varying_(x.ref.offset) || !varies, "K18: lanes store to one element of {}", k_[x.ref.buffer].name);
                     },
                     [](const Prefetch&) {},
                     [](const Fence&) {},
                 },
                 k_[s].node);
      at_ = outer;
    }
  }

  const Kernel& k_;
  int lanes_ = 1;
  bool apart_ = false;
  Varying varying_;
  std::vector<bool> defined_, visible_, used_, placed_;
  StmtId at_;
};

}  // namespace

std::optional<BrokenLaw> broken_law(const Kernel& k) { return Checker(k).run(); }

void verify(const Kernel& k, const char* pass) {
  const auto broken = broken_law(k);
  if (!broken) return;
  // Ids outside their arenas and expressions inside themselves cannot be printed.
  const bool printable = !broken->what.starts_with("K2") && !broken->what.starts_with("K5");
  const std::string text = printable ? print(k) : "(not printable)";
  throw InternalError(fmt::format("after {}: kernel {}: {}\n{}", pass, k.name, broken->what, text));
}

}  // namespace cosmati::kernel
