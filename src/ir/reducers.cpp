// Reducers made monomorphic: the rows of reducers.def evaluated into lambdas, and the user's own.
// Arguments come in their stored type and lift casts them to the compute type, so lowest(x) and highest(x) are the limits of the
// stored type. Each merge gives the same bits whichever side is first, and merging with the identity changes no result.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/builder.h"
#include "ir/describe.h"
#include "support/check.h"

namespace cosmati::ir {

namespace {

using ops::Op;

constexpr unsigned commutative = 1, idempotent = 2, index = 4;

enum class RowId : int {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) name,
#include <cosmati/reducers.def>
#undef REDUCER
};

struct RowInfo {
  std::string_view name;
  int arguments, states;
  ops::Typing typing;
  std::string_view fold;
  unsigned flags;
};
constexpr RowInfo row_table[] = {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  {#name, arguments, states, ops::Typing::typing, #fold, (flags)},
#include <cosmati/reducers.def>
#undef REDUCER
};

std::optional<RowId> row_named(std::string_view text) {
  for (std::size_t k = 0; k < std::size(row_table); ++k)
    if (row_table[k].name == text) return static_cast<RowId>(k);
  return std::nullopt;
}
const RowInfo& info(RowId row) { return row_table[static_cast<int>(row)]; }

// A number or value of a row; operators build the nodes. `stored` is the type of the argument behind x0.
struct Expr {
  Builder* builder = nullptr;
  ValueId value;
  std::optional<std::int64_t> whole;
  std::optional<bool> truth;
  DType stored = DType::f32_;

  Expr() = default;
  Expr(int n) : whole(n) {}   // NOLINT: rows write plain numbers
  Expr(bool b) : truth(b) {}  // NOLINT
  Expr(Builder& b, ValueId v, DType t) : builder(&b), value(v), stored(t) {}
  ValueId in(Builder& b) const { return whole ? b.literal(*whole) : truth ? b.literal(*truth) : value; }
};

Expr apply(Op op, std::initializer_list<Expr> args) {
  Builder* b = nullptr;
  for (const Expr& a : args)
    if (a.builder) b = a.builder;
  COSMATI_CHECK(b, "{} of numbers only in a row", ops::name(op));
  std::vector<ValueId> values;
  for (const Expr& a : args) values.push_back(a.in(*b));
  const Where where = (*b)[values.back()].where;
  if (op == Op::div && is_int((*b)[values[0]].dtype)) values[0] = b->cast((*b)[values[1]].dtype, values[0], where);
  return {*b, b->elementwise(op, std::move(values), where), DType::f32_};
}
Expr operator+(Expr a, Expr b) { return apply(Op::add, {a, b}); }
Expr operator-(Expr a, Expr b) { return apply(Op::sub, {a, b}); }
Expr operator*(Expr a, Expr b) { return apply(Op::mul, {a, b}); }
Expr operator/(Expr a, Expr b) { return apply(Op::div, {a, b}); }
Expr operator<(Expr a, Expr b) { return apply(Op::lt, {a, b}); }
Expr operator>(Expr a, Expr b) { return apply(Op::gt, {a, b}); }
Expr operator>=(Expr a, Expr b) { return apply(Op::ge, {a, b}); }
Expr operator==(Expr a, Expr b) { return apply(Op::eq, {a, b}); }
Expr operator||(Expr a, Expr b) { return apply(Op::logical_or, {a, b}); }
Expr operator&&(Expr a, Expr b) { return apply(Op::logical_and, {a, b}); }
Expr operator!(Expr a) { return apply(Op::logical_not, {a}); }
// Every operation under its own name, for rows.
#define COSMATI_1(name) \
  [[maybe_unused]] Expr name(Expr a) { return apply(Op::name, {a}); }
#define COSMATI_2(name) \
  [[maybe_unused]] Expr name(Expr a, Expr b) { return apply(Op::name, {a, b}); }
#define COSMATI_3(name) \
  [[maybe_unused]] Expr name(Expr a, Expr b, Expr c) { return apply(Op::name, {a, b, c}); }
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) COSMATI_##arity(name)
#include <cosmati/ops.def>
#undef OP
#undef COSMATI_1
#undef COSMATI_2
#undef COSMATI_3

Expr constant_like(Expr x, double of_float, double of_int) {
  const DType t = (*x.builder)[x.value].dtype;
  return {*x.builder, x.builder->constant(t, is_float(t) ? of_float : of_int), x.stored};
}
Expr lowest(Expr x) {
  return constant_like(x, -std::numeric_limits<double>::infinity(),
                       is_signed(x.stored) ? -std::ldexp(1.0, 8 * byte_size(x.stored) - 1) : 0);
}
Expr highest(Expr x) {
  return constant_like(
      x, std::numeric_limits<double>::infinity(),
      std::ldexp(1.0, 8 * byte_size(x.stored) - (is_signed(x.stored) ? 1 : 0)) - (byte_size(x.stored) < 8 ? 1 : 0));
}
// Integers as i64, so that many of them do not wrap before they are divided.
Expr widest(Expr x) {
  const DType t = (*x.builder)[x.value].dtype;
  if (!is_int(t)) return x;
  return {*x.builder, x.builder->cast(DType::i64_, x.value, (*x.builder)[x.value].where), x.stored};
}
Expr nan_of(Expr x) { return constant_like(x, std::nan(""), 0); }

// Whether state a wins: an empty side (index -1) never does, NaN beats numbers, then the better value, then the lower index.
Expr first_of(Expr better, Expr av, Expr ai, Expr bv, Expr bi) {
  Expr wins = better, tie = av == bv;
  if (is_float((*av.builder)[av.value].dtype)) {
    wins = wins || (is_nan(av) && !is_nan(bv));
    tie = tie || (is_nan(av) && is_nan(bv));
  }
  return bi < 0 || (ai >= 0 && (wins || (tie && ai < bi)));
}

// A mean as an unevaluated sum high + low, high being the sum rounded: what adding rounds away stays in low, so the error grows
// with the spread of the elements and not with their size. The side of more elements is the base, which keeps the mean of a
// constant row exact; ties are broken by value, which keeps both orders of a merge equal bit for bit. Where the difference is not
// finite the weighted sum has the right infinity or NaN.
struct Mean {
  Expr high, low;
};
Expr distance(Mean a, Mean b) { return (b.high - a.high) + (b.low - a.low); }
Mean mean_merge(Expr na, Mean a, Expr nb, Mean b) {
  const Expr n = na + nb, zero = constant_like(na, 0, 0);
  const Expr first = na > nb || (na == nb && (a.high > b.high || (a.high == b.high && a.low >= b.low)));
  const Expr base = where(first, a.high, b.high);
  const Expr step = where(first, a.low + distance(a, b) * (nb / n), b.low + distance(b, a) * (na / n));
  const Expr sum = base + step, seen = sum - base, rest = (base - (sum - seen)) + (step - seen);
  const Expr finite = rest - rest == 0;
  return {where(n == 0, zero, where(finite, sum, a.high * (na / n) + b.high * (nb / n))), where(finite, rest, zero)};
}
Expr m2_merge(Expr na, Mean a, Expr sa, Expr nb, Mean b, Expr sb) {
  const Expr d = distance(a, b), both = na * nb;
  return where(both == 0, sa + sb, (sa + sb) + d * d * (both / (na + nb)));
}
Expr lse_merge(Expr ma, Expr sa, Expr mb, Expr sb) {
  const Expr m = maximum(ma, mb);
  return sa * exp_diff(ma, m) + sb * exp_diff(mb, m);
}

template <class... E>
std::vector<Expr> list(E... items) {
  return {Expr(items)...};
}

// The columns of a row, each evaluated on the values it may name.
struct Env {
  Expr x0, x1, a0, a1, a2, a3, b0, b1, b2, b3, s0, s1, s2, s3, count;
};
std::vector<Expr> identity_of(RowId row, const Env& env) {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  case RowId::name:                                                                                         \
    return list identity;
  [[maybe_unused]] const auto& [x0, x1, a0, a1, a2, a3, b0, b1, b2, b3, s0, s1, s2, s3, count] = env;
  switch (row) {
#include <cosmati/reducers.def>
  }
#undef REDUCER
  throw InternalError("no such reducer row");
}
std::vector<Expr> lift_of(RowId row, const Env& env) {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  case RowId::name:                                                                                         \
    return list lift;
  [[maybe_unused]] const auto& [x0, x1, a0, a1, a2, a3, b0, b1, b2, b3, s0, s1, s2, s3, count] = env;
  switch (row) {
#include <cosmati/reducers.def>
  }
#undef REDUCER
  throw InternalError("no such reducer row");
}
std::vector<Expr> merge_of(RowId row, const Env& env) {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  case RowId::name:                                                                                         \
    return list merge;
  [[maybe_unused]] const auto& [x0, x1, a0, a1, a2, a3, b0, b1, b2, b3, s0, s1, s2, s3, count] = env;
  switch (row) {
#include <cosmati/reducers.def>
  }
#undef REDUCER
  throw InternalError("no such reducer row");
}
std::vector<Expr> finish_of(RowId row, const Env& env) {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  case RowId::name:                                                                                         \
    return list finish;
  [[maybe_unused]] const auto& [x0, x1, a0, a1, a2, a3, b0, b1, b2, b3, s0, s1, s2, s3, count] = env;
  switch (row) {
#include <cosmati/reducers.def>
  }
#undef REDUCER
  throw InternalError("no such reducer row");
}

// The single operation a user's merge may turn out to be.
std::optional<Op> fold_of(const Program& p, const Lambda& merge, std::size_t states) {
  if (states != 1) return std::nullopt;
  const auto* n = std::get_if<Elementwise>(&p[merge.results[0]].node);
  if (!n || n->args.size() != 2) return std::nullopt;
  for (std::uint32_t k = 0; k < 2; ++k) {
    const auto* arg = std::get_if<Arg>(&p[n->args[k]].node);
    if (!arg || arg->slot != k) return std::nullopt;
  }
  for (const RowInfo& row : row_table)
    if (row.fold == ops::name(n->op)) return n->op;
  return std::nullopt;
}

// What bodies of one meaning are called makes no difference.
bool same(const Reducer& a, const Reducer& b) {
  return !a.builtin && !b.builtin && a.arg_types == b.arg_types && a.state_types == b.state_types &&
         a.identity.results == b.identity.results && a.lift.results == b.lift.results && a.merge.results == b.merge.results &&
         a.finish.results == b.finish.results;
}

}  // namespace

