// Declarations, leaves, hash-consing and the way values look inside open streams.
// A value is the same value when node, dtype and weakness are the same; the first place in the source is kept.
// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <algorithm>
#include <bit>

#include "ir/describe.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::ir {
namespace {

using ops::Op;

// The bytes that make two values equal.
class Key {
 public:
  void put(std::uint64_t x) {
    for (int k = 0; k < 8; ++k) text_.push_back(static_cast<char>(x >> (8 * k)));
  }
  template <class Tag>
  void put(support::Id<Tag> id) {
    put(std::uint64_t{id.index});
  }
  void put(const std::optional<ValueId>& v) { put(v ? *v : ValueId{}); }
  void put(const std::vector<ValueId>& list) {
    put(list.size());
    for (ValueId v : list) put(v);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string key_of(const Node& node, DType dtype, bool weak) {
  Key key;
  key.put(node.index());
  key.put(static_cast<std::uint64_t>(dtype) * 2 + (weak ? 1 : 0));
  std::visit(support::overloaded{
                 [&](const Const& n) {
                   key.put(std::bit_cast<std::uint64_t>(n.f));
                   key.put(static_cast<std::uint64_t>(n.i));
                 },
                 [&](const Coord& n) { key.put(n.axis); },
                 [&](const Extent& n) { key.put(n.axis); },
                 [&](const ScalarRef& n) { key.put(n.scalar); },
                 [&](const Load& n) {
                   key.put(n.tensor);
                   for (const Index& dim : n.index) key.put(dim);
                   key.put(n.otherwise);
                 },
                 [&](const Elementwise& n) {
                   key.put(static_cast<std::uint64_t>(n.op));
                   key.put(n.args);
                 },
                 [&](const Reduce& n) {
                   key.put(n.reducer);
                   key.put(n.args);
                   for (AxisId a : n.axes) key.put(a);
                   key.put(static_cast<std::uint64_t>(n.order) * 16 + static_cast<std::uint64_t>(n.relax));
                 },
                 [&](const Part& n) {
                   key.put(n.of.index());
                   std::visit([&](auto id) { key.put(id); }, n.of);
                   key.put(std::uint64_t{n.slot});
                 },
                 [&](const Replace& n) {
                   key.put(n.of);
                   for (const auto& [axis, value] : n.binds) {
                     key.put(axis);
                     key.put(value);
                   }
                   key.put(n.otherwise);
                 },
                 [&](const Carried& n) {
                   key.put(n.stream);
                   key.put(std::uint64_t{n.slot});
                 },
                 [&](const Arg& n) { key.put(std::uint64_t{n.slot}); },
             },
             node);
  return key.take();
}

bool is_narrow_int(DType t) { return is_int(t) && byte_size(t) < 4; }
bool is_selection(Op op) {
  return op == Op::minimum || op == Op::maximum || op == Op::minimum_num || op == Op::maximum_num || op == Op::clamp ||
         op == Op::where;
}
StreamId inner(StreamId a, StreamId b) { return !a ? b : !b ? a : std::max(a, b); }  // nested streams have larger ids

}  // namespace

Builder::Builder(std::string program_name) { program_.name = std::move(program_name); }

void Builder::restore(const Saved& saved) {
  program_ = saved.program;
  interned_ = saved.interned;
  facts_ = saved.facts;
}

ValueId Builder::intern(Node node, Type type, Axes axes, const Where& where) {
  std::string key = key_of(node, type.dtype, type.weak);
  if (const auto found = interned_.find(key); found != interned_.end()) return found->second;
  const ValueId id{static_cast<std::uint32_t>(program_.values.size())};
  facts_.push_back(facts_of(node, type.dtype));
  program_.values.push_back({std::move(node), type.dtype, type.weak, std::move(axes.axes), std::move(axes.done), where});
  interned_.emplace(std::move(key), id);
  return id;
}

Builder::Facts Builder::facts_of(const Node& node, DType dtype) const {
  Facts out;
  const auto* op = std::get_if<Elementwise>(&node);
  out.pure = op || std::holds_alternative<Const>(node) || std::holds_alternative<Extent>(node) ||
             std::holds_alternative<ScalarRef>(node) || std::holds_alternative<Arg>(node);
  out.arg = std::holds_alternative<Arg>(node);
  const std::vector<ValueId> reads = operands(node);
  for (ValueId v : reads) {
    out.scope = inner(out.scope, facts(v).scope);
    out.carried = inner(out.carried, facts(v).carried);
    out.arg = out.arg || facts(v).arg;
    out.pure = out.pure && facts(v).pure;
  }
  if (const auto* n = std::get_if<Coord>(&node); n && program_[n->axis].piece) out.scope = *program_[n->axis].piece;
  if (const auto* n = std::get_if<Carried>(&node)) out.scope = out.carried = n->stream;
  if (const auto* n = std::get_if<Part>(&node))
    if (const auto* of = std::get_if<StreamId>(&n->of))
      if (const auto& parent = program_[*of].parent) out.scope = out.carried = *parent;

  // Values that a store may keep in a narrower type without changing them.
  const Reduce* reduce = std::get_if<Reduce>(&node);
  if (const auto* n = std::get_if<Part>(&node))
    if (const auto* of = std::get_if<ValueId>(&n->of)) reduce = std::get_if<Reduce>(&program_[*of].node);
  if (is_narrow_int(dtype)) {
    out.exact = dtype;
  } else if (op && op->op == Op::cast) {
    if (is_int(dtype)) out.exact = facts(op->args[0]).exact;
  } else if (reduce) {
    const Reducer& r = program_[reduce->reducer];
    out.index = dtype == DType::i64_ && (r.index || !r.builtin);
    if (r.builtin && r.idempotent && !r.index && is_narrow_int(r.arg_types[0])) out.exact = r.arg_types[0];
  } else if ((op && is_selection(op->op)) || std::holds_alternative<Replace>(node)) {
    std::vector<ValueId> chosen = reads;
    if (const auto* n = std::get_if<Replace>(&node)) {
      chosen = {n->of};
      if (n->otherwise) chosen.push_back(*n->otherwise);
    } else if (op->op == Op::where) {
      chosen.erase(chosen.begin());
    }
    std::optional<DType> exact;
    std::vector<std::int64_t> constants;
    bool index = true, same = true;
    for (ValueId v : chosen) {
      if (const auto* c = std::get_if<Const>(&program_[v].node)) {
        constants.push_back(c->i);
        continue;
      }
      index = index && facts(v).index;
      same = same && facts(v).exact && (!exact || *exact == *facts(v).exact);
      exact = facts(v).exact;
    }
    if (constants.size() < chosen.size()) {
      out.index = index;
      if (same && exact && std::all_of(constants.begin(), constants.end(), [&](auto c) { return ops::wrap_to(*exact, c) == c; }))
        out.exact = exact;
    }
  }
  return out;
}

// ---- streams seen from inside ----
std::optional<StreamId> Builder::open_stream_over(AxisId axis) const {
  for (StreamId s : open_streams_)
    if (program_[s].axis == axis) return s;
  return std::nullopt;
}

ValueId Builder::local(ValueId v, const Where& where, const AxisSet& except) {
  COSMATI_CHECK(v.index < program_.values.size(), "value {} is not of this program", v.index);
  const StreamId scope = facts(v).scope;
  if (scope && std::find(open_streams_.begin(), open_streams_.end(), scope) == open_streams_.end())
    throw Error(ErrorCode::unknown_name, where,
                fmt::format("{} belongs to the body of the stream over {} and is used outside it", describe(program_, v),
                            program_[program_[scope].axis].name),
                "carry it, and use the stream's result");
  Replace to{v, {}, std::nullopt};
  Axes axes{program_[v].axes, program_[v].done};
  for (StreamId s : open_streams_) {
    const AxisId axis = program_[s].axis, piece = program_[s].piece;
    if (!contains(program_[v].axes, axis) || contains(except, axis)) continue;
    const ValueId point = intern(Coord{piece}, {DType::i64_, false}, {{piece}, {}}, where);
    if (const auto* coord = std::get_if<Coord>(&program_[v].node); coord && coord->axis == axis) return point;
    to.binds.emplace_back(axis, point);
    axes.axes = set_union(set_minus(axes.axes, {axis}), {piece});
  }
  if (to.binds.empty()) return v;
  std::sort(to.binds.begin(), to.binds.end());
  return intern(std::move(to), {program_[v].dtype, program_[v].weak}, std::move(axes), program_[v].where);
}

void Builder::refuse_args(ValueId v, const Where& where) const {
  if (facts(v).arg)
    throw Error(
        ErrorCode::not_supported, where,
        fmt::format("{} belongs to a reducer or a merge, where only elementwise operations are known", describe(program_, v)));
}

// ---- declarations ----
void Builder::declared_before_region(const std::string& what, const Where& where) const {
  if (in_region_)
    throw Error(ErrorCode::not_supported, where, fmt::format("{} is declared inside the region", what),
                "declare it before parallel");
}

void Builder::unused_name(const std::string& name, const Where& where) const {
  auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& x) { return x.name == name; });
  };
  if (taken(program_.tensors) || taken(program_.scalars))
    throw Error(ErrorCode::redefined, where, fmt::format("{} is already a parameter", name), "choose another name");
}

