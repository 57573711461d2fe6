// The builder: appends to the arenas of a kernel, keeps names unique, and folds what is exact: integer and boolean operations on
// constants, identities of integer arithmetic, and choices whose condition is a constant. Float operations are never touched.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "kernel/laws.h"
#include "kernel/text.h"
#include "support/check.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

bool is_exact(DType t) { return is_int(t) || is_bool(t); }

const Const* constant_of(const Kernel& k, ExprId e) { return std::get_if<Const>(&k[e].node); }

// Whether `e` is the integer or boolean constant `value`.
bool is_constant(const Kernel& k, ExprId e, std::int64_t value) {
  const Const* c = constant_of(k, e);
  return c && is_exact(k[e].dtype) && c->i == value;
}

bool is_leaf(const Kernel& k, ExprId e) {
  return !std::holds_alternative<Apply>(k[e].node) && !std::holds_alternative<Load>(k[e].node) &&
         !std::holds_alternative<Shuffle>(k[e].node);
}

// No load below: the value may be dropped without dropping an access that the simulator would judge.
bool is_pure(const Kernel& k, ExprId e) {
  if (const Apply* a = std::get_if<Apply>(&k[e].node))
    return std::all_of(a->args.begin(), a->args.end(), [&](ExprId arg) { return is_pure(k, arg); });
  if (const Shuffle* s = std::get_if<Shuffle>(&k[e].node)) return is_pure(k, s->value);
  return is_leaf(k, e);
}

// The result of an integer or boolean operation that an identity decides; constants are at args of `x op y`.
std::optional<ExprId> identity(const Kernel& k, Op op, const std::vector<ExprId>& args) {
  if (args.size() != 2) return std::nullopt;
  const ExprId x = args[0], y = args[1];
  switch (op) {
    case Op::add:
      if (is_constant(k, x, 0)) return y;
      [[fallthrough]];
    case Op::sub:
      if (is_constant(k, y, 0)) return x;
      return std::nullopt;
    case Op::mul:
      if (is_constant(k, x, 1)) return y;
      if (is_constant(k, y, 1)) return x;
      if (is_constant(k, x, 0) && is_pure(k, y)) return x;
      if (is_constant(k, y, 0) && is_pure(k, x)) return y;
      return std::nullopt;
    case Op::floordiv:
      if (is_constant(k, y, 1)) return x;
      [[fallthrough]];
    case Op::mod:
      if (is_constant(k, x, 0) && is_pure(k, y)) return x;
      return std::nullopt;
    case Op::logical_and:
    case Op::logical_or: {
      const std::int64_t neutral = op == Op::logical_and;
      if (is_constant(k, x, neutral)) return y;
      if (is_constant(k, y, neutral)) return x;
      if (is_constant(k, x, !neutral) && is_pure(k, y)) return x;
      if (is_constant(k, y, !neutral) && is_pure(k, x)) return y;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

constexpr std::string_view reserved_words[] = {
    "kernel", "param",    "buffer",         "phase",       "groups", "let",   "for",    "in",       "carry",  "gives",
    "next",   "if",       "else",           "group",       "worker", "lane",  "lanes",  "true",     "false",  "and",
    "or",     "prefetch", "prefetch_write", "past_caches", "fence",  "apart", "packed", "requires", "aliased"};

std::string sanitised(const std::string& name) {
  std::string s;
  for (char c : name) s += is_identifier(std::string{'_', c}) ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s.insert(0, "v");
  return s;
}

ExprId append(Kernel& k, ExprNode node, DType dtype) {
  k.exprs.push_back({std::move(node), dtype});
  return ExprId{static_cast<std::uint32_t>(k.exprs.size() - 1)};
}

}  // namespace

DType result_type(const Kernel& k, Op op, const std::vector<ExprId>& args) {
  const ops::Typing typing = ops::info(op).typing;
  if (typing == ops::Typing::comparison || typing == ops::Typing::test || typing == ops::Typing::logical) return DType::bool_;
  return typing == ops::Typing::select ? k[args[1]].dtype : k[args[0]].dtype;
}

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return (c < 128 && std::isalnum(c)) || c == '_'; });
}

bool is_reserved(std::string_view name) {
  if (std::find(std::begin(reserved_words), std::end(reserved_words), name) != std::end(reserved_words)) return true;
  if (!name.starts_with("inf_") && !name.starts_with("nan_")) return false;
  const auto dtype = dtype_from_name(name.substr(4));
  return dtype && is_float(*dtype);
}

ExprId Builder::constant(DType dtype, double value) {
  COSMATI_CHECK(is_float(dtype), "a float constant of type {}", name(dtype));
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return append(k_, Const{.f = ops::round_to(dtype, value)}, dtype);
}

ExprId Builder::integer(std::int64_t value, DType dtype) {
  COSMATI_CHECK(is_int(dtype), "an integer constant of type {}", name(dtype));
  return append(k_, Const{.i = ops::wrap_to(dtype, value)}, dtype);
}

