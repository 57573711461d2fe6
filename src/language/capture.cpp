// The C++ form: dsl.h recorded through ir::Builder. One thread captures one program at a time; the current capture and the place
// that its mistakes are reported at are thread-local.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cosmati/dsl.h>
#include <algorithm>
#include <atomic>
#include <mutex>

#include "ir/builder.h"
#include "language/depth.h"
#include "language/source.h"
#include "support/check.h"

namespace cosmati {
namespace {

using ir::AxisId;
using ir::ValueId;
using language::Binding;
using language::Parameter;
using language::Signature;
using language::TypeClass;

thread_local const Where* called_from = nullptr;  // the user's call, inside functions of dsl.h and other front ends

Where place_of(const std::source_location& at) {
  return {at.file_name(), static_cast<int>(at.line()), static_cast<int>(at.column())};
}
Where where_of(const std::source_location& at) { return called_from ? *called_from : place_of(at); }

// One run of a program's lambda.
struct Capture {
  Capture(const std::string& name, const Binding& binding, std::uint64_t serial)
      : builder(name), binding(binding), serial(serial) {
    signature.name = name;
  }
  ir::Builder builder;
  const Binding& binding;
  std::uint64_t serial;
  Signature signature;
  std::map<std::uint32_t, std::pair<DType, std::string>> tensor_types;  // tensor -> dtype and variable
  // The body of a stream is run again until its types are stable, and what earlier runs made is dropped: how many values and axes
  // each such run began with.
  struct Rerun {
    std::size_t values, axes;
  };
  std::vector<Rerun> reruns;
};

thread_local Capture* current = nullptr;
std::atomic<std::uint64_t> next_serial = 1;

Capture& capture(const std::source_location& at) {
  if (!current)
    throw Error(ErrorCode::not_supported, where_of(at), "this belongs inside the body of a program",
                "make axes, parameters and values in the body of a program");
  return *current;
}

Tile tile_of(ValueId v) {
  Tile t;
  t.id = v.index;
  t.run = static_cast<std::uint32_t>(current->reruns.size());
  t.capture = current->serial;
  return t;
}

// What is made outside of a program has serial 0 and is of no use inside one.
[[noreturn]] void foreign(const char* what, std::uint64_t serial, const std::source_location& at) {
  throw Error(
      ErrorCode::not_supported, where_of(at),
      fmt::format("this {} {}", what, serial ? "belongs to another capture of a program" : "was made outside of any program"),
      fmt::format("make the {} in the body of the program, which runs once for every binding of its types", what));
}

// Whether an index that was given out in `run` still means what it did.
bool dropped(std::uint32_t id, std::uint32_t run, std::size_t Capture::Rerun::* count) {
  const auto& reruns = current->reruns;
  return std::any_of(reruns.begin() + run, reruns.end(), [&](const Capture::Rerun& rerun) { return id >= rerun.*count; });
}
[[noreturn]] void kept_too_long(const char* what, const std::source_location& at) {
  throw Error(ErrorCode::not_supported, where_of(at),
              fmt::format("this {} was kept from an earlier run of the body of a stream", what),
              "the body runs until the types of what it carries are stable: make its values anew each time");
}

ValueId value_of(const Tile& tile, const std::source_location& at) {
  if (tile.capture != capture(at).serial) foreign("value", tile.capture, at);
  if (dropped(tile.id, tile.run, &Capture::Rerun::values)) kept_too_long("value", at);
  return ValueId{tile.id};
}
ValueId value_of(const Operand& operand) { return value_of(operand.tile, operand.at); }

AxisId axis_of(std::uint32_t id, std::uint64_t serial, const std::source_location& at) {
  if (serial != capture(at).serial) foreign("axis", serial, at);
  return AxisId{id};
}
AxisId axis_of(const Axis& axis, const std::source_location& at) {
  const AxisId id = axis_of(axis.id, axis.capture, at);
  if (dropped(axis.id, axis.run, &Capture::Rerun::axes)) kept_too_long("axis", at);
  return id;
}

ir::TensorId tensor_of(const detail::Parameter& parameter, const std::source_location& at) {
  if (parameter.capture != capture(at).serial) foreign("parameter", parameter.capture, at);
  return ir::TensorId{parameter.tensor};
}

std::vector<AxisId> axes_of(const Axes& pack, const std::source_location& at) {
  if (pack.capture != capture(at).serial) foreign("pack of axes", pack.capture, at);
  std::vector<AxisId> axes;
  for (std::uint32_t id : pack.ids) axes.push_back(AxisId{id});
  return axes;
}

std::vector<AxisId> axes_of(const detail::Over& over) {
  std::vector<AxisId> axes;
  for (std::uint32_t id : over.axes) axes.push_back(AxisId{id});
  return axes;
}

ir::ReduceOptions options_of(const detail::Over& over) {
  return {over.tree == order::left ? ir::Order::left : ir::Order::tree, static_cast<ir::Relax>(over.relaxed)};
}

std::vector<ir::Index> index_of(const std::vector<IndexArg>& args, const std::source_location& at) {
  std::vector<ir::Index> index;
  for (const IndexArg& arg : args) {
    if (arg.pack) {
      for (AxisId axis : axes_of(*arg.pack, arg.at)) index.push_back({current->builder.coordinate(axis, where_of(at))});
      continue;
    }
    ir::Index parts;
    for (const Tile& part : arg.parts) parts.push_back(value_of(part, arg.at));
    index.push_back(std::move(parts));
  }
  return index;
}

std::vector<Tile> tiles_of(const std::vector<ValueId>& values) {
  std::vector<Tile> tiles;
  for (ValueId v : values) tiles.push_back(tile_of(v));
  return tiles;
}
std::vector<ValueId> values_of(const std::vector<Tile>& tiles, const std::source_location& at) {
  std::vector<ValueId> values;
  for (const Tile& t : tiles) values.push_back(value_of(t, at));
  return values;
}

const std::string& axis_name(std::uint32_t axis) { return current->builder.program()[AxisId{axis}].name; }

// axis + constant, as a dimension.
ir::Factor factor_of(const Tile& tile, const std::source_location& at) {
  const ir::Program& p = current->builder.program();
  const ir::Value& v = p[value_of(tile, at)];
  if (const auto* coord = std::get_if<ir::Coord>(&v.node)) return {coord->axis, 0};
  if (const auto* e = std::get_if<ir::Elementwise>(&v.node);
      e && (e->op == ops::Op::add || e->op == ops::Op::sub) && e->args.size() == 2) {
    const auto* coord = std::get_if<ir::Coord>(&p[e->args[0]].node);
    const auto* constant = std::get_if<ir::Const>(&p[e->args[1]].node);
    if (coord && constant) return {coord->axis, e->op == ops::Op::add ? constant->i : -constant->i};
  }
  throw Error(ErrorCode::not_supported, where_of(at), "a dimension is an axis, a constant, axis + constant or {slow, fast}");
}

std::string dim_text(const ir::Dim& dim) {
  std::string text;
  for (const ir::Factor& factor : dim) {
    std::string part = factor.axis.valid() ? axis_name(factor.axis.index) : std::to_string(factor.offset);
    if (factor.axis.valid() && factor.offset)
      part += fmt::format(" {} {}", factor.offset > 0 ? "+" : "-", std::abs(factor.offset));
    text += (text.empty() ? "" : ", ") + part;
  }
  return dim.size() == 1 ? text : "(" + text + ")";
}

class CaptureSource final : public language::Source {
 public:
  CaptureSource(std::string name, std::function<void()> body, Where where)
      : name_(std::move(name)), body_(std::move(body)), where_(std::move(where)) {}

