// Expressions are written with the operators of C where these mean the same, else as calls of the prelude.
// SPDX-License-Identifier: Apache-2.0
#include "backends/clike/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernel/expand.h"
#include "kernel/packs.h"
#include "kernel/text.h"
#include "kernel/varying.h"
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

bool is_in_chip(const kernel::Kernel& k, const kernel::Buffer& b) {
  return b.kind == kernel::Buffer::Kind::worker_scratch && !always_on_chip(k, b);
}

class Writer {
 public:
  Writer(const kernel::Kernel& k, const Dialect& dialect) : k_(k), dialect_(dialect), varying_(kernel::varying(k_)), packs_(k_) {}

  std::string run() {
    out_ = fmt::format("// {}\n{}", k_.name, dialect_.prelude);
    for (const bool near : {true, false}) out_ += Writer(kernel::exp_alone(near), dialect_).helper();
    for (std::size_t i = 0; i < k_.phases.size(); ++i) phase(i);
    return std::move(out_);
  }

  // A function of one number, of a kernel that stores it for another.
  std::string helper() {
    phase_ = &k_.phases[0];
    const Block& body = phase_->body;
    out_ = fmt::format("\n{} float {}(float x) {{\n", dialect_.helper, k_.name);
    line(1, "const float* const b_x = &x;");
    line(1, "const i64 group = 0;");
    block({body.begin(), body.end() - 1}, 1);
    line(1, fmt::format("return {};\n}}", text(std::get<kernel::Store>(k_[body.back()].node).value)));
    return std::move(out_);
  }

 private:
  void phase(std::size_t number) {
    const kernel::Phase& p = k_.phases[number];
    COSMATI_CHECK(p.lanes == 1 || p.apart, "lanes of {} go together", p.name);
    phase_ = &p;
    std::string parameters;
    for (const kernel::Param& param : k_.params)
      parameters += fmt::format("const {} {}, ", type_of(param.dtype), param_name(param));
    parameters += "const i64 groups, const bool in_chip";
    for (const kernel::Buffer& b : k_.buffers)
      parameters += fmt::format(", {}{}* {}{}{}", b.access == kernel::Buffer::Access::read ? "const " : "",
                                memory_type_of(b.dtype), b.aliased ? "" : dialect_.alone,
                                b.kind == kernel::Buffer::Kind::worker_scratch ? "all_" : "", buffer_name(b));
    const int threads = clike::threads(p);
    out_ += fmt::format("\n{} {}({}) {{\n", fmt::format(fmt::runtime(dialect_.function), threads ? threads : kernel::most_lanes),
                        function_name(k_, number), parameters);
    if (p.lanes > 1) line(1, fmt::format("const i64 lane = {} % {};", dialect_.thread, p.lanes));
    const std::string own = threads ? fmt::format("{}", p.packed) : fmt::format("i64({})", dialect_.threads);
    line(1, fmt::format("const i64 worker = {} * {} + {} / {};", dialect_.thread_group, own, dialect_.thread, p.lanes));
    const bool scratch = worker_scratch(threads > 0);
    line(1, fmt::format("for (i64 group = worker; group < groups; group += {} * {}) {{", dialect_.thread_groups, own));
    block(p.body, 2);
    if (scratch && threads) line(2, fence());
    line(1, "}");
    out_ += "}\n";
  }

