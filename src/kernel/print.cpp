// The text form of a kernel, line based, blocks by indentation. The grammar (parse.cpp reads it):
//   kernel NAME
//     param NAME: TYPE = extent(AXIS) | stride(TENSOR, DIM) | scalar(INDEX)
//     buffer NAME: TYPE read|write|read_write = argument(TENSOR) | launch_scratch[EXPR] | worker_scratch[EXPR]
//     phase NAME groups EXPR
//       let NAME = EXPR
//       for NAME in EXPR .. EXPR [carry NAME = EXPR, ... gives NAME, ...]
//         ...
//         next EXPR, ...
//       if EXPR
//         ...
//       else
//         ...
//       BUFFER[EXPR] = EXPR [if EXPR]
// Expressions: group, worker, names, 3 (i64), 3u8, true, 1.5f32, inf_f32, nan_f32, BUFFER[EXPR], BUFFER[EXPR] if EXPR else EXPR,
// f32(EXPR) casts, bits_u32(EXPR), infix operators as in kernel/text.h, and calls of every other operation of ops.def.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "kernel/kernel.h"
#include "kernel/text.h"
#include "support/overloaded.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

// Shortest decimals that read back as the same value; the narrower float types are exact as f32.
std::string constant_text(const Const& c, DType t) {
  if (is_bool(t)) return c.i ? "true" : "false";
  if (is_int(t)) return t == DType::i64_ ? fmt::format("{}", c.i) : fmt::format("{}{}", c.i, name(t));
  if (std::isnan(c.f)) return fmt::format("{}nan_{}", std::signbit(c.f) ? "-" : "", name(t));
  if (std::isinf(c.f)) return fmt::format("{}inf_{}", c.f < 0 ? "-" : "", name(t));
  return t == DType::f64_ ? fmt::format("{}{}", c.f, name(t)) : fmt::format("{}{}", static_cast<float>(c.f), name(t));
}

class Printer {
 public:
  explicit Printer(const Kernel& k) : k_(k) {}

  std::string run() {
    line(0, "kernel " + k_.name);
    for (const Param& p : k_.params) line(1, fmt::format("param {}: {} = {}", p.name, name(p.dtype), source(p)));
    for (const Buffer& b : k_.buffers)
      line(1, fmt::format("buffer {}: {} {} = {}", b.name, name(b.dtype), access(b.access), place(b)));
    for (ExprId e : k_.conditions) line(1, "requires " + text(e, precedence_loosest));
    for (const Phase& p : k_.phases) {
      const std::string lanes = p.lanes > 1 ? fmt::format(" lanes {}{}", p.lanes, p.apart ? " apart" : "") : "";
      const std::string packed = p.packed > 1 ? fmt::format(" packed {}", p.packed) : "";
      line(1, fmt::format("phase {} groups {}{}{}", p.name, text(p.groups, precedence_loosest), lanes, packed));
      block(2, p.body);
    }
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) { out_.append(static_cast<std::size_t>(depth) * 2, ' ').append(text) += '\n'; }

  static std::string source(const Param& p) {
    switch (p.source) {
      case Param::Source::extent:
        return fmt::format("extent({})", p.a);
      case Param::Source::stride:
        return fmt::format("stride({}, {})", p.a, p.b);
      case Param::Source::unaligned:
        return fmt::format("unaligned({})", p.a);
      case Param::Source::scalar:
        break;
    }
    return fmt::format("scalar({})", p.a);
  }

  static std::string_view access(Buffer::Access a) {
    return a == Buffer::Access::read ? "read" : a == Buffer::Access::write ? "write" : "read_write";
  }

  std::string place(const Buffer& b) {
    if (b.kind == Buffer::Kind::argument) return fmt::format("argument({}){}", b.tensor, b.aliased ? " aliased" : "");
    const std::string_view kind = b.kind == Buffer::Kind::launch_scratch ? "launch_scratch" : "worker_scratch";
    return fmt::format("{}[{}]", kind, text(b.elements, precedence_guarded));
  }

  void block(int depth, const Block& b) {
    for (StmtId s : b)
      std::visit(
          support::overloaded{
              [&](const Let& x) { line(depth, fmt::format("let {} = {}", k_[x.var].name, text(x.value, precedence_guarded))); },
              [&](const For& x) { loop(depth, x); },
              [&](const If& x) {
                line(depth, "if " + text(x.condition, precedence_loosest));
                block(depth + 1, x.then);
                if (x.otherwise.empty()) return;
                line(depth, "else");
                block(depth + 1, x.otherwise);
              },
              [&](const Store& x) {
                std::string s = ref(x.ref) + " = " + text(x.value, precedence_loosest);
                if (x.guard) s += " if " + text(*x.guard, precedence_loosest);
                line(depth, (x.past_caches ? "past_caches " : "") + s);
              },
              [&](const Fence&) { line(depth, "fence"); },
              [&](const Prefetch& x) { line(depth, (x.write ? "prefetch_write " : "prefetch ") + ref(x.ref)); },
          },
          k_[s].node);
  }