ExprId Builder::boolean(bool value) { return append(k_, Const{.i = value}, DType::bool_); }
ExprId Builder::param(ParamId p) { return append(k_, ParamRef{p}, k_[p].dtype); }
ExprId Builder::group() { return append(k_, Id{Id::What::group}, DType::i64_); }
ExprId Builder::worker() { return append(k_, Id{Id::What::worker}, DType::i64_); }
ExprId Builder::lane() { return append(k_, Id{Id::What::lane}, DType::i64_); }
ExprId Builder::swap(ExprId value, std::uint32_t mask) { return append(k_, Shuffle{value, mask}, k_[value].dtype); }
ExprId Builder::first(ExprId value) { return append(k_, Shuffle{value, {}}, k_[value].dtype); }
ExprId Builder::var(VarId v) { return append(k_, VarRef{v}, k_[v].dtype); }

ExprId Builder::apply(Op op, std::vector<ExprId> args) {
  COSMATI_CHECK(op != Op::cast && op != Op::bits, "Builder::cast and Builder::bits say the type of the result");
  COSMATI_CHECK(static_cast<int>(args.size()) == ops::info(op).arity, "{} of {} arguments", ops::name(op), args.size());
  const DType result = result_type(k_, op, args);
  if (op == Op::where) {
    if (const Const* c = constant_of(k_, args[0])) {
      const ExprId taken = args[c->i ? 1 : 2], dropped = args[c->i ? 2 : 1];
      if (is_pure(k_, dropped)) return taken;
    }
    return append(k_, Apply{op, std::move(args)}, result);
  }
  const DType argument = k_[args[0]].dtype;
  if (is_exact(argument) && ops::info(op).on_integers) {
    if (auto value = identity(k_, op, args)) return *value;
    if (op == Op::mod && is_constant(k_, args[1], 1) && is_pure(k_, args[0])) return integer(0, argument);
    if (std::all_of(args.begin(), args.end(), [&](ExprId e) { return constant_of(k_, e); })) {
      ops::Scalar values[3];
      for (std::size_t i = 0; i < args.size(); ++i) values[i] = {.i = constant_of(k_, args[i])->i};
      return append(k_, Const{.i = ops::reference(op, argument, result, values).i}, result);
    }
  }
  return append(k_, Apply{op, std::move(args)}, result);
}

ExprId Builder::cast(DType to, ExprId value) {
  const DType from = k_[value].dtype;
  if (from == to) return value;
  if (const Const* c = constant_of(k_, value); c && is_exact(from) && is_exact(to))
    return append(k_, Const{.i = ops::cast(from, to, {.i = c->i}).i}, to);
  return append(k_, Apply{Op::cast, {value}}, to);
}

ExprId Builder::bits(DType to, ExprId value) {
  const DType from = k_[value].dtype;
  if (from == to) return value;
  COSMATI_CHECK(byte_size(from) == byte_size(to), "the bits of {} as {}", name(from), name(to));
  if (const Const* c = constant_of(k_, value); c && is_exact(from) && is_exact(to))
    return append(k_, Const{.i = ops::reinterpret(from, to, {.i = c->i}).i}, to);
  return append(k_, Apply{Op::bits, {value}}, to);
}

ExprId Builder::load(BufferId buffer, ExprId offset, std::optional<ExprId> guard, std::optional<ExprId> otherwise) {
  COSMATI_CHECK(guard.has_value() == otherwise.has_value(), "a guarded load of {} says what it is otherwise", k_[buffer].name);
  if (guard && is_constant(k_, *guard, 1) && is_pure(k_, *otherwise)) guard = otherwise = std::nullopt;
  if (guard && is_constant(k_, *guard, 0) && is_pure(k_, offset)) return *otherwise;
  return append(k_, Load{{buffer, offset}, guard, otherwise}, k_[buffer].dtype);
}

std::string Builder::unique_name(const std::string& name) {
  // The kernel may have grown by other hands since the last call; what is new is read once.
  for (; seen_params_ < k_.params.size(); ++seen_params_) taken_.insert(k_.params[seen_params_].name);
  for (; seen_buffers_ < k_.buffers.size(); ++seen_buffers_) taken_.insert(k_.buffers[seen_buffers_].name);
  for (; seen_vars_ < k_.vars.size(); ++seen_vars_) taken_.insert(k_.vars[seen_vars_].name);
  const std::string base = sanitised(name);
  std::string unique = base;
  for (std::uint32_t& n = next_number_[base]; is_reserved(unique) || taken_.contains(unique);)
    unique = base + "_" + std::to_string(++n);
  taken_.insert(unique);
  return unique;
}

VarId Builder::fresh(const std::string& name, DType dtype) {
  k_.vars.push_back({unique_name(name), dtype});
  return VarId{static_cast<std::uint32_t>(k_.vars.size() - 1)};
}

ExprId Builder::let(Block& block, const std::string& name, ExprId value) {
  if (is_leaf(k_, value)) return value;
  const VarId v = fresh(name, k_[value].dtype);
  block.push_back(statement(Let{v, value}));
  return var(v);
}

void Builder::store(Block& block, BufferId buffer, ExprId offset, ExprId value, std::optional<ExprId> guard, bool past_caches) {
  if (guard && is_constant(k_, *guard, 1)) guard = std::nullopt;
  block.push_back(statement(Store{{buffer, offset}, value, guard, past_caches}));
}

StmtId Builder::statement(StmtNode node) {
  k_.stmts.push_back({std::move(node)});
  return StmtId{static_cast<std::uint32_t>(k_.stmts.size() - 1)};
}

}  // namespace cosmati::kernel