  // Where the pieces of this worker are; whether there are any.
  bool worker_scratch(bool apart) {
    bool any = false, asked = false;
    for (const kernel::Buffer& b : k_.buffers) {
      if (b.kind != kernel::Buffer::Kind::worker_scratch) continue;
      any = true;
      const std::string type = memory_type_of(b.dtype), name = buffer_name(b), size = text(b.elements);
      if (apart && always_on_chip(k_, b)) {
        line(1, fmt::format("{} {} chip_{}[{} * {}];", dialect_.on_chip, type, name, phase_->packed, size));
        line(1, fmt::format("{}* const {} = chip_{} + {} / {} * {};", type, name, name, dialect_.thread, phase_->lanes, size));
        continue;
      }
      std::string at = fmt::format("all_{} + worker * ({})", name, size);
      if (apart) {
        if (!std::exchange(asked, true)) {
          line(1, dialect_.chip);
          std::string bytes = "0";
          for (const kernel::Buffer& other : k_.buffers)
            if (is_in_chip(k_, other)) bytes += fmt::format(" + whole(({}) * {})", text(other.elements), byte_size(other.dtype));
          line(1, fmt::format("i64 chip_at = {} / {} * ({});", dialect_.thread, phase_->lanes, bytes));
        }
        at = fmt::format("in_chip ? ({}*)(chip + chip_at) : {}", type, at);
      }
      line(1, fmt::format("{}* const {} = {};", type, name, at));
      if (apart) line(1, fmt::format("chip_at += whole(({}) * {});", size, byte_size(b.dtype)));
    }
    return any;
  }
  std::string fence() const { return fmt::format("fence<{}, {}>();", phase_->lanes, phase_->packed); }

  // ---- statements ----
  void line(int depth, std::string_view text) { out_.append(static_cast<std::size_t>(depth) * 2, ' ').append(text) += '\n'; }
  std::string declared(VarId v) const { return type_of(k_[v].dtype) + " " + var_name(k_[v]); }

