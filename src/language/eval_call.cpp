// Calls: functions, casts, reductions, inlined defs and user reducers, told apart by name in this order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "language/elaborate.h"
#include "language/elsewhere.h"
#include "language/names.h"
#include "language/operators.h"
#include "support/suggest.h"

namespace cosmati::language {
namespace {

constexpr std::size_t max_def_nesting = 100;

// What the language leaves out on purpose.
struct Refused {
  std::string_view name, what, hint;
};
constexpr Refused refused_table[] = {
    {"scatter", "scatter with repeated targets", "reduce over the axis, or store to an index that is injective"},
    {"scatter_add", "scatter with repeated targets", "reduce over the axis, or store to an index that is injective"},
    {"sort", "sort", ""},
    {"argsort", "sort", ""},
    {"topk", "sort", ""},
    {"rand", "random numbers", "pass them as a parameter"},
    {"randn", "random numbers", "pass them as a parameter"},
    {"random", "random numbers", "pass them as a parameter"},
    {"while_loop", "while loops", "a stream runs over an axis"},
};

struct RelaxName {
  std::string_view name;
  ir::Relax relax;
};
constexpr RelaxName relax_table[] = {{"narrow", ir::Relax::narrow},
                                     {"tf32", ir::Relax::tf32},
                                     {"split_tf32", ir::Relax::split_tf32},
                                     {"approx", ir::Relax::approx}};

}  // namespace

void Elaborator::expect_args(const Expr& expr, std::size_t count, const Scope& scope) const {
  if (expr.args.size() != count)
    throw Error(ErrorCode::type_mismatch, scope.where(expr.pos),
                fmt::format("{} takes {} argument{}, but has {}", expr.text, count, count == 1 ? "" : "s", expr.args.size()));
}

Values Elaborator::eval_args(const Expr& expr, std::size_t count, Scope& scope) {
  Values args;
  for (std::size_t i = 0; i < count; ++i) args.push_back(eval(expr.args[i], scope));
  return args;
}

std::vector<ir::AxisId> Elaborator::axis_args(const Expr& expr, std::size_t first, Scope& scope) const {
  if (expr.args.size() < first)
    throw Error(ErrorCode::type_mismatch, scope.where(expr.pos),
                fmt::format("{} takes {} value{} and then axes", expr.text, first, first == 1 ? "" : "s"));
  if (expr.args.size() == first)
    throw Error(
        ErrorCode::no_such_axis, scope.where(expr.pos), fmt::format("{} names no axis to reduce over", expr.text),
        fmt::format("name the axes after the value{}: {}({}, col)", first == 1 ? "" : "s", expr.text, first == 1 ? "x" : "x, y"));
  const std::string_view pair = pair_of(expr.text);
  const std::string hint = first == 0     ? "name an axis: extent(col)"
                           : pair.empty() ? fmt::format("axes are named after the value{}", first == 1 ? "" : "s")
                                          : fmt::format("axes are named after the value; of two values write {}", pair);
  std::vector<ir::AxisId> axes;
  for (std::size_t i = first; i < expr.args.size(); ++i) {
    const Expr& arg = scope.file()[expr.args[i]];
    if (arg.kind != ExprKind::name)
      throw Error(ErrorCode::no_such_axis, scope.where(arg.pos),
                  fmt::format("{} {} axes, and this is not the name of one", expr.text, first == 0 ? "is of" : "reduces over"),
                  hint);
    axes.push_back(axis_named({arg.text, arg.pos}, scope, hint));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1)
      throw Error(ErrorCode::repeated_axis, scope.where(arg.pos), fmt::format("axis {} is reduced twice", arg.text));
  }
  return axes;
}

ir::ReduceOptions Elaborator::options_of(const Expr& expr, const Scope& scope) const {
  ir::ReduceOptions options;
  if (expr.order) options.order = *expr.order;
  if (!expr.relax) return options;
  std::vector<std::string> known;
  for (const RelaxName& row : relax_table) {
    if (row.name == expr.relax->text) {
      options.relax = row.relax;
      return options;
    }
    known.emplace_back(row.name);
  }
  std::string hint = support::suggest(expr.relax->text, known);
  if (hint.empty()) hint = fmt::format("the relaxations are {}", fmt::join(known, ", "));
  throw Error(ErrorCode::unknown_name, scope.where(expr.relax->pos), fmt::format("there is no relaxation {}", expr.relax->text),
              hint);
}

std::optional<DType> Elaborator::cast_type(std::string_view name, const Scope& scope) const {
  if (scope.sees_types)
    if (auto at = binding_.types.find(std::string(name)); at != binding_.types.end())
      for (const TypeVariable& t : decl_.types)
        if (t.name.text == name) return at->second;
  return dtype_from_name(name);
}

