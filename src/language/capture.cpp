// The C++ form: dsl.h recorded through ir::Builder. One thread captures one program at a time; the current capture is the only thread-local.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cosmati/dsl.h>
#include <mutex>

#include "ir/builder.h"
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

Where where_of(const std::source_location& at) { return {at.file_name(), static_cast<int>(at.line()), static_cast<int>(at.column())}; }

// One run of a program's lambda.
struct Capture {
  Capture(const std::string& name, const Binding& binding, std::uint64_t serial) : builder(name), binding(binding), serial(serial) {
    signature.name = name;
  }
  ir::Builder builder;
  const Binding& binding;
  std::uint64_t serial;
  Signature signature;
  std::map<std::uint32_t, std::pair<DType, std::string>> tensor_types;  // tensor -> dtype and variable
  std::map<std::string, std::vector<std::uint32_t>> packs;
};

thread_local Capture* current = nullptr;
std::uint64_t next_serial = 1;
std::mutex serial_mutex;

Capture& capture(const std::source_location& at) {
  if (!current)
    throw Error(ErrorCode::not_supported, where_of(at), "this belongs inside the body of a program",
                "make axes, parameters and values in the lambda given to program(...)");
  return *current;
}

Tile tile_of(ValueId v) {
  Tile t;
  t.id = v.index;
  t.capture = current->serial;
  return t;
}

ValueId value_of(const Tile& tile, const std::source_location& at) {
  if (tile.capture != capture(at).serial)
    throw Error(ErrorCode::not_supported, where_of(at), "this value belongs to another program", "values cannot leave the program that made them");
  return ValueId{tile.id};
}
ValueId value_of(const Operand& operand) { return value_of(operand.tile, operand.at); }

AxisId axis_of(std::uint32_t id, std::uint64_t serial, const std::source_location& at) {
  if (serial != capture(at).serial)
    throw Error(ErrorCode::not_supported, where_of(at), "this axis belongs to another program", "make axes inside the lambda given to program(...)");
  return AxisId{id};
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
      for (std::uint32_t axis : arg.pack->ids) index.push_back({current->builder.coordinate(axis_of(axis, arg.pack->capture, arg.at), where_of(at))});
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
  if (const auto* e = std::get_if<ir::Elementwise>(&v.node); e && (e->op == ops::Op::add || e->op == ops::Op::sub) && e->args.size() == 2) {
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
    if (factor.axis.valid() && factor.offset) part += fmt::format(" {} {}", factor.offset > 0 ? "+" : "-", std::abs(factor.offset));
    text += (text.empty() ? "" : ", ") + part;
  }
  return dim.size() == 1 ? text : "(" + text + ")";
}

class CaptureSource final : public language::Source {
 public:
  CaptureSource(std::string name, std::function<void()> body, Where where) : name_(std::move(name)), body_(std::move(body)), where_(std::move(where)) {}

  const Signature& signature() const override {
    std::lock_guard lock(mutex_);
    if (!signature_) {
      // Representative types show the declarations; what they are called does not depend on the types.
      Signature found;
      run({}, &found);
      found.where = where_;
      signature_ = std::move(found);
    }
    return *signature_;
  }

  ir::Program instantiate(const Binding& binding) const override { return run(binding, nullptr); }