AxisId Builder::axis(const std::string& name, const Where& where) {
  program_.axes.push_back({});
  program_.axes.back().name = name;
  program_.axes.back().where = where;
  return AxisId{static_cast<std::uint32_t>(program_.axes.size() - 1)};
}

// An integer known before the launch, as i64.
ValueId Builder::launch_integer(ValueId v, const std::string& what, const Where& where) {
  v = integer_index(v, what, where);
  if (!facts(v).pure)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("{} is {}, which is not known at launch", what, describe_expression(program_, v)),
                "use scalars, extents and literals");
  return v;
}

void Builder::range(AxisId axis, ValueId lo, ValueId hi, const Where& where) {
  const std::string what = "the range of " + program_[axis].name;
  if (program_[axis].lo || program_[axis].piece)
    throw Error(ErrorCode::redefined, where, fmt::format("axis {} already has a range", program_[axis].name));
  for (ValueId* bound : {&lo, &hi}) {
    const bool at_launch = facts(*bound).pure;
    if (!in_region_ || at_launch) {
      *bound = launch_integer(*bound, what, where);
      continue;
    }
    *bound = integer_index(*bound, what, where);
    const Value& value = program_[*bound];
    if (facts(*bound).scope)
      throw Error(ErrorCode::range_on_tile_axis, where,
                  fmt::format("{} depends on the stream over {}", what, program_[program_[facts(*bound).scope].axis].name),
                  "mask with where");
    for (AxisId a : value.axes)
      if (!program_[a].program)
        throw Error(ErrorCode::range_on_tile_axis, where,
                    fmt::format("{} depends on {}, which is not a program axis", what, program_[a].name),
                    fmt::format("add {} to parallel, or mask with where", program_[a].name));
    if (!value.done.empty())
      throw Error(ErrorCode::not_supported, where,
                  fmt::format("{} depends on {}, which exists only when every instance of {} has finished", what,
                              describe_reduction(program_, *bound, value.done[0]), program_[value.done[0]].name));
    if (program_[axis].in_dims)
      throw Error(
          ErrorCode::not_supported, where,
          fmt::format("axis {} is a dimension of an argument, so its range cannot depend on instances", program_[axis].name),
          "declare another axis and index with it");
  }
  program_.axes[axis.index].lo = lo;
  program_.axes[axis.index].hi = hi;
}

