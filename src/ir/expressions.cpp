// The value nodes: operations, casts, loads, reductions and replacements, each with the rules of its types and axes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/builder.h"
#include "ir/describe.h"
#include "support/check.h"

namespace cosmati::ir {
namespace {

using ops::Op;
using ops::Typing;

std::string type_of(const Value& v) { return std::string(cosmati::name(v.dtype)); }

}  // namespace

ValueId Builder::elementwise(Op op, std::vector<ValueId> args, const Where& where) {
  COSMATI_CHECK(op != Op::cast && op != Op::bits, "casts have their own members");
  const ops::OpInfo& row = ops::info(op);
  if (static_cast<int>(args.size()) != row.arity)
    throw Error(
        ErrorCode::type_mismatch, where,
        fmt::format("{} takes {} argument{}, and {} are given", row.name, row.arity, row.arity == 1 ? "" : "s", args.size()));
  for (ValueId& v : args) v = local(v, where);
  Axes axes = join_axes(args, where);
  const Text text = [&] { return describe(program_, op, args); };

  const bool real = row.typing == Typing::floating || row.typing == Typing::test;
  // `cast` in a hint stands for the type that another side has and the operation takes, so that the two join then.
  auto refuse = [&](const char* needs, bool (*wrong)(DType), DType otherwise, const char* hint) {
    for (ValueId v : args) {
      if (!wrong(program_[v].dtype)) continue;
      for (ValueId other : args)
        if (const Value& o = program_[other]; !wrong(o.dtype) && !is_bool(o.dtype) && (is_float(o.dtype) || !(o.weak || real)))
          otherwise = concrete_type(other).dtype;
      throw Error(ErrorCode::type_mismatch, where,
                  fmt::format("{} needs {}; {} is {}", text(), needs, describe(program_, v), type_of(program_[v])),
                  fmt::format(fmt::runtime(hint), fmt::arg("x", describe(program_, v)),
                              fmt::arg("cast", cosmati::name(compute_type(otherwise)))));
    }
  };
  auto not_bool = [](DType t) { return !is_bool(t); };
  auto not_int = [](DType t) { return !is_int(t); };
  const std::vector<ValueId> branches(args.begin() + (row.typing == Typing::select ? 1 : 0), args.end());
  if (row.typing == Typing::logical) refuse("conditions", not_bool, DType::bool_, "write {x} != 0");
  if (row.typing == Typing::select && !is_bool(program_[args[0]].dtype))
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("where needs a condition; {} is {}", describe(program_, args[0]), type_of(program_[args[0]])),
                fmt::format("write {} != 0", describe(program_, args[0])));
  const bool bools_allowed = row.typing == Typing::logical || row.typing == Typing::select || op == Op::eq || op == Op::ne;
  if (row.typing == Typing::integral)
    refuse("integers", not_int, DType::i32_, "write {cast}({x}), or use an operation on floats");
  if (!bools_allowed) refuse("numbers", is_bool, real ? DType::f32_ : DType::i32_, "write {cast}({x})");

  // Literals and extents are real numbers where a real number is needed, but 1 / 2 says too little.
  auto is_whole = [&](ValueId v) { return is_int(program_[v].dtype) && (!program_[v].weak || op == Op::div); };
  const bool whole = std::none_of(args.begin(), args.end(), [&](ValueId v) { return is_float(program_[v].dtype); });
  if (real && whole && std::any_of(args.begin(), args.end(), is_whole))
    refuse("floats", is_int, DType::f32_, op == Op::div ? "use // to round down, or write {cast}({x})" : "write {cast}({x})");

  Type operand = row.typing == Typing::logical ? Type{DType::bool_, false} : join_types(branches, text, where);
  if (is_int(operand.dtype) && real) operand.dtype = DType::f64_;
  for (std::size_t k = args.size() - branches.size(); k < args.size(); ++k) args[k] = adapt(args[k], operand, where);
  const bool test = row.typing == Typing::comparison || row.typing == Typing::test;
  const Type result = test ? Type{DType::bool_, false} : operand;

  ops::Scalar folded[3];
  bool constant = true;
  for (std::size_t k = 0; k < args.size() && constant; ++k) {
    const auto* c = std::get_if<Const>(&program_[args[k]].node);
    constant = c != nullptr;
    if (c) folded[k] = {c->f, c->i};
  }
  if (constant) {
    const ops::Scalar value = ops::reference(op, operand.dtype, result.dtype, folded);
    return intern(Const{value.f, value.i}, result, {}, where);
  }
  return intern(Elementwise{op, std::move(args)}, result, std::move(axes), where);
}

