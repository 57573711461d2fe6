// Expressions are written with the operators of C where these mean the same, else as calls of the prelude.
// SPDX-License-Identifier: Apache-2.0
#include "backends/clike/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "kernel/text.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::clike {
namespace {

using kernel::Block;
using kernel::BufferId;
using kernel::ExprId;
using kernel::StmtId;
using kernel::VarId;
using ops::Op;
using support::overloaded;

// In registers. Floats that are narrower than f32 are their bits.
std::string type_of(DType t) {
  if (is_bool(t)) return "bool";
  if (t == DType::f32_) return "float";
  if (t == DType::f64_) return "double";
  return fmt::format("{}{}", is_signed(t) && !is_float(t) ? "i" : "u", 8 * byte_size(t));
}
std::string memory_type_of(DType t) { return is_bool(t) ? "u8" : type_of(t); }

// Names of the program in a source: each has a letter and a line in front, which nothing of the language or of the prelude has.
std::string param_name(const kernel::Param& p) { return "p_" + p.name; }
std::string buffer_name(const kernel::Buffer& b) { return "b_" + b.name; }
std::string var_name(const kernel::Var& v) { return "v_" + v.name; }

std::string constant(const kernel::Const& c, DType t) {
  if (is_bool(t)) return c.i ? "true" : "false";
  if (is_float(t)) {
    std::uint64_t bits = 0;
    ops::store(t, &bits, {c.f, 0});
    if (t != DType::f32_ && t != DType::f64_) return fmt::format("{}({})", type_of(t), bits);
    if (!std::isfinite(c.f)) return fmt::format("as<{}>(u{}(0x{:x}))", type_of(t), 8 * byte_size(t), bits);
    return t == DType::f32_ ? fmt::format("{:a}f", static_cast<float>(c.f)) : fmt::format("{:a}", c.f);
  }
  if (t == DType::i64_ && c.i >= 0) return fmt::format("{}ll", c.i);
  return fmt::format("{}({}ull)", type_of(t), static_cast<std::uint64_t>(c.i));
}

// The operator of C that means the same, as the text form of kernels spells it. Those of integers that round or shift differ.
std::string_view operator_of(Op op) {
  if (op == Op::floordiv || op == Op::mod || op == Op::shift_left || op == Op::shift_right) return "";
  for (const kernel::Infix& row : kernel::infix_table)
    if (row.op == op) return row.spelling;
  return "";
}

class Writer {
 public:
  Writer(const kernel::Kernel& k, const Dialect& dialect) : k_(k), dialect_(dialect) {}

  std::string run() {
    out_ = fmt::format("// {}\n{}", k_.name, dialect_.prelude);
    for (std::size_t i = 0; i < k_.phases.size(); ++i) phase(i);
    return std::move(out_);
  }

 private:
  void phase(std::size_t number) {
    const kernel::Phase& p = k_.phases[number];
    COSMATI_CHECK(p.lanes == 1, "a phase of {} lanes", p.lanes);
    std::string parameters;
    for (const kernel::Param& param : k_.params)
      parameters += fmt::format("const {} {}, ", type_of(param.dtype), param_name(param));
    parameters += "const i64 groups";
    for (const kernel::Buffer& b : k_.buffers)
      parameters += fmt::format(", {}{}* {}{}", b.access == kernel::Buffer::Access::read ? "const " : "", memory_type_of(b.dtype),
                                b.kind == kernel::Buffer::Kind::worker_scratch ? "all_" : "", buffer_name(b));
    out_ += fmt::format("\n{} {}({}) {{\n", dialect_.function, function_name(k_, number), parameters);
    line(1, fmt::format("const i64 worker = {};", dialect_.worker));
    for (const kernel::Buffer& b : k_.buffers)
      if (b.kind == kernel::Buffer::Kind::worker_scratch)
        line(1, fmt::format("{}* const {} = all_{} + worker * ({});", memory_type_of(b.dtype), buffer_name(b), buffer_name(b),
                            text(b.elements)));
    line(1, fmt::format("for (i64 group = worker; group < groups; group += {}) {{", dialect_.workers));
    block(p.body, 2);
    line(1, "}");
    out_ += "}\n";
  }