TensorId Builder::tensor(const std::string& name, Access access, DType dtype, std::vector<Dim> dims, const Where& where) {
  declared_before_region(name, where);
  unused_name(name, where);
  AxisSet seen;
  for (const Dim& dim : dims) {
    COSMATI_CHECK(!dim.empty(), "{} has a dimension without factors", name);
    for (const Factor& f : dim) {
      if (!f.axis) continue;
      if (contains(seen, f.axis))
        throw Error(ErrorCode::repeated_axis, where,
                    fmt::format("axis {} appears twice in the dimensions of {}", program_[f.axis].name, name),
                    "declare a second axis of the same extent");
      seen = set_union(seen, {f.axis});
      program_.axes[f.axis.index].in_dims = true;
    }
  }
  const TensorId id{static_cast<std::uint32_t>(program_.tensors.size())};
  program_.parameters.emplace_back(true, id.index);
  program_.tensors.push_back({name, access, dtype, std::move(dims), {}, where});
  return id;
}

void Builder::contract(TensorId tensor, Contract contract, const Where& where) {
  declared_before_region("a contract", where);
  const Tensor& t = program_[tensor];
  if (!is_int(t.dtype))
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} is {}, but contracts are promises about integers", t.name, cosmati::name(t.dtype)));
  for (std::optional<ValueId>* bound : {&contract.lo, &contract.hi})
    if (*bound) *bound = launch_integer(**bound, "the contract of " + t.name, where);
  program_.tensors[tensor.index].contract = contract;
}

ValueId Builder::scalar(const std::string& name, DType dtype, std::optional<ValueId> fallback, const Where& where) {
  declared_before_region(name, where);
  unused_name(name, where);
  const ScalarId id{static_cast<std::uint32_t>(program_.scalars.size())};
  program_.parameters.emplace_back(false, id.index);
  program_.scalars.push_back({name, dtype, {}, where});
  const ValueId value = intern(ScalarRef{id}, {dtype, false}, {}, where);
  if (fallback) default_value(value, *fallback, where);
  return value;
}

