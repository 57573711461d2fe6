// Prints values for messages. Text is cut at a fixed depth, so a message stays a line and recursion stays shallow; conversions
// that joins inserted are not shown.
// SPDX-License-Identifier: Apache-2.0
#include "ir/describe.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "support/overloaded.h"

namespace cosmati::ir {
namespace {

using ops::Op;
constexpr int deepest = 4;
constexpr int tightest = 10;  // the precedence of what needs no parentheses

struct Infix {
  Op op;
  const char* text;
  int precedence;
};
constexpr Infix infixes[] = {
    {Op::logical_or, "or", 1},  {Op::logical_and, "and", 2}, {Op::eq, "==", 3},     {Op::ne, "!=", 3},
    {Op::lt, "<", 3},           {Op::le, "<=", 3},           {Op::gt, ">", 3},      {Op::ge, ">=", 3},
    {Op::bit_or, "|", 4},       {Op::bit_xor, "^", 4},       {Op::bit_and, "&", 5}, {Op::shift_left, "<<", 6},
    {Op::shift_right, ">>", 6}, {Op::add, "+", 7},           {Op::sub, "-", 7},     {Op::mul, "*", 8},
    {Op::div, "/", 8},          {Op::floordiv, "//", 8},     {Op::mod, "%", 8},
};

class Describer {
 public:
  explicit Describer(const Program& p) : p_(p) {}

  std::string text(ValueId v, int depth, int precedence) const {
    // What is only a tensor's element has the tensor's name: another is not printed.
    const auto* load = std::get_if<Load>(&p_[v].node);
    if (const std::string* name = name_of(p_, v); name && !(load && is_bare(*load))) return *name;
    return expression(v, depth, precedence);
  }

  std::string expression(ValueId v, int depth, int precedence) const {
    if (depth > deepest) return "...";
    const Value& value = p_[v];
    return std::visit(support::overloaded{
                          [&](const Const& n) {
                            if (is_float(value.dtype)) return std::isnan(n.f) ? "nan" : fmt::format("{}", n.f);  // it has no sign
                            if (is_bool(value.dtype)) return std::string(n.i ? "true" : "false");
                            return fmt::format("{}", n.i);
                          },
                          [&](const Coord& n) { return p_[n.axis].name; },
                          [&](const Extent& n) { return "extent(" + p_[n.axis].name + ")"; },
                          [&](const ScalarRef& n) { return p_[n.scalar].name; },
                          [&](const Load& n) {
                            std::string out = is_bare(n) ? p_[n.tensor].name : access(n.tensor, n.index, depth);
                            if (n.otherwise) out += " else " + text(*n.otherwise, depth + 1, tightest);
                            return out;
                          },
                          [&](const Elementwise& n) { return operation(n.op, n.args, depth, precedence); },
                          [&](const Reduce& n) {
                            const Reducer& r = p_[n.reducer];
                            std::vector<ValueId> args = n.args;
                            if (r.index) args.pop_back();
                            std::string out = r.name + "(" + list(args, depth);
                            std::vector<std::string> names;  // in an order that is the same after a program is printed and read
                            for (AxisId a : n.axes) names.push_back(p_[a].name);
                            std::sort(names.begin(), names.end());
                            for (const std::string& name : names) out += ", " + name;
                            return out + ")";
                          },
                          [&](const Part& n) {
                            if (const auto* of = std::get_if<ValueId>(&n.of)) return text(*of, depth, precedence);
                            return p_[std::get<StreamId>(n.of)].carries[n.slot].name;
                          },
                          [&](const Replace& n) {
                            if (is_localised(n)) return text(n.of, depth, precedence);
                            std::string out = text(n.of, depth + 1, tightest) + "[";
                            for (const auto& [axis, to] : n.binds)
                              out += (out.back() == '[' ? "" : ", ") + p_[axis].name + " := " + text(to, depth + 1, 0);
                            out += "]";
                            if (n.otherwise) out += " else " + text(*n.otherwise, depth + 1, tightest);
                            return out;
                          },
                          [&](const Carried& n) { return p_[n.stream].carries[n.slot].name; },
                          [&](const Arg& n) {
                            for (auto it = p_.arg_names.rbegin(); it != p_.arg_names.rend(); ++it)
                              if (it->second == v) return it->first;
                            return fmt::format("argument {}", n.slot);
                          },
                      },
                      value.node);
  }

  std::string operation(Op op, const std::vector<ValueId>& args, int depth, int precedence) const {
    auto wrap = [&](std::string s, int own) { return own < precedence ? "(" + s + ")" : s; };
    if (op == Op::cast && args.size() == 1) return text(args[0], depth, precedence);
    if (op == Op::neg && args.size() == 1) return wrap("-" + text(args[0], depth + 1, 9), 9);
    if (op == Op::logical_not && args.size() == 1) return wrap("not " + text(args[0], depth + 1, 9), 9);
    const auto* row = std::find_if(std::begin(infixes), std::end(infixes), [&](const Infix& i) { return i.op == op; });
    if (row == std::end(infixes) || args.size() != 2) return std::string(ops::name(op)) + "(" + list(args, depth) + ")";
    return wrap(fmt::format("{} {} {}", text(args[0], depth + 1, row->precedence), row->text,
                            text(args[1], depth + 1, row->precedence + 1)),
                row->precedence);
  }

