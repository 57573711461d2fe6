// Expressions with as few parentheses and casts as reading them back needs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "language/printer.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::language {

using ir::ValueId;
using ops::Op;

namespace {

// The expressions inside one another may double; beyond this the text is of no use.
constexpr std::size_t max_steps = 200'000;
constexpr const char* relax_names[] = {"none", "narrow", "tf32", "split_tf32", "approx"};

std::string parens(bool needed, std::string text) { return needed ? fmt::format("({})", text) : text; }

std::string join(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

}  // namespace

std::string Printer::expr(ValueId v, Context context, int level) {
  if (lambda_) {
    for (const auto& [value, name] : lambda_->bound)
      if (value == v) return name;
  } else if (!in_head_ && !bound_[v.index].empty()) {
    return bound_[v.index];
  }
  return node(v, context, level);
}

std::string Printer::node(ValueId v, Context context, int level) {
  if (++steps_ > max_steps)
    throw Error(ErrorCode::not_supported, p_[v].where, fmt::format("program {} is too large to print", p_.name));
  const ir::Value& value = p_[v];
  auto typed = [&](const std::string& text, bool atom) {
    if (value.weak || is_bool(value.dtype) || context != Context::free) return parens(!atom && level > level_unary, text);
    return fmt::format("{}({})", name(value.dtype), text);
  };
  return std::visit(support::overloaded{
                        [&](const ir::Const& n) {
                          const std::string text = literal_text(value.dtype, n.f, n.i);
                          if (text.find(' ') != std::string::npos && (value.weak || context != Context::free))
                            return parens(level > level_sum, text);
                          return typed(text, text[0] != '-');
                        },
                        [&](const ir::Coord& n) { return name_of(n.axis); },
                        [&](const ir::Extent& n) { return typed(fmt::format("extent({})", name_of(n.axis)), true); },
                        [&](const ir::ScalarRef& n) { return scalar_names_[n.scalar.index]; },
                        [&](const ir::Load& n) { return load(n); },
                        [&](const ir::Elementwise& n) { return elementwise(v, n, context, level); },
                        [&](const ir::Reduce& n) { return reduction(n); },
                        [&](const ir::Part& n) {
                          const ir::StreamId* stream = std::get_if<ir::StreamId>(&n.of);
                          COSMATI_CHECK(stream, "a part of a reduction is printed before its let");
                          return carry_names_[stream->index][n.slot];
                        },
                        [&](const ir::Replace& n) { return replacement(n, level); },
                        [&](const ir::Carried& n) { return carry_names_[n.stream.index][n.slot]; },
                        [&](const ir::Arg& n) {
                          COSMATI_CHECK(lambda_ && n.slot < lambda_->args.size(), "Arg {} outside its lambda", n.slot);
                          return lambda_->args[n.slot];
                        },
                    },
                    value.node);
}

bool Printer::is_natural(ValueId v) const {
  const ir::Value& value = p_[v];
  if (value.weak || std::holds_alternative<ir::Extent>(value.node)) return false;
  if (std::holds_alternative<ir::Const>(value.node)) return is_bool(value.dtype);
  const auto* n = std::get_if<ir::Elementwise>(&value.node);
  if (!n || n->op == Op::cast || n->op == Op::bits || is_bool(value.dtype)) return true;
  // Printed free, a typed argument keeps its type; only a weak one does not.
  const std::size_t first = n->op == Op::where ? 1 : 0;
  return std::any_of(n->args.begin() + static_cast<std::ptrdiff_t>(first), n->args.end(), [&](ValueId a) { return !p_[a].weak; });
}

std::string Printer::elementwise(ValueId v, const ir::Elementwise& n, Context context, int level) {
  const ir::Value& value = p_[v];
  if (n.op == Op::cast) {
    const ir::Value& inside = p_[n.args[0]];
    // A weak `where` takes a type branch by branch, without a cast.
    const auto* op = std::get_if<ir::Elementwise>(&inside.node);
    const bool takes = !is_bool(value.dtype) && (is_float(value.dtype) || is_int(inside.dtype));
    const bool implicit = value.weak || (context != Context::free && inside.weak && takes && !(op && op->op == Op::where)) ||
                          (context == Context::join && !inside.weak && inside.dtype != value.dtype &&
                           compute_type(inside.dtype) == value.dtype && !is_bool(inside.dtype)) ||
                          (context == Context::index && value.dtype == DType::i64_ && is_int(inside.dtype)) ||
                          (context == Context::store && is_float(value.dtype) && is_float(inside.dtype));
    if (implicit)
      return expr(n.args[0], context == Context::store ? Context::free : inside.weak ? Context::pinned : Context::free, level);
    return fmt::format("{}({})", name(value.dtype), expr(n.args[0], Context::free));
  }
  if (n.op == Op::bits) return fmt::format("bits_{}({})", name(value.dtype), expr(n.args[0], Context::free));
  if (!is_natural(v) && !value.weak && context == Context::free)
    return fmt::format("{}({})", name(value.dtype), elementwise(v, n, Context::pinned, level_or));

  const std::vector<Context> contexts = argument_contexts(n);
  auto arg = [&](std::size_t i, int inner) { return expr(n.args[i], contexts[i], inner); };
  const Operator* op = find_operator(n.op);
  if (!op) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < n.args.size(); ++i) list.push_back(arg(i, level_or));
    return fmt::format("{}({})", ops::name(n.op), join(list));
  }
  if (op->level == level_unary)
    return parens(level > level_unary, fmt::format("{}{}{}", op->text, op->text == "not" ? " " : "", arg(0, level_unary)));
  const int left = op->level == level_compare ? op->level + 1 : op->level;
  return parens(level > op->level, fmt::format("{} {} {}", arg(0, left), op->text, arg(1, op->level + 1)));
}

