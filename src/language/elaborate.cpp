// Declarations and statements, in the order that the builder wants them: axes, parameters, contracts, head, region.
// SPDX-License-Identifier: Apache-2.0
#include "language/elaborate.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "language/names.h"
#include "support/check.h"

namespace cosmati::language {
namespace {

bool has_class(DType type, TypeClass type_class) {
  if (type_class == TypeClass::any_float) return is_float(type);
  return type_class == TypeClass::any || is_int(type);
}
const char* describe(TypeClass type_class) {
  return type_class == TypeClass::any_float ? "a float type" : type_class == TypeClass::any_int ? "an integer type" : "a type";
}

}  // namespace

Elaborator::Elaborator(const File& file, const ProgramDecl& decl, const Binding& binding)
    : file_(file), decl_(decl), binding_(binding), builder_(std::string(decl.name.text)), scope_(file) {
  scope_.sees_types = true;
}

ir::Program Elaborator::run() {
  for (const TypeVariable& t : decl_.types) {
    const auto at = binding_.types.find(std::string(t.name.text));
    if (at == binding_.types.end())
      throw Error(ErrorCode::bad_argument, file_.where(t.name.pos),
                  fmt::format("nothing binds the type {} of program {}", t.name.text, decl_.name.text));
    if (!has_class(at->second, t.type_class))
      throw Error(ErrorCode::bad_argument, file_.where(t.name.pos),
                  fmt::format("{} of program {} must be {}, not {}", t.name.text, decl_.name.text, describe(t.type_class),
                              name(at->second)));
  }
  declare_axes();
  declare_parameters();
  declare_contracts();
  for (const HeadStmt& s : decl_.head) std::visit([&](const auto& stmt) { statement(stmt, scope_); }, s);
  std::vector<ir::AxisId> axes;
  for (const AxisRef& ref : decl_.parallel) {
    const Scope::Entry* entry = scope_.find(ref.name.text);
    const Pack* pack = entry ? std::get_if<Pack>(&entry->entity) : nullptr;
    if (pack && ref.pack)
      axes.insert(axes.end(), pack->axes.begin(), pack->axes.end());
    else if (pack)
      throw Error(ErrorCode::syntax, file_.where(ref.name.pos), fmt::format("{} stands for any number of axes", ref.name.text),
                  fmt::format("write parallel {}...", ref.name.text));
    else if (ref.pack && entry)
      throw Error(ErrorCode::unknown_name, file_.where(ref.name.pos), fmt::format("{} is not an axis pack", ref.name.text));
    else
      axes.push_back(axis_named(ref.name, scope_));
  }
  builder_.parallel(axes, file_.where(decl_.region_pos));
  in_region_ = true;
  for (const RegionStmt& s : decl_.region) std::visit([&](const auto& stmt) { statement(stmt, scope_); }, s);
  return builder_.finish(file_.where(decl_.name.pos));
}

DType Elaborator::type_of(const Name& type) const {
  const std::optional<DType> result = cast_type(type.text, scope_);
  COSMATI_CHECK(result, "the signature knows every type, but not {}", type.text);
  return *result;
}

// Every name in a dim is an axis. The axes of the head are known to contracts and defaults too, so they are made here as well.
void Elaborator::declare_axes() {
  for (const ParamDecl& param : decl_.params)
    for (const DimDecl& dim : param.dims)
      for (const FactorDecl& factor : dim.factors) {
        if (!factor.axis) continue;
        const std::string name(factor.axis->text);
        const Where where = file_.where(factor.axis->pos);
        if (const Scope::Entry* entry = scope_.find(name)) {
          if (std::holds_alternative<Pack>(entry->entity) != dim.pack)
            throw Error(ErrorCode::redefined, where, fmt::format("{0} is one axis in one dimension and {0}... in another", name));
          continue;
        }
        if (!dim.pack) {
          scope_.declare(*factor.axis, builder_.axis(name, where));
          continue;
        }
        Pack pack;
        const auto at = binding_.packs.find(name);
        if (at == binding_.packs.end())
          throw Error(ErrorCode::bad_argument, where, fmt::format("nothing binds the number of dimensions of {}...", name));
        for (int i = 0; i < at->second; ++i) pack.axes.push_back(builder_.axis(fmt::format("{}_{}", name, i), where));
        scope_.declare(*factor.axis, std::move(pack));
      }
  for (const HeadStmt& s : decl_.head) {
    const AxisDecl* axis = std::get_if<AxisDecl>(&s);
    if (!axis) continue;
    if (!declared_axes_.emplace(axis->name.text, true).second)
      throw Error(ErrorCode::redefined, file_.where(axis->name.pos), fmt::format("axis {} is declared twice", axis->name.text));
    if (const Scope::Entry* entry = scope_.find(axis->name.text); entry && std::holds_alternative<ir::AxisId>(entry->entity))
      continue;
    scope_.declare(axis->name, builder_.axis(std::string(axis->name.text), file_.where(axis->name.pos)));
  }
}

void Elaborator::declare_parameters() {
  for (const ParamDecl& param : decl_.params) {
    const Where where = file_.where(param.name.pos);
    const std::string name(param.name.text);
    scope_.check_free(param.name);
    if (!param.is_tensor) {
      std::optional<ir::ValueId> fallback;
      if (param.fallback) fallback = eval(*param.fallback, scope_);
      scope_.declare(param.name, builder_.scalar(name, type_of(param.type), fallback, where));
      continue;
    }
    std::vector<ir::Dim> dims;
    for (const DimDecl& dim : param.dims) {
      const std::size_t count = dim.pack ? std::get<Pack>(scope_.find(dim.factors[0].axis->text)->entity).axes.size() : 1;
      for (std::size_t i = 0; i < count; ++i) dims.push_back(dim_of(dim, i));
    }
    scope_.declare(param.name, builder_.tensor(name, param.access, type_of(param.type), std::move(dims), where));
  }
}

ir::Dim Elaborator::dim_of(const DimDecl& dim, std::size_t pack_index) {
  ir::Dim result;
  for (const FactorDecl& factor : dim.factors) {
    ir::Factor f{{}, factor.offset};
    if (factor.axis) {
      const Entity& entity = scope_.find(factor.axis->text)->entity;
      f.axis = dim.pack ? std::get<Pack>(entity).axes[pack_index] : std::get<ir::AxisId>(entity);
    }
    result.push_back(f);
  }
  return result;
}

void Elaborator::declare_contracts() {
  for (const ParamDecl& param : decl_.params) {
    if (!param.range && !param.sorted && !param.distinct) continue;
    ir::Contract contract;
    if (param.range) {
      contract.lo = eval(param.range->first, scope_);
      contract.hi = eval(param.range->second, scope_);
    }
    contract.sorted = param.sorted;
    contract.distinct = param.distinct;
    builder_.contract(std::get<ir::TensorId>(scope_.find(param.name.text)->entity), contract, file_.where(param.name.pos));
  }
}

// ---- statements ----

void Elaborator::name_value(std::string_view name, ir::ValueId value) {
  if (in_stream_)
    stream_names_.emplace_back(name, value);
  else
    builder_.name(std::string(name), value);
}

void Elaborator::statement(const Let& let, Scope& scope) {
  for (const Name& name : let.names) {
    const Scope::Entry* entry = scope.find(name.text);
    const ir::TensorId* tensor = entry ? std::get_if<ir::TensorId>(&entry->entity) : nullptr;
    const bool stored = tensor && builder_.program()[*tensor].access != ir::Access::in;
    scope.check_free(
        name, stored ? fmt::format("store to it by its index: {} = ...", ir::describe_shape(builder_.program(), *tensor)) : "");
  }
  const Values values = eval_many(let.value, scope, let.names.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    scope.declare(let.names[i], values[i]);
    name_value(let.names[i].text, values[i]);
  }
}

void Elaborator::statement(const AxisDecl& decl, Scope& scope) {
  const Where where = scope.where(decl.name.pos);
  const bool in_head = !in_region_ && declared_axes_.count(decl.name.text);
  if (!in_head) scope.check_free(decl.name);
  const ir::ValueId lo = decl.lo ? eval(*decl.lo, scope) : builder_.literal(std::int64_t{0});
  const ir::ValueId hi = eval(decl.hi, scope);
  if (!in_head) scope.declare(decl.name, builder_.axis(std::string(decl.name.text), where));
  builder_.range(std::get<ir::AxisId>(scope.find(decl.name.text)->entity), lo, hi, where);
}

void Elaborator::statement(const Require& require, Scope& scope) {
  builder_.require(eval(require.condition, scope), scope.where(scope.file()[require.condition].pos));
}

void Elaborator::statement(const StoreStmt& store, Scope& scope) {
  const Scope::Entry* entry = scope.find(store.tensor.text);
  if (!entry) fail_unknown(store.tensor, scope, "the tensor");
  const ir::TensorId* tensor = std::get_if<ir::TensorId>(&entry->entity);
  if (!tensor)
    throw Error(ErrorCode::type_mismatch, scope.where(store.tensor.pos),
                fmt::format("{} is not a tensor and can not be stored to", store.tensor.text),
                "store to an out or inout parameter");
  std::vector<ir::Index> index = index_of(store.index, 0, scope);
  const ir::ValueId value = eval(store.value, scope);
  builder_.store(*tensor, std::move(index), value, scope.where(store.tensor.pos));
}

void Elaborator::statement(const StreamStmt& stream, Scope& scope) {
  const ir::AxisId axis = axis_named(stream.axis, scope);
  std::vector<std::string> names;
  Values init;
  for (const Bind& bind : stream.carry) {
    scope.check_free(bind.name);
    if (std::find(names.begin(), names.end(), bind.name.text) != names.end())
      throw Error(ErrorCode::redefined, scope.where(bind.name.pos), fmt::format("{} is carried twice", bind.name.text));
    names.emplace_back(bind.name.text);
    init.push_back(eval(bind.value, scope));
  }
  const std::size_t mark = scope.mark();
  // The builder may run the body again with better types, also after an error, and discard the values of the earlier run.
  const std::size_t values_before = builder_.program().values.size(), calls = active_.size();
  const auto eval_depth = eval_depth_;
  auto forget = [&] {
    scope.rewind(mark);
    active_.resize(calls);
    eval_depth_ = eval_depth;
    depth_.resize(std::min(depth_.size(), values_before));
    stream_names_.clear();
  };
  auto body = [&](const Values& carried) {
    forget();
    for (std::size_t i = 0; i < names.size(); ++i) scope.declare(stream.carry[i].name, carried[i]);
    for (const BodyStmt& s : stream.body) std::visit([&](const auto& stmt) { statement(stmt, scope); }, s);
    ir::StreamResult result;
    for (ExprId value : bound_to(names, stream.next, "next", stream.next_pos, scope)) result.next.push_back(eval(value, scope));
    if (stream.merge) {
      Values left, right;
      const std::uint32_t count = static_cast<std::uint32_t>(names.size());
      for (std::uint32_t i = 0; i < count; ++i) left.push_back(builder_.arg(i, carried[i]));
      for (std::uint32_t i = 0; i < count; ++i) right.push_back(builder_.arg(count + i, carried[i]));
      result.merge = merge_of(*stream.merge, stream.merge_pos, names, left, right, scope);
    }
    scope.rewind(mark);
    return result;
  };
  in_stream_ = true;
  const Values final = builder_.stream(axis, stream.tile, names, init, body, scope.where(stream.pos));
  in_stream_ = false;
  depth_.resize(std::min(depth_.size(), values_before));
  for (const auto& [name, value] : stream_names_) builder_.name(name, value);
  stream_names_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    scope.declare(stream.carry[i].name, final[i]);
    name_value(names[i], final[i]);
  }
}

}  // namespace cosmati::language