std::optional<int> Builder::builtin_arity(const std::string& name) {
  const auto row = row_named(name);
  if (!row) return std::nullopt;
  return info(*row).arguments - ((info(*row).flags & index) ? 1 : 0);
}

std::optional<ReducerId> Builder::builtin(const std::string& name, const std::vector<ValueId>& args, const Where& where) {
  const auto id = row_named(name);
  if (!id) return std::nullopt;
  const RowInfo& row = info(*id);
  const int values = *builtin_arity(name);
  if (static_cast<int>(args.size()) != values)
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} takes {} value{}, and {} are given", name, values, values == 1 ? "" : "s", args.size()));
  Reducer r;
  r.name = name;
  for (ValueId v : args) {
    const DType t = concrete_type(v).dtype;
    const bool fits = row.typing == ops::Typing::logical    ? is_bool(t)
                      : row.typing == ops::Typing::floating ? is_float(t)
                                                            : !is_bool(t);
    if (!fits) {
      const std::string text = describe(program_, v);
      const char* needs = row.typing == ops::Typing::logical    ? "conditions"
                          : row.typing == ops::Typing::floating ? "floats"
                                                                : "numbers";
      const std::string hint = row.typing == ops::Typing::logical    ? text + " != 0"
                               : row.typing == ops::Typing::floating ? "f32(" + text + ")"
                                                                     : "i32(" + text + ")";
      throw Error(ErrorCode::type_mismatch, where, fmt::format("{} needs {}; {} is {}", name, needs, text, cosmati::name(t)),
                  "write " + hint);
    }
    r.arg_types.push_back(t);
  }
  if (row.flags & index) r.arg_types.push_back(DType::i64_);
  for (std::size_t k = 0; k < program_.reducers.size(); ++k)
    if (program_.reducers[k].builtin && program_.reducers[k].name == name && program_.reducers[k].arg_types == r.arg_types)
      return ReducerId{static_cast<std::uint32_t>(k)};

  auto arg = [&](std::size_t slot, DType t) { return intern(Arg{static_cast<std::uint32_t>(slot)}, {t, false}, {}, where); };
  const DType compute = compute_type(r.arg_types[0]);
  Env env;
  Expr* const xs[] = {&env.x0, &env.x1};
  for (std::size_t k = 0; k < r.arg_types.size(); ++k) {
    const DType t = r.arg_types[k];
    *xs[k] = Expr(*this, cast(compute_type(t), arg(k, t), where), t);
    r.arg_names.push_back(fmt::format("x{}", k));
  }
  auto typed = [&](const std::vector<Expr>& exprs, const std::vector<DType>& types) {
    std::vector<ValueId> out;
    for (std::size_t k = 0; k < exprs.size(); ++k) {
      const ValueId v = exprs[k].in(*this);
      out.push_back(adapt(v, {program_[v].weak ? (k < types.size() ? types[k] : compute) : program_[v].dtype, false}, where));
    }
    return out;
  };
  r.lift.results = typed(lift_of(*id, env), {});
  for (ValueId v : r.lift.results) r.state_types.push_back(program_[v].dtype);
  const std::size_t n = r.state_types.size();
  COSMATI_CHECK(static_cast<int>(n) == row.states, "{} lifts to {} states", name, n);
  r.identity.results = typed(identity_of(*id, env), r.state_types);
  Expr* const as[] = {&env.a0, &env.a1, &env.a2, &env.a3};
  Expr* const bs[] = {&env.b0, &env.b1, &env.b2, &env.b3};
  Expr* const ss[] = {&env.s0, &env.s1, &env.s2, &env.s3};
  for (std::size_t k = 0; k < n; ++k) {
    *as[k] = *ss[k] = Expr(*this, arg(k, r.state_types[k]), r.state_types[k]);
    *bs[k] = Expr(*this, arg(n + k, r.state_types[k]), r.state_types[k]);
    r.state_names.push_back(fmt::format("s{}", k));
  }
  env.count = Expr(*this, arg(n, is_float(compute) ? compute : DType::f32_), compute);
  r.merge.results = typed(merge_of(*id, env), r.state_types);
  r.finish.results = typed(finish_of(*id, env), {});
  for (ValueId v : r.finish.results) r.result_types.push_back(program_[v].dtype);
  r.fold = ops::op_from_name(row.fold);
  r.commutative = (row.flags & commutative) != 0;
  r.idempotent = (row.flags & idempotent) != 0;
  r.index = (row.flags & index) != 0;
  r.where = where;
  program_.reducers.push_back(std::move(r));
  return ReducerId{static_cast<std::uint32_t>(program_.reducers.size() - 1)};
}