void Builder::default_value(ValueId scalar, ValueId value, const Where& where) {
  Scalar& parameter = program_.scalars[std::get<ScalarRef>(program_[scalar].node).scalar.index];
  declared_before_region(parameter.name, where);
  if (!facts(value).pure)
    throw Error(ErrorCode::not_supported, where, fmt::format("the default of {} is not known at launch", parameter.name),
                "use extents and literals");
  parameter.fallback = kept_as(parameter.dtype, value, where);
  if (!parameter.fallback)
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("{} is {}, but its default is {}", parameter.name, cosmati::name(parameter.dtype),
                            cosmati::name(program_[value].dtype)),
                fmt::format("cast it: {}(...)", cosmati::name(parameter.dtype)));
}

void Builder::require(ValueId condition, const Where& where) {
  if (!is_bool(program_[condition].dtype))
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("require needs a condition; {} is {}", describe(program_, condition),
                            cosmati::name(program_[condition].dtype)));
  if (!facts(condition).pure)
    throw Error(ErrorCode::not_supported, where, fmt::format("{} is not known at launch", describe(program_, condition)),
                "require speaks of scalars and extents; a contract speaks of elements");
  program_.requires_.emplace_back(condition, where);
}

void Builder::parallel(const std::vector<AxisId>& axes, const Where& where) {
  if (in_region_)
    throw Error(ErrorCode::not_supported, where, "a program has one region, and this is the second", "write two programs");
  for (AxisId a : axes) {
    if (program_[a].program)
      throw Error(ErrorCode::repeated_axis, where, fmt::format("axis {} appears twice in parallel", program_[a].name));
    program_.axes[a.index].program = true;
  }
  program_.program_axes = axes;
  in_region_ = true;
  finish_before_region();
}

// Which axes are program axes is known only now, so what was reduced over them above waits for every instance from here on, and
// so does what was made of it.
void Builder::finish_before_region() {
  for (Value& value : program_.values) {
    const std::vector<ValueId> args = operands(value.node);
    Axes joined;
    for (ValueId v : args) {
      joined.axes = set_union(joined.axes, program_[v].axes);
      joined.done = set_union(joined.done, program_[v].done);
    }
    const auto* reduce = std::get_if<Reduce>(&value.node);
    if (reduce) refuse_unfinished(joined, args, value.where);
    value.done = std::move(joined.done);
    if (reduce)
      for (AxisId a : reduce->axes)
        if (program_[a].program) value.done = set_union(value.done, {a});
    refuse_unfinished({value.axes, value.done}, args, value.where);
  }
}

// ---- leaves ----
ValueId Builder::literal(double value) { return intern(Const{value, 0}, {DType::f64_, true}, {}, {}); }
ValueId Builder::literal(std::int64_t value) { return intern(Const{0, value}, {DType::i64_, true}, {}, {}); }
ValueId Builder::literal(bool value) { return intern(Const{0, value ? 1 : 0}, {DType::bool_, false}, {}, {}); }

ValueId Builder::constant(DType dtype, double value) {
  const ops::Scalar c = ops::cast(DType::f64_, dtype, {value, 0});
  return intern(Const{c.f, c.i}, {dtype, false}, {}, {});
}

ValueId Builder::coordinate(AxisId axis, const Where& where) {
  if (const auto s = open_stream_over(axis)) axis = program_[*s].piece;
  return intern(Coord{axis}, {DType::i64_, false}, {{axis}, {}}, where);
}

ValueId Builder::extent(AxisId axis, const Where& where) {
  const Axis& a = program_[axis];
  if ((a.lo && !facts(*a.lo).pure) || (a.hi && !facts(*a.hi).pure))
    throw Error(ErrorCode::not_supported, where,
                fmt::format("extent({}) is not known at launch: its range depends on instances", a.name),
                "use the expressions of its range");
  return intern(Extent{axis}, {DType::i64_, true}, {}, where);
}

ValueId Builder::arg(std::uint32_t slot, ValueId like) {
  return intern(Arg{slot}, {program_[like].dtype, program_[like].weak}, {}, program_[like].where);
}

void Builder::name(const std::string& name, ValueId value) { program_.names.emplace_back(name, value); }
void Builder::name_arg(const std::string& name, ValueId arg) { program_.arg_names.emplace_back(name, arg); }

}  // namespace cosmati::ir
