// Joins: which type two values meet in, which axes, and what a store may keep silently.
//
// Arithmetic always runs in the compute type: f16, bf16 and f8 operands are cast to f32, 8- and 16-bit integers to i32 (to u32
// beside a u32); a bare load, a cast and a replacement keep the narrow type. A weak value (literal, extent) takes the type of the
// other side. A store converts float to float and weak values. An integer is stored without a cast only where its value cannot
// change: the same type; a wider type of the same signedness; the 8- or 16-bit type that it was selected from (min, max, where
// and their kind, see Facts::exact); an index that a reducer chose, stored to i32.
// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"
#include "ir/describe.h"
#include "support/check.h"

namespace cosmati::ir {
namespace {

std::string_view type_name(DType t) { return cosmati::name(t); }

std::string kind_of(const Value& v) {
  if (v.weak) return is_float(v.dtype) ? "a real number" : "an integer";
  return std::string(type_name(v.dtype));
}

// Nothing where the two do not join.
std::optional<DType> join(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) && is_float(b)) return a == DType::f64_ || b == DType::f64_ ? DType::f64_ : DType::f32_;
  if (!is_int(a) || !is_int(b)) return std::nullopt;
  if (a == DType::u32_ || b == DType::u32_) return is_signed(a) || is_signed(b) ? std::nullopt : std::optional(DType::u32_);
  return a == DType::i64_ || b == DType::i64_ ? DType::i64_ : DType::i32_;
}

// The cast that makes two sides join which do not: of a condition or an integer to the type of the other side, of an unsigned
// integer beside a signed one to i64.
struct Cast {
  DType to;
  bool second;  // of the second side
};
Cast joining_cast(DType a, DType b) {
  if (is_bool(a) || is_bool(b)) return {is_bool(a) ? is_bool(b) ? DType::i32_ : compute_type(b) : compute_type(a), is_bool(b)};
  if (is_float(a) || is_float(b)) return {compute_type(is_float(a) ? a : b), is_float(a)};
  return {DType::i64_, is_signed(a)};
}

}  // namespace

AxisSet Builder::closure(const AxisSet& set) const {
  AxisSet out = set;
  for (std::size_t before = 0; before != out.size();) {
    before = out.size();
    for (AxisId a : AxisSet(out)) out = set_union(out, range_axes(program_, a));
  }
  return out;
}

Builder::Axes Builder::join_axes(const std::vector<ValueId>& args, const Where& where) const {
  Axes out;
  for (ValueId v : args) {
    out.axes = set_union(out.axes, program_[v].axes);
    out.done = set_union(out.done, program_[v].done);
  }
  refuse_unfinished(out, args, where);
  return out;
}

void Builder::refuse_unfinished(const Axes& axes, const std::vector<ValueId>& args, const Where& where) const {
  if (axes.done.empty()) return;
  const AxisSet all = closure(axes.axes);
  for (AxisId a : axes.done) {
    if (!contains(all, a)) continue;
    std::string reduced = "a value", other = "a value";
    for (ValueId v : args) {
      if (contains(program_[v].done, a)) reduced = describe_reduction(program_, v, a);
      if (contains(closure(program_[v].axes), a)) other = describe(program_, v);
    }
    const std::string& axis = program_[a].name;
    throw Error(
        ErrorCode::unfinished_reduction, where,
        fmt::format("{} exists only when every instance of {} has finished; it is joined here with {}, which still has {}",
                    reduced, axis, other, axis),
        fmt::format("leave {0} out of parallel, or combine it with values that are reduced over {0} too", axis));
  }
}

void Builder::refuse_range_of_rest(const AxisSet& rest, const AxisSet& removed, const std::string& what,
                                   const Where& where) const {
  for (AxisId a : rest)
    for (AxisId b : range_axes(program_, a))
      if (contains(removed, b))
        throw Error(ErrorCode::not_supported, where,
                    fmt::format("{} removes {}, but the value still has {}, whose range depends on {}", what, program_[b].name,
                                program_[a].name, program_[b].name),
                    fmt::format("reduce over {} too", program_[a].name));
}

Builder::Type Builder::join_types(const std::vector<ValueId>& args, const Text& text, const Where& where) const {
  std::optional<DType> typed;
  ValueId first, weakest;
  bool weak_float = false, weak_int = false;
  auto refuse = [&](ValueId a, ValueId b) {
    const Cast cast = joining_cast(program_[a].dtype, program_[b].dtype);
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{}: {} is {} and {} is {}, which do not join", text(), describe(program_, a), kind_of(program_[a]),
                            describe(program_, b), kind_of(program_[b])),
                fmt::format("name the cast, as in {}({})", type_name(cast.to), describe(program_, cast.second ? b : a)));
  };
  for (ValueId v : args) {
    const Value& value = program_[v];
    if (value.weak) {
      (is_float(value.dtype) ? weak_float : weak_int) = true;
      if (!weakest || is_float(value.dtype)) weakest = v;
      continue;
    }
    if (!typed) {
      typed = value.dtype;
      first = v;
      continue;
    }
    typed = join(*typed, value.dtype);
    if (!typed) refuse(first, v);
    if (*typed == value.dtype) first = v;
  }
  if (!typed) return {weak_float ? DType::f64_ : DType::i64_, true};
  if (weak_float ? !is_float(*typed) : weak_int && is_bool(*typed)) {
    const Value& t = program_[first];
    const std::string cast = fmt::format("{}({})", weak_float ? "f32" : "i32", describe(program_, first));
    const std::string hint = (is_bool(t.dtype) ? "write true or false, or " : "name the cast, as in ") + cast;
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{}: {} is {} and {} is {}, which do not join", text(), describe(program_, first), kind_of(t),
                            describe(program_, weakest), kind_of(program_[weakest])),
                hint);
  }
  return {compute_type(*typed), false};
}