// One argument that has its type by itself gives it to the others.
std::vector<Context> Printer::argument_contexts(const ir::Elementwise& n) const {
  const std::size_t first = n.op == Op::where ? 1 : 0;
  auto gives_type = [&](std::size_t i) {
    const auto* cast = std::get_if<ir::Elementwise>(&p_[n.args[i]].node);
    return is_natural(n.args[i]) && !(cast && cast->op == Op::cast && p_[cast->args[0]].weak);
  };
  std::vector<Context> contexts(n.args.size(), Context::free);
  for (std::size_t i = first; i < n.args.size(); ++i)
    for (std::size_t k = first; k < n.args.size(); ++k)
      if (gives_type(k) && (k != i || gives_type(i))) contexts[i] = Context::join;
  return contexts;
}

std::string Printer::reduction(const ir::Reduce& n) {
  const ir::Reducer& reducer = p_[n.reducer];
  std::vector<std::string> list;
  std::string& known = reducer_names_[n.reducer.index];
  if (known.empty()) {
    known = reducer.builtin ? reducer.name : functions_.claim(reducer.name);
    if (!reducer.builtin) reducers_.push_back(n.reducer);
  }
  std::string callee = known;
  const auto* product = std::get_if<ir::Elementwise>(&p_[n.args[0]].node);
  const bool shown = product && product->op == Op::mul && bound_[n.args[0].index].empty();
  if (reducer.builtin && reducer.name == "sum" && shown) {
    callee = "contract";
    const std::vector<Context> contexts = argument_contexts(*product);
    for (std::size_t i = 0; i < 2; ++i) list.push_back(expr(product->args[i], contexts[i]));
  } else {
    for (std::size_t i = 0; i + (reducer.index ? 1 : 0) < n.args.size(); ++i) list.push_back(expr(n.args[i], Context::free));
  }
  // By name: the order of axes means nothing, and that of their declarations changes when a text is read back.
  const auto first = static_cast<std::ptrdiff_t>(list.size());
  for (ir::AxisId axis : n.axes) list.push_back(name_of(axis));
  std::sort(list.begin() + first, list.end());
  if (n.order == ir::Order::left) list.push_back("order: left");
  if (n.relax != ir::Relax::none) list.push_back(fmt::format("relax: {}", relax_names[static_cast<int>(n.relax)]));
  return fmt::format("{}({})", callee, join(list));
}

// Whether an `else` stands outside of all brackets: what follows would belong to its value.
static bool has_open_else(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
    if (depth == 0 && text.compare(i, 6, " else ") == 0) return true;
  }
  return false;
}

std::string Printer::replacement(const ir::Replace& n, int level) {
  std::vector<std::string> binds;
  for (const auto& [axis, to] : n.binds)
    if (!is_local(axis, to)) binds.push_back(fmt::format("{} := {}", name_of(axis), expr(to, Context::index)));
  if (binds.empty() && !n.otherwise) return expr(n.of, Context::free, level);
  std::string base = expr(n.of, Context::free, level_postfix);
  if (has_open_else(base)) base = parens(true, base);
  base += fmt::format("[{}]", join(binds));
  if (!n.otherwise) return base;
  return fmt::format("{} else {}", base, expr(*n.otherwise, Context::pinned, level_unary));
}

bool Printer::is_bare(const ir::Load& n) const {
  const std::vector<ir::Dim>& dims = p_[n.tensor].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (n.index[d].size() != dims[d].size()) return false;
    for (std::size_t k = 0; k < dims[d].size(); ++k) {
      const auto* coord = std::get_if<ir::Coord>(&p_[n.index[d][k]].node);
      if (!coord || !dims[d][k].axis || dims[d][k].offset != 0 || outside(coord->axis) != dims[d][k].axis) return false;
    }
  }
  return true;
}

std::string Printer::load(const ir::Load& n) {
  const std::string& tensor = tensor_names_[n.tensor.index];
  std::string text = is_bare(n) && !n.otherwise ? tensor : fmt::format("{}[{}]", tensor, index(n.index));
  if (n.otherwise) text += fmt::format(" else {}", expr(*n.otherwise, Context::pinned, level_unary));
  return text;
}

std::string Printer::index(const std::vector<ir::Index>& index) {
  std::vector<std::string> dims;
  for (const ir::Index& dim : index) {
    std::vector<std::string> factors;
    for (ValueId v : dim) factors.push_back(expr(v, Context::index));
    dims.push_back(factors.size() == 1 ? factors[0] : fmt::format("({})", join(factors)));
  }
  return join(dims);
}

}  // namespace cosmati::language