  // Representative types show the declarations; what they are called does not depend on the types.
  const Signature& signature() const override {
    {
      std::lock_guard lock(mutex_);
      if (signature_) return *signature_;
    }
    Signature found;
    run({}, &found);
    found.where = where_;
    std::lock_guard lock(mutex_);
    if (!signature_) signature_ = std::move(found);
    return *signature_;
  }

  ir::Program instantiate(const Binding& binding) const override { return run(binding, nullptr); }

 private:
  ir::Program run(const Binding& binding, Signature* signature) const {
    Capture c(name_, binding, next_serial++);
    struct Restore {
      Capture* before = current;
      const Where* call_before = called_from;
      ~Restore() { current = before, called_from = call_before; }
    } restore;
    current = &c;
    called_from = nullptr;
    body_();
    std::vector<std::uint32_t> depths;
    language::limit_depth(c.builder.program(), depths, nullptr);
    ir::Program p = c.builder.finish(where_);
    if (signature) *signature = std::move(c.signature);
    return p;
  }

  std::string name_;
  std::function<void()> body_;
  Where where_;
  mutable std::mutex mutex_;
  mutable std::optional<Signature> signature_;
};

}  // namespace

Program program(const char* name, std::function<void()> body, std::source_location at) {
  return Program(std::make_shared<CaptureSource>(name, std::move(body), where_of(at)));
}

// ---- operands ------------------------------------------------------------------------------------------------------
Operand::Operand(const Axis& axis, Location at) : at(at) {
  if (current || axis.capture) tile = tile_of(capture(at).builder.coordinate(axis_of(axis, at), where_of(at)));
}
Operand::Operand(const Input& input, Location at) : at(at) {
  tile = tile_of(capture(at).builder.bare(tensor_of(input.parameter, at), where_of(at)));
}
Operand::Operand(const InOut& inout, Location at) : at(at) {
  tile = tile_of(capture(at).builder.bare(tensor_of(inout.parameter, at), where_of(at)));
}
Operand::Operand(const Access& access, Location at) : tile(access.value()), at(at) {}
Operand::Operand(const InOutAccess& access, Location at) : tile(access.value()), at(at) {}
Operand::Operand(const Replaced& replaced, Location at) : tile(replaced.value()), at(at) {}

namespace detail {

Tile literal(bool value) { return current ? tile_of(current->builder.literal(value)) : Tile(); }
Tile literal(double value) { return current ? tile_of(current->builder.literal(value)) : Tile(); }
Tile literal(std::int64_t value) { return current ? tile_of(current->builder.literal(value)) : Tile(); }
Tile literal(std::uint64_t value, std::source_location at) {
  if (current && value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Error(ErrorCode::type_mismatch, where_of(at), fmt::format("{} is larger than every i64", value),
                "integer literals are i64");
  return literal(static_cast<std::int64_t>(value));
}

CalledFrom::CalledFrom(const std::source_location& at) : at_(place_of(at)), before_(called_from) {
  if (!called_from) called_from = &at_;
}
CalledFrom::CalledFrom(Where at) : at_(std::move(at)), before_(called_from) { called_from = &at_; }
CalledFrom::~CalledFrom() { called_from = before_; }

}  // namespace detail

// ---- axes ----------------------------------------------------------------------------------------------------------
Axis::Axis(const char* name, Location at) {
  if (!current) return;
  run = static_cast<std::uint32_t>(current->reruns.size());
  capture = current->serial;
  id = current->builder.axis(name, where_of(at)).index;
}
Axis::Axis(const char* name, Operand hi, Location at) : Axis(name, Operand(0, at), hi, at) {}
Axis::Axis(const char* name, Operand lo, Operand hi, Location at) : Axis(name, at) {
  if (current) current->builder.range(AxisId{id}, value_of(lo), value_of(hi), where_of(at));
}
Tile Axis::extent(Location at) const {
  if (!current && !capture) return {};
  return tile_of(cosmati::capture(at).builder.extent(axis_of(*this, at), where_of(at)));
}

Axes::Axes(const char* name, std::source_location at) : name(name) {
  if (!current) return;
  capture = current->serial;
  auto it = current->binding.packs.find(name);
  int count = it == current->binding.packs.end() ? 1 : it->second;
  for (int i = 0; i < count; ++i) ids.push_back(current->builder.axis(fmt::format("{}_{}", name, i), where_of(at)).index);
}

Dim::Part::Part(const Axis& axis) : axis(axis.id), capture(axis.capture) {}
Dim::Dim(const Axis& axis) : parts{Part(axis)} {}
Dim::Dim(const Axes& pack) : pack(&pack) {}
Dim::Dim(Tile axis_plus_constant, std::source_location at) {
  ir::Factor factor = factor_of(axis_plus_constant, at);
  Part part(factor.offset);
  part.axis = factor.axis.index;
  part.capture = current->serial;
  parts.push_back(part);
}

// ---- declarations --------------------------------------------------------------------------------------------------
namespace detail {

cosmati::detail::Parameter declare(int access, const char* name, TypeChoice type, const std::vector<Dim>& dims,
                                   std::source_location at) {
  Capture& c = capture(at);
  language::Parameter parameter;
  parameter.name = name;
  parameter.where = where_of(at);
  parameter.access = static_cast<ir::Access>(access);
  DType dtype = type.fixed;
  if (type.klass == TypeChoice::Class::fixed) {
    parameter.dtype = dtype;
  } else if (type.klass == TypeChoice::Class::like) {
    std::tie(dtype, parameter.variable) = c.tensor_types.at(tensor_of(type.like, at).index);
    if (parameter.variable.empty()) parameter.dtype = dtype;
  } else {
    std::size_t n = c.signature.type_variables.size();
    parameter.variable = n < 4 ? std::string(1, "TUVW"[n]) : fmt::format("T{}", n + 1);
    TypeClass klass = type.klass == TypeChoice::Class::any_float ? TypeClass::any_float
                      : type.klass == TypeChoice::Class::any_int ? TypeClass::any_int
                                                                 : TypeClass::any;
    c.signature.type_variables.emplace_back(parameter.variable, klass);
    auto it = c.binding.types.find(parameter.variable);
    dtype = it != c.binding.types.end() ? it->second : klass == TypeClass::any_int ? DType::i32_ : DType::f32_;
  }
  std::vector<ir::Dim> built;
  for (const Dim& dim : dims) {
    if (dim.pack) {
      parameter.pack = dim.pack->name;
      parameter.dim_names.push_back(dim.pack->name + "...");
      for (AxisId axis : axes_of(*dim.pack, at)) built.push_back({{axis, 0}});
      continue;
    }
    ir::Dim factors;
    for (const Dim::Part& part : dim.parts)
      factors.push_back({part.axis ? axis_of(*part.axis, part.capture, at) : AxisId{}, part.constant});
    parameter.dim_names.push_back(dim_text(factors));
    ++parameter.rank;
    built.push_back(std::move(factors));
  }
  ir::TensorId id = c.builder.tensor(name, parameter.access, dtype, std::move(built), where_of(at));
  c.tensor_types[id.index] = {dtype, parameter.variable};
  c.signature.parameters.push_back(std::move(parameter));
  return {id.index, c.serial};
}

void promise(const Parameter& p, const Operand* lo, const Operand* hi, bool sorted, bool distinct, std::source_location at) {
  Capture& c = capture(at);
  ir::TensorId tensor = tensor_of(p, at);
  ir::Contract contract = c.builder.program()[tensor].contract;
  if (lo) contract.lo = value_of(*lo);
  if (hi) contract.hi = value_of(*hi);
  contract.sorted = contract.sorted || sorted;
  contract.distinct = contract.distinct || distinct;
  c.builder.contract(tensor, contract, where_of(at));
}

Tile load(const Parameter& p, const std::vector<IndexArg>& index, const Operand* otherwise, std::source_location at) {
  Capture& c = capture(at);
  std::optional<ValueId> fallback;
  if (otherwise) fallback = value_of(*otherwise);
  return tile_of(c.builder.load(tensor_of(p, at), index_of(index, at), fallback, where_of(at)));
}

void store(const Parameter& p, const std::vector<IndexArg>& index, const Operand& value) {
  const std::source_location& at = index.empty() ? value.at : index[0].at;
  Capture& c = capture(at);
  ValueId v = value_of(value);
  c.builder.store(tensor_of(p, at), index_of(index, at), v, where_of(at));
}

// Of empty values outside of any program: an empty value.
Tile apply(const char* op, std::initializer_list<const Operand*> args, std::source_location at) {
  if (!current && std::none_of(args.begin(), args.end(), [](const Operand* arg) { return arg->tile.capture; })) return {};
  Capture& c = capture(at);
  std::vector<ValueId> values;
  for (const Operand* arg : args) values.push_back(value_of(*arg));
  auto row = ops::op_from_name(op);
  COSMATI_CHECK(row, "no operation {}", op);
  return tile_of(c.builder.elementwise(*row, std::move(values), where_of(at)));
}
Tile cast(DType to, const Operand& value) {
  return tile_of(capture(value.at).builder.cast(to, value_of(value), where_of(value.at)));
}
Tile bits(DType to, const Operand& value) {
  return tile_of(capture(value.at).builder.bits(to, value_of(value), where_of(value.at)));
}
DType dtype(const Operand& value) { return capture(value.at).builder[value_of(value)].dtype; }

void add_axis(Over& over, const Axis& axis) { over.axes.push_back(axis_of(axis, over.at).index); }
void add_axis(Over& over, const Axes& pack) {
  for (AxisId axis : axes_of(pack, over.at)) over.axes.push_back(axis.index);
}

// A lambda's parameters; the language knows no names for them.
static std::vector<Tile> named_tiles(Capture& c, const char* what, const std::vector<ValueId>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) c.builder.name_arg(fmt::format("{} {}", what, i), args[i]);
  return tiles_of(args);
}

std::vector<Tile> reduce(const char* reducer, std::initializer_list<const Operand*> operands, const Over& over) {
  Capture& c = capture(over.at);
  const Where where = where_of(over.at);
  std::vector<ValueId> values;
  for (const Operand* operand : operands) values.push_back(value_of(*operand));
  if (std::string_view(reducer) == "contract")
    return {tile_of(c.builder.contract(values[0], values[1], axes_of(over), options_of(over), where))};
  auto id = c.builder.builtin(reducer, values, where);
  COSMATI_CHECK(id, "no reducer {}", reducer);
  return tiles_of(c.builder.reduce(*id, std::move(values), axes_of(over), options_of(over), where));
}

std::vector<Tile> reduce(const ReducerParts& parts, const std::vector<Tile>& operands, const Over& over) {
  const std::source_location& at = over.at;
  Capture& c = capture(at);
  std::vector<ValueId> args = values_of(operands, at);
  ir::Builder::ReducerBody body;
  for (std::size_t i = 0; i < args.size(); ++i) body.arg_names.push_back(fmt::format("x{}", i));
  for (std::size_t i = 0; i < parts.states; ++i) body.state_names.push_back(fmt::format("s{}", i));
  body.identity = [&] { return values_of(parts.identity(), at); };
  body.lift = [&](const auto& x) { return values_of(parts.lift(named_tiles(c, "argument", x)), at); };
  body.merge = [&](const auto& a, const auto& b) {
    return values_of(parts.merge(named_tiles(c, "a's state", a), named_tiles(c, "b's state", b)), at);
  };
  body.finish = [&](const auto& s) { return values_of(parts.finish(named_tiles(c, "state", s)), at); };
  ir::ReducerId id = c.builder.reducer(parts.name, body, args, where_of(at));
  return tiles_of(c.builder.reduce(id, std::move(args), axes_of(over), options_of(over), where_of(at)));
}

void begin_parallel(const Over& axes) { capture(axes.at).builder.parallel(axes_of(axes), where_of(axes.at)); }

void add_binds(Replaced::Binds& binds, const Axis& axis, const Operand& to) {
  binds.emplace_back(axis_of(axis, to.at).index, to.tile);
}

std::vector<Tile> stream(const Axis& axis, bool tile, const std::vector<Tile>& init,
                         const std::function<BodyResult(const std::vector<Tile>&)>& body, std::source_location at) {
  Capture& c = capture(at);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < init.size(); ++i) names.push_back(fmt::format("carried_{}", i));
  bool again = false;
  auto run = [&](const std::vector<ValueId>& carried) {
    const ir::Program& p = c.builder.program();
    if (again) c.reruns.push_back({p.values.size(), p.axes.size()});
    again = true;
    BodyResult result = body(tiles_of(carried));
    ir::StreamResult out{values_of(result.next, at), {}};
    if (result.merge) {
      std::vector<ValueId> a, b;
      auto n = static_cast<std::uint32_t>(carried.size());
      for (std::uint32_t i = 0; i < n; ++i) a.push_back(c.builder.arg(i, out.next[i]));
      for (std::uint32_t i = 0; i < n; ++i) b.push_back(c.builder.arg(n + i, out.next[i]));
      const std::vector<Tile> merged = result.merge(named_tiles(c, "a's state", a), named_tiles(c, "b's state", b));
      out.merge = ir::Lambda{values_of(merged, at), {}};
    }
    return out;
  };
  return tiles_of(c.builder.stream(axis_of(axis, at), tile, names, values_of(init, at), run, where_of(at)));
}

}  // namespace detail