// A real literal keeps its digits in every type that it is given, by a join or by name: the wide oracle computes with them,
// everything else rounds them to the type.
Const Builder::converted(const Value& constant, DType to) {
  Const c = std::get<Const>(constant.node);
  if (constant.weak && is_float(constant.dtype) && is_float(to)) return c;
  if (is_float(constant.dtype)) c.f = ops::round_to(constant.dtype, c.f);
  const ops::Scalar s = ops::cast(constant.dtype, to, {c.f, c.i});
  return {s.f, s.i};
}

ValueId Builder::adapt(ValueId v, Type to, const Where& where) {
  const Value value = program_[v];
  if (value.dtype == to.dtype && value.weak == to.weak) return v;
  Axes axes{value.axes, value.done};
  if (const auto* c = std::get_if<Const>(&value.node)) {
    if (value.weak && is_float(value.dtype) && !is_float(to.dtype))
      throw Error(ErrorCode::type_mismatch, where,
                  fmt::format("{} is a real number, where {} is needed", describe(program_, v), type_name(to.dtype)),
                  fmt::format("write {}({})", type_name(to.dtype), describe(program_, v)));
    if (value.weak && is_int(to.dtype) && ops::wrap_to(to.dtype, c->i) != c->i)
      throw Error(ErrorCode::type_mismatch, where, fmt::format("{} does not fit {}", c->i, type_name(to.dtype)),
                  fmt::format("cast the other side to a wider type, or write {}({})", type_name(to.dtype), c->i));
    return intern(converted(value, to.dtype), to, {}, value.where);
  }
  if (value.dtype == to.dtype) return intern(value.node, to, std::move(axes), value.where);  // weakness is only a rule of typing
  if (const auto* op = std::get_if<Elementwise>(&value.node); op && value.weak && op->op == ops::Op::where) {
    // The branches take the type themselves, so that no float64 remains in a float32 program; the choice is made in the compute
    // type like every operation.
    const DType compute = compute_type(to.dtype);
    std::vector<ValueId> args{op->args[0]};
    for (std::size_t k = 1; k < 3; ++k) args.push_back(adapt(adapt(op->args[k], to, where), {compute, to.weak}, where));
    if (compute != to.dtype) {
      const ValueId wide = intern(Elementwise{ops::Op::where, args}, {compute, to.weak}, axes, value.where);
      return intern(Elementwise{ops::Op::cast, {wide}}, to, std::move(axes), value.where);
    }
    return intern(Elementwise{ops::Op::where, args}, to, std::move(axes), value.where);
  }
  return intern(Elementwise{ops::Op::cast, {v}}, to, std::move(axes), value.where);
}

Builder::Type Builder::concrete_type(ValueId v) const {
  const Value& value = program_[v];
  if (!value.weak) return {value.dtype, false};
  return {is_float(value.dtype) ? DType::f32_ : DType::i64_, false};
}

ValueId Builder::concrete(ValueId v, const Where& where) { return adapt(v, concrete_type(v), where); }

std::optional<ValueId> Builder::kept_as(DType dtype, ValueId v, const Where& where) {
  const Value& value = program_[v];
  const DType from = value.dtype;
  const bool floats = is_float(from) && is_float(dtype);
  if (value.weak) {
    if (is_bool(dtype) || (is_float(from) && !is_float(dtype))) return std::nullopt;
    return adapt(v, {dtype, false}, where);
  }
  const bool wider = is_int(from) && is_int(dtype) && byte_size(from) <= byte_size(dtype) &&
                     (is_signed(from) == is_signed(dtype) || compute_type(from) == dtype);
  const bool selected = is_int(dtype) && facts(v).exact == dtype;
  const bool index = dtype == DType::i32_ && from == DType::i64_ && facts(v).index;
  if (from == dtype || floats || wider || selected || index) return adapt(v, {dtype, false}, where);
  return std::nullopt;
}

ValueId Builder::integer_index(ValueId v, const std::string& what, const Where& where) {
  v = local(v, where);
  refuse_args(v, where);
  const Value& value = program_[v];
  if (!is_int(value.dtype))
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} must be an integer; {} is {}", what, describe(program_, v), kind_of(value)),
                fmt::format("write i64({})", describe(program_, v)));
  return adapt(v, {DType::i64_, false}, where);
}

}  // namespace cosmati::ir