  // ---- statements ----
  void line(int depth, const std::string& text) { out_.append(static_cast<std::size_t>(depth) * 2, ' ').append(text) += '\n'; }
  std::string declared(VarId v) const { return type_of(k_[v].dtype) + " " + var_name(k_[v]); }

  void block(const Block& statements, int depth) {
    for (StmtId s : statements)
      std::visit(overloaded{[&](const kernel::Let& let) {
                              line(depth, fmt::format("const {} = {};", declared(let.var), text(let.value)));
                              if (is_place(let.value)) places_.insert(let.var);
                            },
                            [&](const kernel::For& f) { loop(f, depth); },
                            [&](const kernel::If& i) {
                              line(depth, fmt::format("if ({}) {{", text(i.condition)));
                              block(i.then, depth + 1);
                              if (!i.otherwise.empty()) {
                                line(depth, "} else {");
                                block(i.otherwise, depth + 1);
                              }
                              line(depth, "}");
                            },
                            [&](const kernel::Store& st) {
                              const std::string value = text(st.value);
                              const std::string stored = fmt::format(
                                  "{} = {};", element(st.ref), is_bool(k_[st.ref.buffer].dtype) ? "u8(" + value + ")" : value);
                              line(depth, st.guard ? fmt::format("if ({}) {}", text(*st.guard), stored) : stored);
                            },
                            [](const kernel::Prefetch&) {}},
                 k_[s].node);
  }

  void loop(const kernel::For& f, int depth) {
    for (const auto& c : f.carries) line(depth, fmt::format("{} = {};", declared(c.inner), text(c.init)));
    const std::string at = var_name(k_[f.var]);
    if (is_place(f.lo)) places_.insert(f.var);
    line(depth, fmt::format("for (i64 {} = {}, end_{} = {}; {} < end_{}; ++{}) {{", at, text(f.lo), at, text(f.hi), at, at, at));
    block(f.body, depth + 1);
    // All of them are evaluated before the first is replaced.
    for (const auto& c : f.carries)
      if (f.carries.size() > 1)
        line(depth + 1, fmt::format("const {} next_{} = {};", type_of(k_[c.inner].dtype), var_name(k_[c.inner]), text(c.next)));
    for (const auto& c : f.carries) {
      const std::string inner = var_name(k_[c.inner]);
      line(depth + 1, fmt::format("{} = {};", inner, f.carries.size() > 1 ? "next_" + inner : text(c.next)));
    }
    line(depth, "}");
    for (const auto& c : f.carries) line(depth, fmt::format("const {} = {};", declared(c.result), var_name(k_[c.inner])));
  }

  // ---- expressions ----
  std::string element(const kernel::Ref& ref) { return fmt::format("{}[{}]", buffer_name(k_[ref.buffer]), text(ref.offset)); }

  std::string text(ExprId e) {
    const kernel::Expr& x = k_[e];
    return std::visit(overloaded{[&](const kernel::Const& c) { return constant(c, x.dtype); },
                                 [&](const kernel::Id& id) -> std::string {
                                   if (id.what == kernel::Id::What::group) return "group";
                                   return id.what == kernel::Id::What::worker ? "worker" : "0ll";
                                 },
                                 [&](const kernel::ParamRef& p) { return param_name(k_[p.param]); },
                                 [&](const kernel::VarRef& v) { return var_name(k_[v.var]); },
                                 [&](const kernel::Apply& a) { return apply(a, x.dtype); },
                                 [&](const kernel::Load& l) {
                                   const std::string loaded = element(l.ref) + (is_bool(x.dtype) ? " != 0" : "");
                                   if (!l.guard) return is_bool(x.dtype) ? "(" + loaded + ")" : loaded;
                                   return fmt::format("({} ? {} : {})", text(*l.guard), loaded, text(*l.otherwise));
                                 },
                                 [](const kernel::Shuffle&) -> std::string { throw InternalError("lanes are one here"); }},
                      x.node);
  }