  void loop(int depth, const For& x) {
    std::string head =
        fmt::format("for {} in {} .. {}", k_[x.var].name, text(x.lo, precedence_loosest), text(x.hi, precedence_loosest));
    std::string enter, result, next;
    for (const For::Carry& c : x.carries) {
      const char* comma = enter.empty() ? "" : ", ";
      enter += fmt::format("{}{} = {}", comma, k_[c.inner].name, text(c.init, precedence_loosest));
      result += comma + k_[c.result].name;
      next += comma + text(c.next, precedence_loosest);
    }
    if (!x.carries.empty()) head += " carry " + enter + " gives " + result;
    line(depth, head);
    block(depth + 1, x.body);
    if (!x.carries.empty()) line(depth + 1, "next " + next);
  }

  std::string ref(const Ref& r) { return fmt::format("{}[{}]", k_[r.buffer].name, text(r.offset, precedence_guarded)); }

  // `e` in a place that takes operators of at least `precedence` without parentheses.
  std::string text(ExprId e, int precedence) {
    std::string out;
    write(out, e, precedence);
    return out;
  }

  // Small frames and one buffer: trees may be deep.
  void write(std::string& out, ExprId e, int precedence) {
    if (const Apply* a = std::get_if<Apply>(&k_[e].node))
      write_apply(out, *a, k_[e].dtype, precedence);
    else if (const Load* l = std::get_if<Load>(&k_[e].node))
      write_load(out, *l, precedence);
    else if (const Shuffle* s = std::get_if<Shuffle>(&k_[e].node))
      write_shuffle(out, *s);
    else
      out += leaf(k_[e]);
  }

  std::string leaf(const Expr& x) const {
    if (const Const* c = std::get_if<Const>(&x.node)) return constant_text(*c, x.dtype);
    if (const ParamRef* p = std::get_if<ParamRef>(&x.node)) return k_[p->param].name;
    if (const VarRef* v = std::get_if<VarRef>(&x.node)) return k_[v->var].name;
    const Id::What what = std::get<Id>(x.node).what;
    return what == Id::What::group ? "group" : what == Id::What::worker ? "worker" : "lane";
  }

  void write_load(std::string& out, const Load& l, int precedence) {
    const bool parentheses = l.guard && precedence > precedence_guarded;
    if (parentheses) out += '(';
    out += k_[l.ref.buffer].name;
    out += '[';
    write(out, l.ref.offset, precedence_guarded);
    out += ']';
    if (l.guard) {
      out += " if ";
      write(out, *l.guard, precedence_loosest);
      out += " else ";
      if (l.otherwise)
        write(out, *l.otherwise, precedence_loosest);
      else
        out += "(missing)";
    }
    if (parentheses) out += ')';
  }

  void write_shuffle(std::string& out, const Shuffle& s) {
    out += s.mask ? "swap(" : "first(";
    write(out, s.value, precedence_guarded);
    if (s.mask) out += fmt::format(", {}", *s.mask);
    out += ')';
  }

  void write_apply(std::string& out, const Apply& a, DType result, int precedence) {
    if (a.args.size() == 2)
      for (const Infix& i : infix_table)
        if (i.op == a.op) return write_infix(out, i, a, precedence);
    if (a.op == Op::bits) out += "bits_";
    out += a.op == Op::cast || a.op == Op::bits ? name(result) : ops::name(a.op);
    const char* before = "(";
    for (ExprId arg : a.args) {
      out += before;
      write(out, arg, precedence_guarded);
      before = ", ";
    }
    out += ')';
  }

  void write_infix(std::string& out, const Infix& i, const Apply& a, int precedence) {
    const bool parentheses = i.precedence < precedence;
    if (parentheses) out += '(';
    write(out, a.args[0], i.precedence);
    out += ' ';
    out += i.spelling;
    out += ' ';
    write(out, a.args[1], i.precedence + 1);
    if (parentheses) out += ')';
  }

  const Kernel& k_;
  std::string out_;
};

}  // namespace

std::string print(const Kernel& k) { return Printer(k).run(); }

}  // namespace cosmati::kernel