ValueId Builder::cast(DType to, ValueId v, const Where& where) {
  v = local(v, where);
  const Value value = program_[v];
  if (value.dtype == to) return adapt(v, {to, false}, where);
  if (std::holds_alternative<Const>(value.node)) return intern(converted(value, to), {to, false}, {}, where);
  return intern(Elementwise{Op::cast, {v}}, {to, false}, {value.axes, value.done}, where);
}

ValueId Builder::bits(DType to, ValueId v, const Where& where) {
  v = local(v, where);
  const DType from = to == DType::f32_ ? DType::u32_ : DType::f32_;
  if (to != DType::f32_ && to != DType::u32_)
    throw Error(ErrorCode::type_mismatch, where, fmt::format("there is no bits_{}", cosmati::name(to)),
                "bits_f32 and bits_u32 exist");
  if (program_[v].weak) v = adapt(v, {from, false}, where);
  const Value value = program_[v];
  if (value.dtype != from)
    throw Error(
        ErrorCode::type_mismatch, where,
        fmt::format("bits_{} needs {}; {} is {}", cosmati::name(to), cosmati::name(from), describe(program_, v), type_of(value)),
        fmt::format("write {}({})", cosmati::name(from), describe(program_, v)));
  if (const auto* c = std::get_if<Const>(&value.node)) {
    const ops::Scalar k = ops::reinterpret(from, to, {c->f, c->i});
    return intern(Const{k.f, k.i}, {to, false}, {}, where);
  }
  return intern(Elementwise{Op::bits, {v}}, {to, false}, {value.axes, value.done}, where);
}

// ---- accesses ----
std::vector<Index> Builder::checked_index(TensorId tensor, std::vector<Index> index, const Where& where) {
  const std::vector<Dim>& dims = program_[tensor].dims;
  if (index.size() != dims.size())
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} has {} dimension{} and is indexed with {}", describe_shape(program_, tensor), dims.size(),
                            dims.size() == 1 ? "" : "s", index.size()));
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d].size() != 1 && index[d].size() != dims[d].size())
      throw Error(ErrorCode::type_mismatch, where,
                  fmt::format("dimension {} of {} is {}, which has {} factor{}, and is indexed with {}", d, program_[tensor].name,
                              describe_dim(program_, dims[d]), dims[d].size(), dims[d].size() == 1 ? "" : "s", index[d].size()));
    for (ValueId& v : index[d]) v = integer_index(v, fmt::format("an index of {}", program_[tensor].name), where);
  }
  return index;
}

// Whether every index lies inside the extents.
ValueId Builder::in_bounds(TensorId tensor, const std::vector<Index>& index, const Where& where) {
  ValueId inside = literal(true);
  const std::vector<Dim> dims = program_[tensor].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    auto size = [&](const Factor& f) {
      const ValueId offset = literal(f.offset);
      return f.axis ? elementwise(Op::add, {extent(f.axis, where), offset}, where) : offset;
    };
    auto require = [&](ValueId i, ValueId n) {
      for (ValueId part : {elementwise(Op::le, {literal(std::int64_t{0}), i}, where), elementwise(Op::lt, {i, n}, where)})
        inside = elementwise(Op::logical_and, {inside, part}, where);
    };
    if (index[d].size() == dims[d].size()) {
      for (std::size_t k = 0; k < dims[d].size(); ++k) require(index[d][k], size(dims[d][k]));
    } else {
      ValueId whole = literal(std::int64_t{1});
      for (const Factor& f : dims[d]) whole = elementwise(Op::mul, {whole, size(f)}, where);
      require(index[d][0], whole);
    }
  }
  return inside;
}