  std::string apply(const kernel::Apply& a, DType result) {
    std::vector<std::string> args;
    for (ExprId arg : a.args) args.push_back(text(arg));
    const DType t = k_[a.args.back()].dtype;
    switch (a.op) {
      case Op::cast:
        return cast(t, result, args[0]);
      case Op::bits:
        return fmt::format("as<{}>({})", type_of(result), args[0]);
      case Op::where:
        return fmt::format("({} ? {} : {})", args[0], args[1], args[2]);
      case Op::logical_not:
        return "!" + args[0];
      default:
        break;
    }
    const std::string_view sign = operator_of(a.op);
    if (is_bool(t) || is_bool(result)) {
      if (!sign.empty()) return fmt::format("({} {} {})", args[0], sign, args[1]);
    } else if (!is_float(t)) {
      return integer(a, t, args);
    }
    if (a.op == Op::neg) return fmt::format("(-{})", args[0]);
    if (a.op == Op::is_nan) return fmt::format("is_nan({})", args[0]);
    if (!sign.empty()) return fmt::format("({} {} {})", args[0], sign, args[1]);
    return fmt::format("{}_of({})", ops::name(a.op), fmt::join(args, ", "));
  }

  // Signed sums and products wrap, which those of C do not; places in memory never come that far.
  std::string integer(const kernel::Apply& a, DType t, const std::vector<std::string>& args) {
    const bool plain = t == DType::i64_ && std::all_of(a.args.begin(), a.args.end(), [&](ExprId e) { return is_place(e); });
    const std::string_view sign = operator_of(a.op);
    if (sign.empty()) return fmt::format("{}_of({})", ops::name(a.op), fmt::join(args, ", "));
    if (plain) return fmt::format("({} {} {})", args[0], sign, args[1]);
    const char* u = byte_size(t) == 8 ? "u64" : "u32";  // what is narrower would become a signed int
    return fmt::format("{}({}({}) {} {}({}))", type_of(t), u, args[0], sign, u, args[1]);
  }
  bool is_place(ExprId e) const {
    return std::visit(overloaded{[](const kernel::Const&) { return true; }, [](const kernel::Id&) { return true; },
                                 [&](const kernel::ParamRef& p) { return k_[p.param].source != kernel::Param::Source::scalar; },
                                 [&](const kernel::VarRef& v) { return places_.contains(v.var); },
                                 [&](const kernel::Apply& a) {
                                   return !is_float(k_[e].dtype) && a.op != Op::cast && a.op != Op::bits &&
                                          std::all_of(a.args.begin(), a.args.end(), [&](ExprId arg) { return is_place(arg); });
                                 },
                                 [](const auto&) { return false; }},
                      k_[e].node);
  }

  static std::string cast(DType from, DType to, const std::string& value) {
    if (from == to) return value;
    if (is_float(from) && !is_float(to)) {
      if (is_bool(to)) return fmt::format("({} != 0)", value);
      return fmt::format("saturated<{}>({})", type_of(to), value);
    }
    const auto hardware = [](DType t) { return !is_float(t) || t == DType::f32_ || t == DType::f64_; };
    COSMATI_CHECK(hardware(from) && hardware(to), "the cast from {} to {} is not expanded", name(from), name(to));
    return is_bool(to) ? fmt::format("({} != 0)", value) : fmt::format("{}({})", type_of(to), value);
  }

  const kernel::Kernel& k_;
  const Dialect& dialect_;
  std::string out_;
  std::set<VarId> places_;  // variables of integers that follow from params, numbers of groups and loops
};

}  // namespace

std::string function_name(const kernel::Kernel& k, std::size_t phase) { return fmt::format("{}_phase_{}", k.name, phase); }

std::string source(const kernel::Kernel& k, const Dialect& dialect) { return Writer(k, dialect).run(); }

}  // namespace cosmati::clike