  void block(const Block& as_given, int depth) {
    const Block statements = ordered(as_given);
    for (const kernel::Pack& pack : packs_(statements))
      for (std::size_t i = 0; i < pack.members.size(); ++i) packed_[pack.members[i]] = {pack.members, i, ""};
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (const std::size_t together = jointly(statements, i, depth); together > 0) {
        i += together - 1;
        continue;
      }
      const StmtId s = statements[i];
      if (const auto pack = packed_.find(s); pack != packed_.end() && moved_at_once(pack->second, depth)) continue;
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
                              line(depth, guarded(st, stored));
                            },
                            [](const kernel::Prefetch&) {}, [&](const kernel::Fence&) { line(depth, fence()); }},
                 k_[s].node);
    }
  }

  // What every lane would store alike, one does.
  std::string guarded(const kernel::Store& st, const std::string& stored) {
    std::string guard = st.guard ? text(*st.guard) : "";
    if (phase_->lanes > 1 && !varying_(st.ref.offset)) guard = guard.empty() ? "lane == 0" : "lane == 0 && " + guard;
    return guard.empty() ? stored : fmt::format("if ({}) {}", guard, stored);
  }

  struct Packed {
    std::vector<StmtId> members;
    std::size_t number;  // which of them it is
    std::string name;    // of the pack that was loaded
  };
  // What is written as one where several are bound one after the other: exp, and the division of what differs from lane to lane
  // by what does not.
  const kernel::Apply* joint(StmtId s) const {
    const auto* let = std::get_if<kernel::Let>(&k_[s].node);
    const auto* a = let ? std::get_if<kernel::Apply>(&k_[let->value].node) : nullptr;
    if (!a || k_[let->value].dtype != DType::f32_ || !std::holds_alternative<kernel::VarRef>(k_[a->args[0]].node)) return nullptr;
    const bool quotient = a->op == Op::div && varying_(a->args[0]) && !varying_(a->args[1]);
    return quotient || a->op == Op::exp ? a : nullptr;
  }
  // Writes those from here on that are one; how many.
  std::size_t jointly(const Block& statements, std::size_t first, int depth) {
    const auto bound = [&](std::size_t i) { return std::get<kernel::Let>(k_[statements[first + i]].node).var; };
    const auto divisor = [&](const kernel::Apply& a) { return a.op == Op::div ? ", " + text(a.args[1]) : ""; };
    const kernel::Apply* one = joint(statements[first]);
    if (!one) return 0;
    std::string of;
    std::size_t n = 0;
    for (const kernel::Apply* a = one; a && a->op == one->op && divisor(*a) == divisor(*one); ++n) {
      const VarId argument = std::get<kernel::VarRef>(k_[a->args[0]].node).var;
      bool made_here = false;
      for (std::size_t i = 0; i < n; ++i) made_here = made_here || bound(i) == argument;
      if (made_here) break;
      of += (n > 0 ? ", " : "") + text(a->args[0]);
      a = first + n + 1 < statements.size() ? joint(statements[first + n + 1]) : nullptr;
    }
    if (n < 2) return 0;
    const std::string name = "all_" + var_name(k_[bound(0)]);
    line(depth, fmt::format("const Numbers<{}> {} = {}<{}>({{{{{}}}}}{});", n, name,
                            one->op == Op::exp ? "exps_of" : "quotients_of", n, of, divisor(*one)));
    for (std::size_t i = 0; i < n; ++i) line(depth, fmt::format("const {} = {}.at[{}];", declared(bound(i)), name, i));
    return n;
  }

  // Lets in an order in which each exp stands beside those that wait for as many others.
  Block ordered(const Block& statements) const {
    Block all;
    for (std::size_t first = 0; first < statements.size();) {
      std::size_t end = first;
      std::map<VarId, int> after;  // how many in a row it waits for
      std::vector<std::pair<int, StmtId>> own;
      for (const kernel::Let* let; end < statements.size() && (let = std::get_if<kernel::Let>(&k_[statements[end]].node)) &&
                                   !std::holds_alternative<kernel::Shuffle>(k_[let->value].node);
           ++end) {
        const int level = waits(let->value, after);
        const auto* a = std::get_if<kernel::Apply>(&k_[let->value].node);
        const bool is_exp = a && a->op == Op::exp;
        after[let->var] = level + is_exp;
        own.emplace_back(2 * level + is_exp, statements[end]);
      }
      std::stable_sort(own.begin(), own.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
      for (const auto& [level, s] : own) all.push_back(s);
      if (own.empty()) all.push_back(statements[end++]);
      first = end;
    }
    return all;
  }
  int waits(ExprId e, const std::map<VarId, int>& after) const {
    const kernel::ExprNode& x = k_[e].node;
    int most = 0;
    const auto look = [&](ExprId part) { most = std::max(most, waits(part, after)); };
    if (const auto* v = std::get_if<kernel::VarRef>(&x)) {
      const auto known = after.find(v->var);
      return known == after.end() ? 0 : known->second;
    }
    if (const auto* a = std::get_if<kernel::Apply>(&x)) std::for_each(a->args.begin(), a->args.end(), look);
    if (const auto* sh = std::get_if<kernel::Shuffle>(&x)) look(sh->value);
    if (const auto* l = std::get_if<kernel::Load>(&x)) {
      look(l->ref.offset);
      if (l->guard) look(*l->guard);
      if (l->otherwise) look(*l->otherwise);
    }
    return most;
  }

  // A pack is loaded with its first member and stored with its last.
  bool moved_at_once(Packed& own, int depth) {
    const StmtId s = own.members[own.number];
    if (const auto* let = std::get_if<kernel::Let>(&k_[s].node)) {
      const auto& load = std::get<kernel::Load>(k_[let->value].node);
      if (own.number == 0) {
        const std::string name = "pack_" + var_name(k_[let->var]);
        for (const StmtId member : own.members) packed_.at(member).name = name;
        const std::string type = fmt::format("Pack<{}, {}>", memory_type_of(k_[load.ref.buffer].dtype), own.members.size());
        const std::string loaded = fmt::format("*(const {}*)&{}", type, element(load.ref));
        line(depth, load.guard ? fmt::format("{} {} = {{}};", type, name) : fmt::format("const {} {} = {};", type, name, loaded));
        if (load.guard) line(depth, fmt::format("if ({}) {} = {};", text(*load.guard), name, loaded));
      }
      line(depth, fmt::format("const {} = {}.at[{}]{};", declared(let->var), own.name, own.number,
                              is_bool(k_[let->var].dtype) ? " != 0" : ""));
      return true;
    }
    if (own.number + 1 < own.members.size()) return true;
    std::string values;
    for (const StmtId member : own.members) {
      const auto& store = std::get<kernel::Store>(k_[member].node);
      const std::string value = text(store.value);
      values +=
          fmt::format("{}{}", values.empty() ? "" : ", ", is_bool(k_[store.ref.buffer].dtype) ? "u8(" + value + ")" : value);
    }
    const auto& first = std::get<kernel::Store>(k_[own.members[0]].node);
    const std::string type = fmt::format("Pack<{}, {}>", memory_type_of(k_[first.ref.buffer].dtype), own.members.size());
    const std::string stored = fmt::format("*({}*)&{} = {}{{{{{}}}}};", type, element(first.ref), type, values);
    line(depth, guarded(first, stored));
    return true;
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
                                   if (id.what == kernel::Id::What::lane && phase_->lanes == 1) return "0ll";
                                   return id.what == kernel::Id::What::worker ? "worker" : "lane";
                                 },
                                 [&](const kernel::ParamRef& p) { return param_name(k_[p.param]); },
                                 [&](const kernel::VarRef& v) { return var_name(k_[v.var]); },
                                 [&](const kernel::Apply& a) { return apply(a, x.dtype); },
                                 [&](const kernel::Load& l) {
                                   const std::string loaded = element(l.ref) + (is_bool(x.dtype) ? " != 0" : "");
                                   if (!l.guard) return is_bool(x.dtype) ? "(" + loaded + ")" : loaded;
                                   return fmt::format("({} ? {} : {})", text(*l.guard), loaded, text(*l.otherwise));
                                 },
                                 [&](const kernel::Shuffle& sh) {
                                   const std::string value = text(sh.value);
                                   return sh.mask ? fmt::format("swapped<{}>({}, {})", phase_->lanes, value, *sh.mask) : value;
                                 }},
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
    if (a.op == Op::div && t == DType::f32_ && varying_(a.args[0]) && !varying_(a.args[1]))
      return fmt::format("quotient_of({}, {})", args[0], args[1]);
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
    if (to == DType::bf16_) return fmt::format("bf16_of({})", value);
    if (to == DType::f16_) return fmt::format("f16_of({})", value);
    if (from == DType::f16_) return fmt::format("f32_of_f16({})", value);
    const auto hardware = [](DType t) { return !is_float(t) || t == DType::f32_ || t == DType::f64_; };
    COSMATI_CHECK(hardware(from) && hardware(to), "the cast from {} to {} is not expanded", name(from), name(to));
    return is_bool(to) ? fmt::format("({} != 0)", value) : fmt::format("{}({})", type_of(to), value);
  }

  const kernel::Kernel k_;
  const Dialect& dialect_;
  const kernel::Varying varying_;
  const kernel::Packs packs_;
  std::map<StmtId, Packed> packed_;
  const kernel::Phase* phase_ = nullptr;
  std::string out_;
  std::set<VarId> places_;  // variables of integers that follow from params, numbers of groups and loops
};

}  // namespace