// The results of a callback; the names it bound become the lambda's own.
Lambda Builder::lambda(const std::function<std::vector<ValueId>()>& results, std::size_t count, const std::string& what,
                       const Where& where) {
  const std::size_t names = program_.names.size();
  Lambda out;
  out.results = results();
  for (std::size_t k = names; k < program_.names.size(); ++k) out.lets.push_back(program_.names[k]);
  program_.names.resize(names);
  if (count != 0 && out.results.size() != count)
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} gives {} values for {} states", what, out.results.size(), count));
  for (ValueId v : out.results)
    if (!facts(v).pure)
      throw Error(ErrorCode::not_supported, where,
                  fmt::format("{} uses {}; it may use its own names, scalars and literals in elementwise operations only", what,
                              describe(program_, v)),
                  "pass the value as an argument of the reducer");
  return out;
}

ReducerId Builder::reducer(const std::string& name, const ReducerBody& body, const std::vector<ValueId>& args,
                           const Where& where) {
  const std::size_t n = body.state_names.size();
  if (args.size() != body.arg_names.size())
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} takes {} value{}, and {} are given", name, body.arg_names.size(),
                            body.arg_names.size() == 1 ? "" : "s", args.size()));
  Reducer r;
  r.name = name;
  r.builtin = false;
  r.arg_names = body.arg_names;
  r.state_names = body.state_names;
  for (ValueId v : args) r.arg_types.push_back(concrete_type(v).dtype);

  // A state has the type in which lift and merge meet; both are evaluated until that no longer changes.
  const Saved before = save();
  std::vector<Type> states;
  auto params = [&](std::size_t first, const std::vector<Type>& types) {
    std::vector<ValueId> out;
    for (std::size_t k = 0; k < types.size(); ++k)
      out.push_back(intern(Arg{static_cast<std::uint32_t>(first + k)}, types[k], {}, where));
    return out;
  };
  std::vector<Type> inputs;
  for (DType t : r.arg_types) inputs.push_back({t, false});
  for (int attempt = 0;; ++attempt) {
    if (attempt > 8)
      throw Error(ErrorCode::type_mismatch, where, fmt::format("the state of reducer {} never settles on a type", name));
    if (attempt > 0) restore(before);
    r.lift = lambda([&] { return body.lift(params(0, inputs)); }, n, "lift of " + name, where);
    std::vector<Type> next;
    for (std::size_t k = 0; k < n; ++k) {
      const Value& v = program_[r.lift.results[k]];
      next.push_back(attempt == 0 ? Type{v.weak ? v.dtype : compute_type(v.dtype), v.weak} : states[k]);
    }
    r.merge = lambda([&] { return body.merge(params(0, next), params(static_cast<std::uint32_t>(n), next)); }, n,
                     "merge of " + name, where);
    bool stable = attempt > 0, weak = false;
    for (std::size_t k = 0; k < n; ++k) {
      const ValueId assumed = intern(Arg{static_cast<std::uint32_t>(k)}, next[k], {}, where);
      const Type met = join_types(
          {assumed, r.merge.results[k]}, [&] { return fmt::format("state {} of reducer {}", body.state_names[k], name); }, where);
      stable = stable && met.dtype == next[k].dtype && met.weak == next[k].weak;
      next[k] = met;
      weak = weak || met.weak;
    }
    states = next;
    if (!stable) continue;
    if (!weak) break;
    for (Type& t : states)
      if (t.weak) t = {is_float(t.dtype) ? DType::f32_ : DType::i64_, false};
  }
  for (const Type& t : states) r.state_types.push_back(t.dtype);
  r.identity = lambda(body.identity, n, "identity of " + name, where);
  for (Lambda* part : {&r.identity, &r.lift, &r.merge})
    for (std::size_t k = 0; k < n; ++k) {
      join_types(
          {intern(Arg{static_cast<std::uint32_t>(k)}, states[k], {}, where), part->results[k]},
          [&] { return fmt::format("state {} of reducer {}", body.state_names[k], name); }, where);
      part->results[k] = adapt(part->results[k], states[k], where);
    }
  r.finish = lambda([&] { return body.finish(params(0, states)); }, 0, "finish of " + name, where);
  if (r.finish.results.empty()) throw Error(ErrorCode::type_mismatch, where, fmt::format("finish of {} gives nothing", name));
  for (ValueId& v : r.finish.results) {
    v = concrete(v, where);
    r.result_types.push_back(program_[v].dtype);
  }
  r.fold = fold_of(program_, r.merge, n);
  r.where = where;
  for (std::size_t k = 0; k < program_.reducers.size(); ++k)
    if (same(program_.reducers[k], r)) return ReducerId{static_cast<std::uint32_t>(k)};
  // One for each list of types: their names differ, as they do in what is printed.
  const auto is_taken = [&] {
    return std::any_of(program_.reducers.begin(), program_.reducers.end(),
                       [&](const Reducer& other) { return other.name == r.name; });
  };
  for (int number = 2; is_taken(); ++number) r.name = fmt::format("{}_{}", name, number);
  program_.reducers.push_back(std::move(r));
  return ReducerId{static_cast<std::uint32_t>(program_.reducers.size() - 1)};
}

}  // namespace cosmati::ir