  std::string access(TensorId t, const std::vector<Index>& index, int depth) const {
    std::string out = p_[t].name + "[";
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (d > 0) out += ", ";
      const std::string one = list(index[d], depth);
      out += index[d].size() > 1 ? "(" + one + ")" : one;
    }
    return out + "]";
  }

 private:
  std::string list(const std::vector<ValueId>& values, int depth) const {
    std::string out;
    for (ValueId v : values) out += (out.empty() ? "" : ", ") + text(v, depth + 1, 0);
    return out;
  }
  bool is_bare(const Load& n) const {
    const std::vector<Dim>& dims = p_[n.tensor].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (n.index[d].size() != dims[d].size()) return false;
      for (std::size_t f = 0; f < dims[d].size(); ++f) {
        const auto* coord = std::get_if<Coord>(&p_[n.index[d][f]].node);
        if (!coord || !dims[d][f].axis || dims[d][f].offset != 0) return false;
        const std::optional<StreamId>& piece = p_[coord->axis].piece;
        if ((piece ? p_[*piece].axis : coord->axis) != dims[d][f].axis) return false;
      }
    }
    return true;
  }
  bool is_localised(const Replace& n) const {
    return std::all_of(n.binds.begin(), n.binds.end(), [&](const auto& bind) {
      const auto* coord = std::get_if<Coord>(&p_[bind.second].node);
      return coord && p_[coord->axis].piece && p_[*p_[coord->axis].piece].axis == bind.first;
    });
  }

  const Program& p_;
};

}  // namespace

std::string automatic_name(int number) { return fmt::format("v{}", number); }

bool is_automatic_name(const std::string& name) {
  return name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == name.npos;
}

bool is_leaf(const Node& node) {
  return std::visit(support::overloaded{[](const Const&) { return true; }, [](const Coord&) { return true; },
                                        [](const Extent&) { return true; }, [](const ScalarRef&) { return true; },
                                        [](const Carried&) { return true; }, [](const Arg&) { return true; },
                                        [](const auto&) { return false; }},
                    node);
}

const std::string* name_of(const Program& p, ValueId v) {
  if (is_leaf(p[v].node)) return nullptr;
  for (const auto& [name, value] : p.names)
    if (value == v && !is_automatic_name(name)) return &name;
  return nullptr;
}

std::string describe(const Program& p, ValueId v) { return Describer(p).text(v, 0, 0); }
std::string describe_expression(const Program& p, ValueId v) { return Describer(p).expression(v, 0, 0); }
std::string describe(const Program& p, Op op, const std::vector<ValueId>& args) { return Describer(p).operation(op, args, 0, 0); }
std::string describe(const Program& p, TensorId t, const std::vector<Index>& index) { return Describer(p).access(t, index, 0); }

std::string describe_dim(const Program& p, const Dim& dim) {
  std::string out;
  for (const Factor& f : dim) {
    if (!out.empty()) out += ", ";
    if (!f.axis)
      out += fmt::format("{}", f.offset);
    else if (f.offset == 0)
      out += p[f.axis].name;
    else
      out += fmt::format("{} {} {}", p[f.axis].name, f.offset < 0 ? '-' : '+',
                         f.offset < 0 ? 0 - static_cast<std::uint64_t>(f.offset) : static_cast<std::uint64_t>(f.offset));
  }
  return dim.size() > 1 ? "(" + out + ")" : out;
}

std::string describe_shape(const Program& p, TensorId t) {
  std::string out;
  for (const Dim& dim : p[t].dims) out += (out.empty() ? "" : ", ") + describe_dim(p, dim);
  return p[t].name + "[" + out + "]";
}

std::string describe_axes(const Program& p, const AxisSet& axes) {
  std::string out;
  for (AxisId a : axes) out += (out.empty() ? "" : ", ") + p[a].name;
  return out.empty() ? "none" : out;
}

std::string describe_entry(const Program& p, ValueId v, AxisId axis) {
  for (;;) {
    std::optional<ValueId> with;
    bool joined = false;
    for (ValueId operand : operands(p[v].node)) {
      if (contains(p[operand].axes, axis))
        with = operand;
      else if (!p[operand].axes.empty())
        joined = true;
    }
    if (!with || (joined && std::holds_alternative<Elementwise>(p[v].node))) break;
    if (std::holds_alternative<Load>(p[v].node)) break;
    v = *with;
  }
  const int line = p[v].where.line;
  return fmt::format("{} entered{}: {}", p[axis].name, line > 0 ? fmt::format(" at line {}", line) : "",
                     describe_expression(p, v));
}

std::string describe_reduction(const Program& p, ValueId v, AxisId axis) {
  std::vector<ValueId> work{v};
  std::unordered_set<ValueId> seen;
  while (!work.empty()) {
    const ValueId at = work.back();
    work.pop_back();
    if (!seen.insert(at).second) continue;
    const auto* reduce = std::get_if<Reduce>(&p[at].node);
    if (reduce && contains(reduce->axes, axis)) return describe_expression(p, at);
    for (ValueId operand : operands(p[at].node)) work.push_back(operand);
  }
  return describe(p, v);
}

}  // namespace cosmati::ir