ScalarParameter::ScalarParameter(const char* name, DType dtype, std::source_location at) : name_(name) {
  Capture& c = cosmati::capture(at);
  language::Parameter parameter;
  parameter.name = name;
  parameter.where = where_of(at);
  parameter.is_tensor = false;
  parameter.dtype = dtype;
  c.signature.parameters.push_back(parameter);
  static_cast<Tile&>(*this) = tile_of(c.builder.scalar(name, dtype, {}, where_of(at)));
}
ScalarParameter& ScalarParameter::defaults(Operand value) {
  Capture& c = cosmati::capture(value.at);
  c.builder.default_value(ValueId{id}, value_of(value), where_of(value.at));
  for (language::Parameter& parameter : c.signature.parameters)
    if (parameter.name == name_) parameter.has_default = true;
  return *this;
}

void require(Operand condition) { capture(condition.at).builder.require(value_of(condition), where_of(condition.at)); }
Tile named(const char* name, Operand value) {
  capture(value.at).builder.name(name, value_of(value));
  return value.tile;
}

Tile Replaced::otherwise(Operand value) const {
  Capture& c = capture(value.at);
  std::vector<std::pair<AxisId, ValueId>> binds;
  for (const auto& [axis, tile] : binds_) binds.emplace_back(AxisId{axis}, value_of(tile, value.at));
  return tile_of(c.builder.replace(value_of(of_, value.at), std::move(binds), value_of(value), where_of(value.at)));
}
Tile Replaced::value() const {
  Capture& c = capture(at_);
  std::vector<std::pair<AxisId, ValueId>> binds;
  for (const auto& [axis, tile] : binds_) binds.emplace_back(AxisId{axis}, value_of(tile, at_));
  return tile_of(c.builder.replace(value_of(of_, at_), std::move(binds), {}, where_of(at_)));
}

}  // namespace cosmati