Values Elaborator::eval_call(const Expr& expr, Scope& scope) {
  const Where where = scope.where(expr.pos);
  const std::string name(expr.text);
  auto refuse_option = [&](bool relax_too) {
    if (expr.order || (expr.relax && relax_too))
      throw Error(ErrorCode::syntax, where,
                  fmt::format("{} is not a reduction and takes no `{}:`", name, expr.order ? "order" : "relax"));
  };
  if (const std::optional<ops::Op> op = function_op(name)) {
    refuse_option(false);
    options_of(expr, scope);  // the permission is checked; the strict evaluation keeps within it
    expect_args(expr, static_cast<std::size_t>(ops::info(*op).arity), scope);
    return {builder_.elementwise(*op, eval_args(expr, expr.args.size(), scope), where)};
  }
  const std::optional<DType> type = cast_type(name, scope);
  if (type || name == "bits_f32" || name == "bits_u32") {
    refuse_option(true);
    expect_args(expr, 1, scope);
    const ir::ValueId value = eval(expr.args[0], scope);
    if (type) return {builder_.cast(*type, value, where)};
    return {builder_.bits(name == "bits_f32" ? DType::f32_ : DType::u32_, value, where)};
  }
  if (name == "extent") {
    refuse_option(true);
    expect_args(expr, 1, scope);
    return {builder_.extent(axis_args(expr, 0, scope)[0], where)};
  }
  if (name == "contract") {
    const std::vector<ir::AxisId> axes = axis_args(expr, 2, scope);
    const Values args = eval_args(expr, 2, scope);
    return {builder_.contract(args[0], args[1], axes, options_of(expr, scope), where)};
  }
  if (const std::optional<int> arity = ir::Builder::builtin_arity(name)) {
    const std::vector<ir::AxisId> axes = axis_args(expr, static_cast<std::size_t>(*arity), scope);
    const Values args = eval_args(expr, static_cast<std::size_t>(*arity), scope);
    return builder_.reduce(*builder_.builtin(name, args, where), args, axes, options_of(expr, scope), where);
  }
  for (const File* home : {&scope.file(), &prelude()}) {
    if (const ReducerDecl* reducer = home->find_reducer(name)) return reduce_by(*reducer, *home, expr, scope);
    if (const DefDecl* def = home->find_def(name)) {
      refuse_option(true);
      return inline_def(*def, *home, expr, scope);
    }
  }
  for (const Refused& row : refused_table)
    if (row.name == name)
      throw Error(ErrorCode::not_supported, where, fmt::format("the language has no {}", row.what), std::string(row.hint));
  if (const std::optional<ops::Op> op = ops::op_from_name(name); op && find_operator(*op)) {
    const Operator& row = *find_operator(*op);
    throw Error(ErrorCode::unknown_name, where, fmt::format("{} is not a function", name),
                row.level == level_unary ? fmt::format("write {} x", row.text) : fmt::format("write x {} y", row.text));
  }
  std::vector<std::string> candidates = builtin_names();
  for (const File* home : {&scope.file(), &prelude()}) {
    for (const DefDecl& d : home->defs) candidates.emplace_back(d.name.text);
    for (const ReducerDecl& r : home->reducers) candidates.emplace_back(r.name.text);
  }
  std::string hint(function_elsewhere(name));
  if (hint.empty()) hint = support::suggest(name, candidates);
  if (hint.empty()) hint = fmt::format("write it as a def: def {}(x) = ...", name);
  throw Error(ErrorCode::unknown_name, where, fmt::format("nothing declares the function {}", name), hint);
}

Values Elaborator::inline_def(const DefDecl& def, const File& home, const Expr& call, Scope& scope) {
  expect_args(call, def.params.size(), scope);
  const Where where = scope.where(call.pos);
  if (std::find(active_.begin(), active_.end(), &def) != active_.end())
    throw Error(ErrorCode::not_supported, where, fmt::format("def {} calls itself", def.name.text),
                "a recurrence over an axis is a stream");
  if (active_.size() >= max_def_nesting)
    throw Error(ErrorCode::not_supported, where, fmt::format("defs are nested more than {} deep", max_def_nesting));
  Scope inner(home);
  inner.visible = "a def sees its parameters and its own names only";
  if (&home == &prelude()) inner.call_site = where;
  for (std::size_t i = 0; i < def.params.size(); ++i) {
    const Expr& arg = scope.file()[call.args[i]];
    const Scope::Entry* entry = arg.kind == ExprKind::name ? scope.find(arg.text) : nullptr;
    // A name stands for itself: an axis stays an axis, which the def may use as a coordinate or reduce over.
    const bool keeps = entry && !std::holds_alternative<Pack>(entry->entity);
    inner.declare(def.params[i], keeps ? entry->entity : Entity(eval(call.args[i], scope)));
  }
  active_.push_back(&def);
  Values result;
  try {
    for (const Let& let : def.lets) {
      const Values values = eval_many(let.value, inner, let.names.size());
      for (std::size_t i = 0; i < values.size(); ++i) inner.declare(let.names[i], values[i]);
    }
    result = eval_any(def.result, inner);
  } catch (const Error& e) {
    if (!e.origin.empty()) throw;
    throw Error(e.code, e.where, e.message, e.hint, fmt::format("In {}, called at line {}", def.name.text, where.line));
  }
  active_.pop_back();
  return result;
}