std::string function_name(const kernel::Kernel& k, std::size_t phase) { return fmt::format("{}_phase_{}", k.name, phase); }

int threads(const kernel::Phase& phase) { return phase.apart ? phase.lanes * phase.packed : 0; }

bool always_on_chip(const kernel::Kernel& k, const kernel::Buffer& b) {
  constexpr std::int64_t small = 64;
  const auto* n = b.elements.valid() ? std::get_if<kernel::Const>(&k[b.elements].node) : nullptr;
  return b.kind == kernel::Buffer::Kind::worker_scratch && n && n->i > 0 && n->i <= small;
}

std::int64_t chip_bytes(const kernel::Kernel& k, const std::vector<std::int64_t>& params) {
  std::int64_t sum = 0;
  for (const kernel::Buffer& b : k.buffers) {
    if (!is_in_chip(k, b)) continue;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(kernel::evaluate(k, b.elements, params), byte_size(b.dtype), &bytes) || bytes > (1 << 30))
      return 1 << 30;
    sum = std::min<std::int64_t>(sum + (std::max<std::int64_t>(bytes, 0) + 15) / 16 * 16, 1 << 30);
  }
  return sum;
}

std::string source(const kernel::Kernel& k, const Dialect& dialect) { return Writer(k, dialect).run(); }

}  // namespace cosmati::clike
