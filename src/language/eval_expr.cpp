// Expressions to values. Every error carries the place of the expression that caused it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "language/depth.h"
#include "language/elaborate.h"
#include "language/elsewhere.h"
#include "language/names.h"
#include "support/overloaded.h"
#include "support/suggest.h"

namespace cosmati::language {
namespace {

constexpr int max_eval_depth = 1000;
constexpr std::size_t max_steps = 1'000'000;  // inlining may double the text again and again

}  // namespace

Values Elaborator::eval_many(ExprId id, Scope& scope, std::size_t count) {
  const Expr& expr = scope.file()[id];
  Values values = eval_any(id, scope);
  if (values.size() != count)
    throw Error(
        ErrorCode::type_mismatch, scope.where(expr.pos),
        fmt::format("{} gives {} value{}, but {} {} needed here", expr.kind == ExprKind::call ? expr.text : "the expression",
                    values.size(), values.size() == 1 ? "" : "s", count, count == 1 ? "is" : "are"),
        values.size() > 1 ? "bind them to names first: a, b = ..." : "");
  return values;
}

ir::ValueId Elaborator::eval(ExprId id, Scope& scope) { return eval_many(id, scope, 1)[0]; }

Values Elaborator::eval_any(ExprId id, Scope& scope) {
  const Expr& expr = scope.file()[id];
  const Where where = scope.where(expr.pos);
  if (++steps_ > max_steps)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("the program has more than {} operations after inlining its defs", max_steps));
  if (eval_depth_ >= max_eval_depth)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("the expression is more than {} operations deep after inlining", max_eval_depth),
                "give a part of it a name");
  ++eval_depth_;
  Values result;
  switch (expr.kind) {
    case ExprKind::integer:
      result = {builder_.literal(expr.integer)};
      break;
    case ExprKind::real:
      result = {builder_.literal(expr.real)};
      break;
    case ExprKind::boolean:
      result = {builder_.literal(expr.integer != 0)};
      break;
    case ExprKind::name:
      result = {eval_name(expr, scope)};
      break;
    case ExprKind::member:
      result = {eval_member(expr, scope)};
      break;
    case ExprKind::call:
      result = eval_call(expr, scope);
      break;
    case ExprKind::index:
      result = {eval_index(expr, scope)};
      break;
    case ExprKind::replace:
      result = {eval_replace(expr, scope)};
      break;
    case ExprKind::operation: {
      Values args;
      for (ExprId arg : expr.args) args.push_back(eval(arg, scope));
      result = {builder_.elementwise(expr.op, std::move(args), where)};
      break;
    }
    case ExprKind::tuple:
      for (ExprId arg : expr.args) result.push_back(eval(arg, scope));
      break;
    case ExprKind::pack:
      throw Error(ErrorCode::syntax, where, fmt::format("{}... stands only in dims, in parallel and in an index", expr.text));
  }
  --eval_depth_;
  limit_depth(builder_.program(), depth_, &where);
  return result;
}

void Elaborator::fail_unknown(const Name& name, const Scope& scope, const std::string& what) const {
  std::string hint(value_elsewhere(name.text));
  if (hint.empty()) hint = support::suggest(name.text, scope.names());
  if (hint.empty() && (is_builtin(name.text) || scope.file().find_def(name.text) || scope.file().find_reducer(name.text)))
    hint = fmt::format("{} is a function: call it", name.text);
  if (hint.empty() && scope.visible) hint = scope.visible;
  if (hint.empty() && what == "the axis")
    if (const std::vector<std::string> axes = scope.axes(); !axes.empty())
      hint = fmt::format("the axes here are {}", fmt::join(axes, ", "));
  throw Error(ErrorCode::unknown_name, scope.where(name.pos), fmt::format("nothing declares {} {}", what, name.text), hint);
}

ir::ValueId Elaborator::eval_name(const Expr& expr, Scope& scope) {
  const Scope::Entry* entry = scope.find(expr.text);
  if (!entry) fail_unknown({expr.text, expr.pos}, scope, "the name");
  const Where where = scope.where(expr.pos);
  return std::visit(support::overloaded{[&](ir::AxisId axis) { return builder_.coordinate(axis, where); },
                                        [&](const Pack&) -> ir::ValueId {
                                          throw Error(ErrorCode::syntax, where,
                                                      fmt::format("{} stands for any number of axes", expr.text),
                                                      fmt::format("write {0}... in an index: y[{0}..., col]", expr.text));
                                        },
                                        [&](ir::TensorId tensor) { return builder_.bare(tensor, where); },
                                        [&](ir::ValueId value) { return value; }},
                    entry->entity);
}