std::vector<ExprId> Elaborator::bound_to(const std::vector<std::string>& names, const std::vector<Bind>& binds, const char* what,
                                         Pos pos, const Scope& scope) const {
  std::vector<std::optional<ExprId>> found(names.size());
  for (const Bind& bind : binds) {
    const auto at = std::find(names.begin(), names.end(), bind.name.text);
    if (at == names.end()) {
      std::string hint = support::suggest(bind.name.text, names);
      if (hint.empty()) hint = fmt::format("{} binds {}", what, fmt::join(names, ", "));
      throw Error(ErrorCode::unknown_name, scope.where(bind.name.pos),
                  fmt::format("{} binds {}, which is not carried", what, bind.name.text), hint);
    }
    std::optional<ExprId>& slot = found[static_cast<std::size_t>(at - names.begin())];
    if (slot)
      throw Error(ErrorCode::redefined, scope.where(bind.name.pos), fmt::format("{} binds {} twice", what, bind.name.text));
    slot = bind.value;
  }
  std::vector<ExprId> result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!found[i]) throw Error(ErrorCode::syntax, scope.where(pos), fmt::format("{} does not bind {}", what, names[i]));
    result.push_back(*found[i]);
  }
  return result;
}

ir::Lambda Elaborator::merge_of(const std::vector<Bind>& binds, Pos pos, const std::vector<std::string>& states,
                                const Values& left, const Values& right, const Scope& outer) {
  Scope scope(outer.file());
  scope.call_site = outer.call_site;
  scope.visible = "merge sees a.NAME and b.NAME, and what it bound before";
  scope.states = &states;
  scope.left = &left;
  scope.right = &right;
  for (std::size_t i = 0; i < states.size(); ++i) {
    builder_.name_arg("a." + states[i], left[i]);
    builder_.name_arg("b." + states[i], right[i]);
  }
  ir::Lambda result;
  for (const Bind& bind : binds) {
    const ir::ValueId value = eval(bind.value, scope);
    scope.declare(bind.name, value);
    result.lets.emplace_back(bind.name.text, value);
  }
  for (const std::string& state : states) {
    const Scope::Entry* entry = scope.find(state);
    if (!entry) throw Error(ErrorCode::syntax, outer.where(pos), fmt::format("merge does not bind {}", state));
    result.results.push_back(std::get<ir::ValueId>(entry->entity));
  }
  return result;
}

Values Elaborator::reduce_by(const ReducerDecl& reducer, const File& home, const Expr& call, Scope& scope) {
  const Where where = scope.where(call.pos);
  const std::size_t count = reducer.params.size();
  const std::vector<ir::AxisId> axes = axis_args(call, count, scope);
  const Values args = eval_args(call, count, scope);
  ir::Builder::ReducerBody body;
  Scope constants(home);
  constants.visible = "identity is made of constants";
  for (const Name& name : reducer.params) body.arg_names.emplace_back(name.text);
  for (const Bind& bind : reducer.identity) {
    if (std::find(body.state_names.begin(), body.state_names.end(), bind.name.text) != body.state_names.end())
      throw Error(ErrorCode::redefined, constants.where(bind.name.pos), fmt::format("identity binds {} twice", bind.name.text));
    body.state_names.emplace_back(bind.name.text);
  }
  body.identity = [&] {
    Values result;
    for (const Bind& bind : reducer.identity) result.push_back(eval(bind.value, constants));
    return result;
  };
  body.lift = [&](const Values& values) {
    Scope inner(home);
    inner.visible = "lift sees the reducer's arguments";
    for (std::size_t i = 0; i < count; ++i) {
      inner.declare(reducer.params[i], values[i]);
      builder_.name_arg(body.arg_names[i], values[i]);
    }
    Values result;
    for (ExprId value : bound_to(body.state_names, reducer.lift, "lift", reducer.lift_pos, inner))
      result.push_back(eval(value, inner));
    return result;
  };
  body.merge = [&](const Values& a, const Values& b) {
    return merge_of(reducer.merge, reducer.merge_pos, body.state_names, a, b, constants).results;
  };
  body.finish = [&](const Values& state) {
    Scope inner(home);
    inner.visible = "finish sees the state";
    for (std::size_t i = 0; i < state.size(); ++i) {
      inner.declare(reducer.identity[i].name, state[i]);
      builder_.name_arg(body.state_names[i], state[i]);
    }
    return eval_any(reducer.finish, inner);
  };
  const ir::ReducerId id = [&] {
    try {
      return builder_.reducer(std::string(reducer.name.text), body, args, where);
    } catch (const Error& e) {
      if (!e.origin.empty() || e.where == where) throw;
      throw Error(e.code, e.where, e.message, e.hint, fmt::format("In {}, called at line {}", reducer.name.text, where.line));
    }
  }();
  return builder_.reduce(id, args, axes, options_of(call, scope), where);
}

}  // namespace cosmati::language