ValueId Builder::load(TensorId tensor, std::vector<Index> index, std::optional<ValueId> otherwise, const Where& where) {
  const std::string tensor_name = program_[tensor].name;
  const DType dtype = program_[tensor].dtype;
  if (program_[tensor].access == Access::out)
    throw Error(ErrorCode::not_supported, where, fmt::format("{} is an out parameter and cannot be read", tensor_name),
                fmt::format("declare {} inout to read what was there before, or use the value that is stored", tensor_name));
  index = checked_index(tensor, std::move(index), where);
  std::vector<ValueId> reads;
  for (const Index& dim : index) reads.insert(reads.end(), dim.begin(), dim.end());
  if (otherwise) {
    otherwise = local(*otherwise, where);
    refuse_args(*otherwise, where);
    reads.push_back(*otherwise);
    const Value other = program_[*otherwise];
    if (!other.weak && other.dtype != dtype) {
      // The value outside is of another type: a condition chooses it, in the joined type.
      const ValueId zero = constant(dtype, 0);
      const ValueId inside = load(tensor, index, zero, where);
      return elementwise(Op::where, {in_bounds(tensor, index, where), inside, *otherwise}, where);
    }
    const auto kept = kept_as(dtype, *otherwise, where);
    if (!kept)
      throw Error(ErrorCode::type_mismatch, where,
                  fmt::format("{} is {}, and {} after else does not join it", tensor_name, cosmati::name(dtype),
                              describe(program_, *otherwise)),
                  fmt::format("write a value of {}", cosmati::name(dtype)));
    otherwise = kept;
    reads.back() = *otherwise;
  }
  return intern(Load{tensor, std::move(index), otherwise}, {dtype, false}, join_axes(reads, where), where);
}

ValueId Builder::bare(TensorId tensor, const Where& where) {
  const std::vector<Dim> dims = program_[tensor].dims;
  std::vector<Index> index;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    Index one;
    for (const Factor& f : dims[d]) {
      if (!f.axis || f.offset != 0)
        throw Error(
            ErrorCode::not_supported, where,
            fmt::format("dimension {} of {} is {}, which is not an axis, so {} alone does not say which elements are meant", d,
                        describe_shape(program_, tensor), describe_dim(program_, dims[d]), program_[tensor].name),
            fmt::format("index it: {}[...]", program_[tensor].name));
      one.push_back(coordinate(f.axis, where));
    }
    index.push_back(std::move(one));
  }
  return load(tensor, std::move(index), std::nullopt, where);
}

// ---- reductions ----
std::vector<ValueId> Builder::reduce(ReducerId reducer, std::vector<ValueId> args, std::vector<AxisId> axes,
                                     ReduceOptions options, const Where& where) {
  const std::string reducer_name = program_[reducer].name;
  const std::vector<DType> arg_types = program_[reducer].arg_types, result_types = program_[reducer].result_types;
  const bool index = program_[reducer].index;
  if (args.size() + (index ? 1 : 0) != arg_types.size())
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} takes {} value{}, and {} are given", reducer_name, arg_types.size() - (index ? 1 : 0),
                            arg_types.size() == (index ? 2u : 1u) ? "" : "s", args.size()));
  if (axes.empty())
    throw Error(ErrorCode::no_such_axis, where, fmt::format("{} names no axis to reduce over", reducer_name),
                fmt::format("name it: {}({}, axis)", reducer_name, args.empty() ? "x" : describe(program_, args[0])));
  if (index && axes.size() > 1)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("{} reduces over one axis, and {} are given", reducer_name, axes.size()),
                "write a reducer that takes the coordinates as values");

  AxisSet removed;
  for (AxisId& a : axes) {
    if (const auto s = open_stream_over(a)) {
      if (!program_[*s].tile)
        throw Error(ErrorCode::not_supported, where,
                    fmt::format("{} is a single point inside the stream over {}, so {} over it says nothing", program_[a].name,
                                program_[a].name, reducer_name),
                    fmt::format("carry the running value, or stream tile {}", program_[a].name));
      a = program_[*s].piece;
    }
    if (contains(removed, a))
      throw Error(ErrorCode::repeated_axis, where, fmt::format("{} names axis {} twice", reducer_name, program_[a].name));
    removed = set_union(removed, {a});
  }
  for (std::size_t k = 0; k < args.size(); ++k) {
    args[k] = concrete(local(args[k], where), where);
    refuse_args(args[k], where);
    COSMATI_CHECK(program_[args[k]].dtype == arg_types[k], "{} was made for other argument types", reducer_name);
  }

  Axes result = join_axes(args, where);
  const AxisSet reachable = closure(result.axes);
  for (AxisId a : axes)
    if (!contains(reachable, a)) {
      missing_ = Missing{a, args};
      throw Error(ErrorCode::no_such_axis, where,
                  fmt::format("{} over {}, but the value has no axis {} (it has {})", reducer_name, program_[a].name,
                              program_[a].name, describe_axes(program_, result.axes)));
    }
  result.axes = set_minus(result.axes, removed);
  refuse_range_of_rest(result.axes, removed, reducer_name, where);
  for (AxisId a : removed) {
    result.axes = set_union(result.axes, set_minus(range_axes(program_, a), removed));
    if (!program_[a].program) continue;
    result.done = set_union(result.done, {a});
    for (ValueId v : args)
      if (facts(v).scope)
        throw Error(ErrorCode::not_supported, where,
                    fmt::format("{} reduces over the program axis {} inside the stream over {}", reducer_name, program_[a].name,
                                program_[program_[facts(v).scope].axis].name),
                    "carry the value, and reduce the stream's result");
  }
  if (index) args.push_back(intern(Coord{axes[0]}, {DType::i64_, false}, {{axes[0]}, {}}, where));
  refuse_unfinished(result, args, where);

  const ValueId all =
      intern(Reduce{reducer, std::move(args), removed, options.order, options.relax}, {result_types[0], false}, result, where);
  if (result_types.size() == 1) return {all};
  std::vector<ValueId> parts;
  for (std::uint32_t k = 0; k < result_types.size(); ++k)
    parts.push_back(intern(Part{all, k}, {result_types[k], false}, result, where));
  return parts;
}