ir::ValueId Elaborator::eval_member(const Expr& expr, Scope& scope) {
  const Where where = scope.where(expr.pos);
  if (!scope.states)
    throw Error(ErrorCode::syntax, where, fmt::format("{}.{} is meaningful only inside merge", expr.text, expr.member),
                "only merge sees two states, a and b");
  const Values* side = expr.text == "a" ? scope.left : expr.text == "b" ? scope.right : nullptr;
  if (!side)
    throw Error(ErrorCode::unknown_name, where, fmt::format("merge has no state {}", expr.text), "write a.NAME or b.NAME");
  for (std::size_t i = 0; i < scope.states->size(); ++i)
    if ((*scope.states)[i] == expr.member) return (*side)[i];
  std::string hint = support::suggest(expr.member, *scope.states);
  if (hint.empty()) hint = fmt::format("the state is {}", fmt::join(*scope.states, ", "));
  throw Error(ErrorCode::unknown_name, where, fmt::format("the state has no {}", expr.member), hint);
}

std::vector<ir::Index> Elaborator::index_of(const std::vector<ExprId>& items, std::size_t first, Scope& scope) {
  std::vector<ir::Index> result;
  for (std::size_t i = first; i < items.size(); ++i) {
    const Expr& item = scope.file()[items[i]];
    if (item.kind == ExprKind::tuple) {
      ir::Index factors;
      for (ExprId factor : item.args) factors.push_back(eval(factor, scope));
      result.push_back(std::move(factors));
    } else if (item.kind == ExprKind::pack) {
      const Scope::Entry* entry = scope.find(item.text);
      if (!entry) fail_unknown({item.text, item.pos}, scope, "the axis pack");
      const Pack* pack = std::get_if<Pack>(&entry->entity);
      if (!pack)
        throw Error(ErrorCode::unknown_name, scope.where(item.pos), fmt::format("{} is not an axis pack", item.text),
                    fmt::format("declare it in a dimension: [{}..., col]", item.text));
      for (ir::AxisId axis : pack->axes) result.push_back({builder_.coordinate(axis, scope.where(item.pos))});
    } else {
      result.push_back({eval(items[i], scope)});
    }
  }
  return result;
}

ir::ValueId Elaborator::eval_index(const Expr& expr, Scope& scope) {
  const Where where = scope.where(expr.pos);
  const Expr& base = scope.file()[expr.args[0]];
  const Scope::Entry* entry = base.kind == ExprKind::name ? scope.find(base.text) : nullptr;
  if (base.kind == ExprKind::name && !entry) fail_unknown({base.text, base.pos}, scope, "the tensor");
  const ir::TensorId* tensor = entry ? std::get_if<ir::TensorId>(&entry->entity) : nullptr;
  if (!tensor)
    throw Error(
        ErrorCode::type_mismatch, where,
        fmt::format("only a tensor parameter is indexed by position{}", entry ? fmt::format(", and {} is none", base.text) : ""),
        "index a value by the name of its axis: v[axis := e]");
  std::vector<ir::Index> index = index_of(expr.args, 1, scope);
  std::optional<ir::ValueId> otherwise;
  if (expr.otherwise) otherwise = eval(*expr.otherwise, scope);
  return builder_.load(*tensor, std::move(index), otherwise, where);
}

ir::AxisId Elaborator::axis_named(const Name& name, const Scope& scope, const std::string& hint) const {
  const Scope::Entry* entry = scope.find(name.text);
  if (!entry) fail_unknown(name, scope, "the axis");
  if (const ir::AxisId* axis = std::get_if<ir::AxisId>(&entry->entity)) return *axis;
  const bool pack = std::holds_alternative<Pack>(entry->entity);
  throw Error(ErrorCode::no_such_axis, scope.where(name.pos),
              pack ? fmt::format("{} stands for any number of axes; one axis is needed here", name.text)
                   : fmt::format("{} is not an axis", name.text),
              hint);
}

ir::ValueId Elaborator::eval_replace(const Expr& expr, Scope& scope) {
  const ir::ValueId of = eval(expr.args[0], scope);
  std::vector<std::pair<ir::AxisId, ir::ValueId>> binds;
  for (std::size_t i = 0; i < expr.axes.size(); ++i) {
    const ir::AxisId axis = axis_named(expr.axes[i], scope);
    for (const auto& [other, value] : binds)
      if (other == axis)
        throw Error(ErrorCode::repeated_axis, scope.where(expr.axes[i].pos),
                    fmt::format("axis {} is replaced twice", expr.axes[i].text));
    binds.emplace_back(axis, eval(expr.args[i + 1], scope));
  }
  std::optional<ir::ValueId> otherwise;
  if (expr.otherwise) otherwise = eval(*expr.otherwise, scope);
  return builder_.replace(of, std::move(binds), otherwise, scope.where(expr.axes[0].pos));
}

}  // namespace cosmati::language