 private:
  ir::Program run(const Binding& binding, Signature* signature) const {
    std::uint64_t serial;
    {
      std::lock_guard lock(serial_mutex);
      serial = next_serial++;
    }
    Capture c(name_, binding, serial);
    struct Restore {
      Capture* before = current;
      ~Restore() { current = before; }
    } restore;
    current = &c;
    body_();
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
Operand::Operand(const Axis& axis, Location at) : tile(tile_of(capture(at).builder.coordinate(axis_of(axis.id, axis.capture, at), where_of(at)))), at(at) {}
Operand::Operand(const Input& input, Location at) : at(at) {
  tile = tile_of(capture(at).builder.bare(ir::TensorId{input.parameter.tensor}, where_of(at)));
}
Operand::Operand(const InOut& inout, Location at) : at(at) {
  tile = tile_of(capture(at).builder.bare(ir::TensorId{inout.parameter.tensor}, where_of(at)));
}
Operand::Operand(const Access& access, Location at) : tile(access.value(at)), at(at) {}
Operand::Operand(const InOutAccess& access, Location at) : tile(access.value(at)), at(at) {}
Operand::Operand(const Replaced& replaced, Location at) : tile(replaced.value()), at(at) {}
Tile Operand::of(bool literal) { return tile_of(capture(Location::current()).builder.literal(literal)); }
Tile Operand::of(double literal) { return tile_of(capture(Location::current()).builder.literal(literal)); }
Tile Operand::of(std::int64_t literal) { return tile_of(capture(Location::current()).builder.literal(literal)); }

// ---- axes ----------------------------------------------------------------------------------------------------------
// An axis made outside of a capture stays empty: only its use is an error, so that one at namespace scope is harmless.
Axis::Axis(const char* name, Location at) {
  if (!current) return;
  capture = current->serial;
  id = current->builder.axis(name, where_of(at)).index;
}
Axis::Axis(const char* name, Operand hi, Location at) : Axis(name, Operand(0, at), hi, at) {}
Axis::Axis(const char* name, Operand lo, Operand hi, Location at) : Axis(name, at) {
  current->builder.range(AxisId{id}, value_of(lo), value_of(hi), where_of(at));
}
Tile Axis::extent(Location at) const { return tile_of(cosmati::capture(at).builder.extent(axis_of(id, capture, at), where_of(at))); }

Axes::Axes(const char* name) : name(name) {
  if (!current) return;
  capture = current->serial;
  auto it = current->binding.packs.find(name);
  int count = it == current->binding.packs.end() ? 1 : it->second;
  for (int i = 0; i < count; ++i) ids.push_back(current->builder.axis(fmt::format("{}_{}", name, i), {}).index);
  current->packs[name] = ids;
}

Dim::Part::Part(const Axis& axis) : axis(axis.id) {}
Dim::Dim(const Axis& axis) : parts{Part(axis)} {}
Dim::Dim(const Axes& pack) : pack(&pack) {}
Dim::Dim(int constant) : parts{Part(constant)} {}
Dim::Dim(Tile axis_plus_constant) {
  ir::Factor factor = factor_of(axis_plus_constant, std::source_location::current());
  Part part(static_cast<int>(factor.offset));
  part.axis = factor.axis.index;
  parts.push_back(part);
}
IndexArg dim(Operand slow, Operand fast, std::source_location at) { return IndexArg(std::vector<Tile>{slow.tile, fast.tile}, at); }
IndexArg dim(Operand slow, Operand middle, Operand fast, std::source_location at) {
  return IndexArg(std::vector<Tile>{slow.tile, middle.tile, fast.tile}, at);
}

// ---- declarations --------------------------------------------------------------------------------------------------
namespace detail {

cosmati::detail::Parameter declare(int access, const char* name, TypeChoice type, Dims dims, std::source_location at) {
  Capture& c = capture(at);
  language::Parameter parameter;
  parameter.name = name;
  parameter.access = static_cast<ir::Access>(access);
  DType dtype = type.fixed;
  if (type.klass == TypeChoice::Class::fixed) {
    parameter.dtype = dtype;
  } else if (type.klass == TypeChoice::Class::like) {
    std::tie(dtype, parameter.variable) = c.tensor_types.at(type.like);
    if (parameter.variable.empty()) parameter.dtype = dtype;
  } else {
    std::size_t n = c.signature.type_variables.size();
    parameter.variable = n == 0 ? "T" : fmt::format("T{}", n + 1);
    TypeClass klass = type.klass == TypeChoice::Class::any_float ? TypeClass::any_float : type.klass == TypeChoice::Class::any_int ? TypeClass::any_int : TypeClass::any;
    c.signature.type_variables.emplace_back(parameter.variable, klass);
    auto it = c.binding.types.find(parameter.variable);
    dtype = it != c.binding.types.end() ? it->second : klass == TypeClass::any_int ? DType::i32_ : DType::f32_;
  }
  std::vector<ir::Dim> built;
  for (const Dim& dim : dims) {
    if (dim.pack) {
      parameter.pack = dim.pack->name;
      parameter.dim_names.push_back(dim.pack->name + "...");
      for (std::uint32_t axis : dim.pack->ids) built.push_back({{axis_of(axis, dim.pack->capture, at), 0}});
      continue;
    }
    ir::Dim factors;
    for (const Dim::Part& part : dim.parts) factors.push_back({AxisId{part.axis}, part.constant});
    parameter.dim_names.push_back(dim_text(factors));
    ++parameter.rank;
    built.push_back(std::move(factors));
  }
  ir::TensorId id = c.builder.tensor(name, parameter.access, dtype, std::move(built), where_of(at));
  c.tensor_types[id.index] = {dtype, parameter.variable};
  c.signature.parameters.push_back(std::move(parameter));
  return {id.index, c.serial};
}

void promise(const Parameter& p, const Operand* lo, const Operand* hi, bool sorted, bool distinct) {
  Capture& c = capture(lo ? lo->at : std::source_location::current());
  ir::Contract contract = c.builder.program()[ir::TensorId{p.tensor}].contract;
  if (lo) contract.lo = value_of(*lo);
  if (hi) contract.hi = value_of(*hi);
  contract.sorted = contract.sorted || sorted;
  contract.distinct = contract.distinct || distinct;
  c.builder.contract(ir::TensorId{p.tensor}, contract, lo ? where_of(lo->at) : Where{});
}

Tile load(const Parameter& p, const std::vector<IndexArg>& index, const Operand* otherwise, std::source_location at) {
  Capture& c = capture(at);
  std::optional<ValueId> fallback;
  if (otherwise) fallback = value_of(*otherwise);
  const std::source_location& place = index.empty() ? at : index[0].at;
  return tile_of(c.builder.load(ir::TensorId{p.tensor}, index_of(index, place), fallback, where_of(place)));
}

void store(const Parameter& p, const std::vector<IndexArg>& index, const Operand& value) {
  Capture& c = capture(value.at);
  ValueId v = value_of(value);
  const std::source_location& place = index.empty() ? value.at : index[0].at;
  c.builder.store(ir::TensorId{p.tensor}, index_of(index, place), v, where_of(place));
}

Tile apply(const char* op, std::initializer_list<const Operand*> args, std::source_location at) {
  Capture& c = capture(at);
  std::vector<ValueId> values;
  for (const Operand* arg : args) values.push_back(value_of(*arg));
  auto row = ops::op_from_name(op);
  COSMATI_CHECK(row, "no operation {}", op);
  return tile_of(c.builder.elementwise(*row, std::move(values), where_of(at)));
}
Tile cast(DType to, const Operand& value) { return tile_of(capture(value.at).builder.cast(to, value_of(value), where_of(value.at))); }
Tile bits(DType to, const Operand& value) { return tile_of(capture(value.at).builder.bits(to, value_of(value), where_of(value.at))); }

void add_axis(Over& over, const Axis& axis) {
  axis_of(axis.id, axis.capture, std::source_location::current());
  over.axes.push_back(axis.id);
}
void add_axis(Over& over, const Axes& axes) { over.axes.insert(over.axes.end(), axes.ids.begin(), axes.ids.end()); }

std::vector<Tile> reduce(const char* reducer, std::initializer_list<const Operand*> operands, const Over& over, std::source_location at) {
  Capture& c = capture(at);
  std::vector<ValueId> values;
  for (const Operand* operand : operands) values.push_back(value_of(*operand));
  if (std::string_view(reducer) == "contract")
    return {tile_of(c.builder.contract(values[0], values[1], axes_of(over), options_of(over), where_of(at)))};
  auto id = c.builder.builtin(reducer, values, where_of(at));
  COSMATI_CHECK(id, "no reducer {}", reducer);
  return tiles_of(c.builder.reduce(*id, std::move(values), axes_of(over), options_of(over), where_of(at)));
}

std::vector<Tile> reduce(const ReducerParts& parts, const std::vector<Tile>& operands, const Over& over, std::source_location at) {
  Capture& c = capture(at);
  std::vector<ValueId> args = values_of(operands, at);
  ir::Builder::ReducerBody body;
  for (std::size_t i = 0; i < args.size(); ++i) body.arg_names.push_back(fmt::format("x{}", i));
  for (std::size_t i = 0; i < parts.states; ++i) body.state_names.push_back(fmt::format("s{}", i));
  body.identity = [&] { return values_of(parts.identity(), at); };
  body.lift = [&](const auto& x) { return values_of(parts.lift(tiles_of(x)), at); };
  body.merge = [&](const auto& a, const auto& b) { return values_of(parts.merge(tiles_of(a), tiles_of(b)), at); };
  body.finish = [&](const auto& s) { return values_of(parts.finish(tiles_of(s)), at); };
  ir::ReducerId id = c.builder.reducer(parts.name, body, args, where_of(at));
  return tiles_of(c.builder.reduce(id, std::move(args), axes_of(over), options_of(over), where_of(at)));
}

void begin_parallel(const Over& axes, std::source_location at) { capture(at).builder.parallel(axes_of(axes), where_of(at)); }

std::vector<Tile> stream(const Axis& axis, bool tile, const std::vector<Tile>& init, const std::function<BodyResult(const std::vector<Tile>&)>& body,
                         std::source_location at) {
  Capture& c = capture(at);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < init.size(); ++i) names.push_back(fmt::format("carried_{}", i));
  auto run = [&](const std::vector<ValueId>& carried) {
    BodyResult result = body(tiles_of(carried));
    ir::StreamResult out{values_of(result.next, at), {}};
    if (result.merge) {
      std::vector<Tile> a, b;
      auto n = static_cast<std::uint32_t>(carried.size());
      for (std::uint32_t i = 0; i < n; ++i) a.push_back(tile_of(c.builder.arg(i, out.next[i])));
      for (std::uint32_t i = 0; i < n; ++i) b.push_back(tile_of(c.builder.arg(n + i, out.next[i])));
      out.merge = ir::Lambda{values_of(result.merge(a, b), at), {}};
    }
    return out;
  };
  return tiles_of(c.builder.stream(axis_of(axis.id, axis.capture, at), tile, names, values_of(init, at), run, where_of(at)));
}

}  // namespace detail

ScalarParameter::ScalarParameter(const char* name, DType dtype, std::source_location at) : name_(name) {
  Capture& c = cosmati::capture(at);
  language::Parameter parameter;
  parameter.name = name;
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