ValueId Builder::contract(ValueId a, ValueId b, std::vector<AxisId> axes, ReduceOptions options, const Where& where) {
  const ValueId product = elementwise(Op::mul, {a, b}, where);
  return reduce(*builtin("sum", {product}, where), {product}, std::move(axes), options, where)[0];
}

// ---- replacement ----
// Inside the body of an index stream a value made outside keeps its streamed axis here, so that v[t := t - 1] reads any point;
// in a tile stream the replaced axis is the piece, and the value is made anew at points outside of it.
ValueId Builder::replace(ValueId of, std::vector<std::pair<AxisId, ValueId>> binds, std::optional<ValueId> otherwise,
                         const Where& where) {
  AxisSet replaced, kept;
  for (auto& [axis, to] : binds) {
    to = integer_index(to, "the place of " + program_[axis].name, where);
    const auto s = open_stream_over(axis);
    const AxisId named = axis;
    if (s && !program_[*s].tile && contains(program_[of].axes, axis))
      kept = set_union(kept, {axis});
    else if (s)
      axis = program_[*s].piece;
    if (facts(of).carried &&
        (program_[named].program || (s && !program_[*s].tile && !contains(kept, axis) && facts(of).carried >= *s)))
      throw Error(ErrorCode::not_supported, where,
                  fmt::format("{} depends on what the stream over {} carries, so it has no value at another {}",
                              describe(program_, of), program_[program_[facts(of).carried].axis].name, program_[named].name),
                  "carry what the next step needs");
    if (contains(replaced, axis))
      throw Error(ErrorCode::repeated_axis, where, fmt::format("axis {} is replaced twice", program_[named].name));
    replaced = set_union(replaced, {axis});
  }
  of = local(of, where, kept);
  refuse_args(of, where);
  for (AxisId a : replaced)
    if (!contains(program_[of].axes, a)) {
      missing_ = Missing{a, {of}};
      throw Error(ErrorCode::no_such_axis, where,
                  fmt::format("{} := ..., but the value has no axis {} (it has {})", program_[a].name, program_[a].name,
                              describe_axes(program_, program_[of].axes)));
    }
  if (otherwise) {
    otherwise = local(*otherwise, where);
    refuse_args(*otherwise, where);
    const Type joined = join_types({of, *otherwise}, [&] { return describe(program_, of) + "[...] else"; }, where);
    const bool narrow = !program_[of].weak && (program_[*otherwise].weak || program_[*otherwise].dtype == program_[of].dtype);
    const Type type = narrow ? Type{program_[of].dtype, false} : joined;
    of = adapt(of, type, where);
    otherwise = adapt(*otherwise, type, where);
  }

  std::vector<ValueId> reads{of};
  Axes axes{set_minus(program_[of].axes, replaced), program_[of].done};
  refuse_range_of_rest(axes.axes, replaced, "a replacement", where);
  for (const auto& [axis, to] : binds) reads.push_back(to);
  if (otherwise) reads.push_back(*otherwise);
  for (std::size_t k = 1; k < reads.size(); ++k) {
    axes.axes = set_union(axes.axes, program_[reads[k]].axes);
    axes.done = set_union(axes.done, program_[reads[k]].done);
  }
  for (AxisId a : replaced)
    axes.axes = set_union(axes.axes, range_axes(program_, a));  // whether the place exists depends on them
  refuse_unfinished(axes, reads, where);
  std::sort(binds.begin(), binds.end());
  const Type type{program_[of].dtype, program_[of].weak};
  return intern(Replace{of, std::move(binds), otherwise}, type, std::move(axes), where);
}

}  // namespace cosmati::ir
