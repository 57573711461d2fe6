// Matching arguments with parameters and solving extents.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/describe.h"
#include "ir/inline_replaces.h"
#include "prove/prove.h"

namespace cosmati::runtime {
namespace {

constexpr std::int64_t unknown = -1;

[[noreturn]] void refuse(ErrorCode code, const std::string& message, const std::string& hint = {}) {
  throw Error(code, {}, message, hint);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

bool in_class(DType t, language::TypeClass c) {
  switch (c) {
    case language::TypeClass::any_float:
      return is_float(t);
    case language::TypeClass::any_int:
      return is_int(t);
    case language::TypeClass::any:
      return true;
  }
  return false;
}

// Whether the distances that strides span are numbers of bytes at all.
void check_reach(const TensorView& view, const std::string& name) {
  if (view.strides.empty() || view.elements() == 0) return;
  std::int64_t sum = byte_size(view.dtype);
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &reach) ||
        __builtin_mul_overflow(reach, byte_size(view.dtype), &reach) || reach == std::numeric_limits<std::int64_t>::min() ||
        __builtin_add_overflow(sum, std::abs(reach), &sum) || sum > (std::int64_t{1} << 60))
      refuse(ErrorCode::bad_argument,
             fmt::format("stride {} of {} in dimension {} reaches beyond any memory", view.strides[d], name, d));
  }
}

// Whether a 64-bit integer is cast to a narrower one. Extents and coordinates have 64 bits, and proofs take what they become for
// exact.
bool narrows(const ir::Program& p) {
  return std::any_of(p.values.begin(), p.values.end(), [&](const ir::Value& v) {
    const auto* n = std::get_if<ir::Elementwise>(&v.node);
    return n && n->op == ops::Op::cast && is_int(v.dtype) && v.dtype != DType::i64_ && p[n->args[0]].dtype == DType::i64_;
  });
}

// Whether the values that `roots` are computed from include a scalar parameter, by its index.
std::vector<bool> scalars_behind(const ir::Program& p, std::vector<ir::ValueId> roots) {
  std::vector<bool> scalars(p.scalars.size(), false), seen(p.values.size(), false);
  while (!roots.empty()) {
    const ir::ValueId v = roots.back();
    roots.pop_back();
    if (seen[v.index]) continue;
    seen[v.index] = true;
    if (const auto* n = std::get_if<ir::ScalarRef>(&p[v].node)) scalars[n->scalar.index] = true;
    if (const auto* n = std::get_if<ir::Elementwise>(&p[v].node)) roots.insert(roots.end(), n->args.begin(), n->args.end());
  }
  return scalars;
}

// The launch-level values that decide about extents or are checked.
std::vector<ir::ValueId> deciding(const ir::Program& p) {
  std::vector<ir::ValueId> roots;
  const auto add = [&](const std::optional<ir::ValueId>& v) {
    if (v) roots.push_back(*v);
  };
  for (const ir::Axis& axis : p.axes) {
    add(axis.lo);
    add(axis.hi);
  }
  for (const ir::Tensor& tensor : p.tensors) {
    add(tensor.contract.lo);
    add(tensor.contract.hi);
  }
  for (const ir::Scalar& scalar : p.scalars) add(scalar.fallback);
  for (const auto& [condition, where] : p.requires_) roots.push_back(condition);
  return roots;
}

bool has_contracts(const ir::Program& p) {
  return std::any_of(p.tensors.begin(), p.tensors.end(), [](const ir::Tensor& t) {
    return t.access != ir::Access::out && (t.contract.lo || t.contract.hi || t.contract.sorted || t.contract.distinct);
  });
}

// Whether each parameter is given what it takes.
void check_kinds(const language::Signature& signature, Matched matched, bool missing_outputs) {
  if (matched.size() != signature.parameters.size())
    refuse(ErrorCode::bad_argument, fmt::format("{} arguments are given, but {} has {} parameters", matched.size(),
                                                signature.name, signature.parameters.size()));
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const language::Parameter& parameter = signature.parameters[i];
    bool is_view = matched[i] && std::holds_alternative<TensorView>(*matched[i]);
    if (matched[i] && parameter.is_tensor != is_view)
      refuse(ErrorCode::bad_argument,
             fmt::format("{} is a {} parameter of {}, but a {} is given", parameter.name,
                         parameter.is_tensor ? "tensor" : "scalar", signature.name, is_view ? "tensor" : "scalar"));
    if (matched[i]) continue;
    bool optional = parameter.is_tensor ? missing_outputs && parameter.access == ir::Access::out : parameter.has_default;
    if (!optional) refuse(ErrorCode::bad_argument, fmt::format("{} needs an argument `{}`", signature.name, parameter.name));
  }
}

language::Binding bind_types(const language::Signature& signature, Matched matched) {
  language::Binding binding;
  std::map<std::string, std::string> from;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const language::Parameter& parameter = signature.parameters[i];
    if (!parameter.is_tensor || !matched[i]) continue;
    const TensorView& view = std::get<TensorView>(*matched[i]);
    if (parameter.dtype && view.dtype != *parameter.dtype)
      refuse(ErrorCode::bad_argument,
             fmt::format("{} is {}, but {} takes {}", parameter.name, name(view.dtype), signature.name, name(*parameter.dtype)));
    if (!parameter.dtype) {
      auto [it, fresh] = binding.types.emplace(parameter.variable, view.dtype);
      if (fresh)
        from[parameter.variable] = parameter.name;
      else if (it->second != view.dtype)
        refuse(ErrorCode::bad_argument, fmt::format("{} is {} but {} is {}, and both are {}", from[parameter.variable],
                                                    name(it->second), parameter.name, name(view.dtype), parameter.variable));
    }
    int extra = view.rank() - parameter.rank;
    if (parameter.pack.empty() ? extra != 0 : extra < 0)
      refuse(ErrorCode::bad_argument,
             fmt::format("{} has {} dimension{} {}, but {} declares [{}]", parameter.name, view.rank(),
                         view.rank() == 1 ? "" : "s", shape_text(view.shape), signature.name, listed(parameter.dim_names)));
    if (parameter.pack.empty()) continue;
    auto [it, fresh] = binding.packs.emplace(parameter.pack, extra);
    if (!fresh && it->second != extra)
      refuse(ErrorCode::bad_argument, fmt::format("{}... stands for {} dimensions elsewhere but for {} in {}", parameter.pack,
                                                  it->second, extra, parameter.name));
  }
  for (const auto& [variable, klass] : signature.type_variables) {
    auto it = binding.types.find(variable);
    if (it == binding.types.end())
      refuse(ErrorCode::bad_argument, fmt::format("nothing binds the type {} of {}", variable, signature.name),
             "give an array for a parameter of that type");
    if (!in_class(it->second, klass))
      refuse(ErrorCode::type_mismatch,
             fmt::format("{} is {}, but {} takes {} types for {}", from[variable], name(it->second), signature.name,
                         klass == language::TypeClass::any_float ? "float" : "integer", variable));
  }
  return binding;
}

// Solves extents by repeated substitution: each dimension is one equation, each declared range another.
class Solver {
 public:
  Solver(const ir::Program& p, const std::vector<const TensorView*>& views, std::vector<std::optional<ops::Scalar>> scalars)
      : p_(p), views_(views), extents_(p.axes.size(), unknown), origin_(p.axes.size()), scalars_(std::move(scalars)) {}

  // Before anything else: what arguments and declarations say is held against it.
  void give(const std::string& name, std::int64_t extent) {
    bool found = false;
    for (std::uint32_t a = 0; a < p_.axes.size(); ++a) {
      if (!p_.axes[a].in_dims || p_.axes[a].name != name) continue;
      found = true;
      if (extent < 0) refuse(ErrorCode::bad_argument, fmt::format("axis {} cannot have the extent {}", name, extent));
      set(a, extent, "the call");
    }
    if (!found) refuse(ErrorCode::bad_argument, fmt::format("{} has no parameter or axis `{}`", p_.name, name));
  }

  void solve() {
    for (bool progress = true; progress;) {
      progress = dimensions(false);
      for (std::uint32_t a = 0; a < p_.axes.size(); ++a) progress |= declared(a);
      for (std::uint32_t s = 0; s < scalars_.size(); ++s)
        if (!scalars_[s] && p_.scalars[s].fallback) {
          scalars_[s] = launch_value(p_, *p_.scalars[s].fallback, extents_, scalars_);
          progress |= scalars_[s].has_value();
        }
      // A factor beside an empty one follows from nothing; it is empty too where nothing else gives it.
      progress = progress || dimensions(true);
    }
    check();
  }

  std::vector<std::int64_t> shape(std::uint32_t tensor) const {
    std::vector<std::int64_t> shape;
    for (std::uint32_t d = 0; d < p_.tensors[tensor].dims.size(); ++d) {
      std::int64_t product = 1;
      for (const ir::Factor& factor : p_.tensors[tensor].dims[d]) {
        if (factor.axis.valid() && extents_[factor.axis.index] == unknown)
          refuse(ErrorCode::bad_argument,
                 fmt::format("nothing gives the extent of axis {}, dimension {} of {}", p_[factor.axis].name, d,
                             p_.tensors[tensor].name),
                 fmt::format("pass {}, or declare `axis {} = ...`", p_.tensors[tensor].name, p_[factor.axis].name));
        times(product, factor, tensor);
      }
      if (product < 0)
        refuse(ErrorCode::bad_argument,
               fmt::format("dimension {} of {} would have the negative extent {}", d, p_.tensors[tensor].name, product));
      shape.push_back(product);
    }
    return shape;
  }

  const std::vector<std::int64_t>& extents() const { return extents_; }
  std::vector<ops::Scalar> scalars() const {
    std::vector<ops::Scalar> values;
    for (std::uint32_t s = 0; s < scalars_.size(); ++s) {
      if (!scalars_[s])
        refuse(ErrorCode::bad_argument, fmt::format("the default of {} needs an extent that nothing gives", p_.scalars[s].name));
      values.push_back(*scalars_[s]);
    }
    return values;
  }

 private:
  // product *= the extent of a factor whose axis is known.
  void times(std::int64_t& product, const ir::Factor& factor, std::uint32_t tensor) const {
    std::int64_t extent = factor.axis.valid() ? extents_[factor.axis.index] : 0;
    if (__builtin_add_overflow(extent, factor.offset, &extent) || __builtin_mul_overflow(product, extent, &product))
      refuse(ErrorCode::bad_argument, fmt::format("{} has more elements than memory", p_.tensors[tensor].name));
  }

  bool set(std::uint32_t axis, std::int64_t extent, const std::string& origin) {
    if (extents_[axis] != unknown) return false;
    extents_[axis] = extent;
    origin_[axis] = origin;
    return true;
  }

  bool dimensions(bool beside_empty) {
    bool progress = false;
    for (std::uint32_t t = 0; t < p_.tensors.size(); ++t)
      if (views_[t])
        for (std::uint32_t d = 0; d < p_.tensors[t].dims.size(); ++d) progress |= dimension(t, d, beside_empty);
    return progress;
  }

  // The one unknown factor of a dimension follows by division.
  bool dimension(std::uint32_t t, std::uint32_t d, bool beside_empty) {
    const ir::Tensor& tensor = p_.tensors[t];
    const ir::Factor* open = nullptr;
    std::int64_t known = 1;
    std::string names;
    for (const ir::Factor& factor : tensor.dims[d]) {
      if (factor.axis.valid() && extents_[factor.axis.index] == unknown) {
        if (open) return false;
        open = &factor;
      } else {
        times(known, factor, t);
        names += (names.empty() ? "" : " * ") + (factor.axis.valid() ? p_[factor.axis].name : std::to_string(factor.offset));
      }
    }
    if (!open) return false;
    std::int64_t extent = views_[t]->shape[d];
    if (tensor.dims[d].size() > 1) {
      if (known == 0)
        return beside_empty && extent == 0 && set(open->axis.index, 0, fmt::format("dimension {} of {}", d, tensor.name));
      if (extent % known != 0)
        refuse(ErrorCode::extent_mismatch,
               fmt::format("dimension {} of {}: extent {} is not a multiple of {} = {}", d, tensor.name, extent, known, names));
      extent /= known;
    }
    if (extent < open->offset)
      refuse(ErrorCode::extent_mismatch,
             fmt::format("dimension {} of {}: extent {} is less than {}", d, tensor.name, extent, open->offset));
    if (__builtin_sub_overflow(extent, open->offset, &extent))
      refuse(ErrorCode::bad_argument,
             fmt::format("dimension {} of {} gives axis {} an extent beyond 64 bits", d, tensor.name, p_[open->axis].name));
    return set(open->axis.index, extent, fmt::format("dimension {} of {}", d, tensor.name));
  }

  std::optional<std::int64_t> range(std::uint32_t a) const {
    const ir::Axis& axis = p_.axes[a];
    if (axis.piece || (!axis.lo && !axis.hi)) return std::nullopt;
    auto lo = axis.lo ? launch_value(p_, *axis.lo, extents_, scalars_) : ops::Scalar{};
    auto hi = axis.hi ? launch_value(p_, *axis.hi, extents_, scalars_) : std::nullopt;
    if (!lo || !hi) return std::nullopt;
    std::int64_t extent = 0;
    if (hi->i > lo->i && __builtin_sub_overflow(hi->i, lo->i, &extent))
      refuse(ErrorCode::bad_argument, fmt::format("axis {} in {} .. {} has an extent beyond 64 bits", axis.name, lo->i, hi->i));
    return extent;
  }

  bool declared(std::uint32_t a) {
    if (extents_[a] != unknown) return false;
    auto extent = range(a);
    return extent && set(a, *extent, "its declaration");
  }

  void check() const {
    for (std::uint32_t a = 0; a < p_.axes.size(); ++a) {
      if (!p_.axes[a].in_dims) continue;
      auto extent = range(a);
      if (extent && extents_[a] != unknown && *extent != extents_[a])
        refuse(ErrorCode::extent_mismatch,
               fmt::format("axis {} is {} in {} but {} by its declaration", p_.axes[a].name, extents_[a], origin_[a], *extent));
    }
    for (std::uint32_t t = 0; t < p_.tensors.size(); ++t) {
      if (!views_[t]) continue;
      std::vector<std::int64_t> expected = shape(t);
      for (std::uint32_t d = 0; d < expected.size(); ++d) {
        if (expected[d] == views_[t]->shape[d]) continue;
        const ir::Dim& dim = p_.tensors[t].dims[d];
        if (dim.size() == 1 && dim[0].axis.valid())
          refuse(ErrorCode::extent_mismatch, fmt::format("axis {} is {} in {} but {} in dimension {} of {}", p_[dim[0].axis].name,
                                                         extents_[dim[0].axis.index], origin_[dim[0].axis.index],
                                                         views_[t]->shape[d] - dim[0].offset, d, p_.tensors[t].name));
        refuse(ErrorCode::extent_mismatch,
               fmt::format("dimension {} of {}: extent {} is not {}", d, p_.tensors[t].name, views_[t]->shape[d], expected[d]));
      }
    }
  }

  const ir::Program& p_;
  const std::vector<const TensorView*>& views_;
  std::vector<std::int64_t> extents_;
  std::vector<std::string> origin_;
  std::vector<std::optional<ops::Scalar>> scalars_;
};

}  // namespace

std::vector<const Argument*> match(const language::Signature& signature, const Arguments& arguments) {
  std::vector<const Argument*> matched(signature.parameters.size(), nullptr);
  std::size_t next = 0;  // most callers keep the declared order
  for (const auto& [name, argument] : arguments) {
    std::size_t at = next;
    if (at >= matched.size() || signature.parameters[at].name != name)
      for (at = 0; at < matched.size() && signature.parameters[at].name != name;) ++at;
    if (at == matched.size()) {
      std::vector<std::string> names;
      for (const auto& parameter : signature.parameters) names.push_back(parameter.name);
      refuse(ErrorCode::bad_argument, fmt::format("{} has no parameter `{}`", signature.name, name),
             "its parameters are " + listed(names));
    }
    if (matched[at]) refuse(ErrorCode::bad_argument, fmt::format("{} is given twice", name));
    matched[at] = &argument;
    next = at + 1;
  }
  return matched;
}

ops::Scalar convert(const Argument& argument, const ir::Scalar& parameter) {
  const DType t = parameter.dtype;
  auto wrong = [&](const std::string& got) {
    refuse(ErrorCode::bad_argument, fmt::format("{} is {}, but {} is given", parameter.name, name(t), got));
  };
  ops::Scalar value;
  if (const bool* b = std::get_if<bool>(&argument)) {
    if (!is_bool(t)) wrong(*b ? "true" : "false");
    value.i = *b;
  } else if (const auto* i = std::get_if<std::int64_t>(&argument)) {
    if (is_bool(t)) wrong(std::to_string(*i));
    if (is_float(t)) {
      value.f = ops::round_to(t, static_cast<double>(*i));
    } else {
      value.i = *i;
      if (ops::wrap_to(t, *i) != *i) wrong(std::to_string(*i));
    }
  } else {
    double d = std::get<double>(argument);
    if (is_float(t)) {
      value.f = ops::round_to(t, d);
    } else {
      bool integral = std::isfinite(d) && d == std::trunc(d) && std::fabs(d) < 9.2e18;
      if (!integral || is_bool(t) || ops::wrap_to(t, static_cast<std::int64_t>(d)) != static_cast<std::int64_t>(d))
        wrong(fmt::format("{}", d));
      value.i = static_cast<std::int64_t>(d);
    }
  }
  return value;
}

std::vector<std::int64_t> strides_of(const TensorView& view) {
  if (!view.strides.empty() || view.shape.empty()) return view.strides;
  std::vector<std::int64_t> strides(view.shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(1, view.shape[d]);
  }
  return strides;
}

std::optional<ops::Scalar> launch_value(const ir::Program& p, ir::ValueId v, const std::vector<std::int64_t>& extents,
                                        const std::vector<std::optional<ops::Scalar>>& scalars) {
  const ir::Value& value = p[v];
  // Literals keep their digits in the IR; a constant of a type has that type's value.
  if (const auto* n = std::get_if<ir::Const>(&value.node))
    return ops::Scalar{is_float(value.dtype) ? ops::round_to(value.dtype, n->f) : 0, n->i};
  if (const auto* n = std::get_if<ir::Extent>(&value.node)) {
    if (extents[n->axis.index] == unknown) return std::nullopt;
    return ops::Scalar{0, extents[n->axis.index]};
  }
  if (const auto* n = std::get_if<ir::ScalarRef>(&value.node)) return scalars[n->scalar.index];
  const auto* n = std::get_if<ir::Elementwise>(&value.node);
  if (!n) return std::nullopt;
  std::vector<ops::Scalar> args;
  for (ir::ValueId arg : n->args) {
    auto a = launch_value(p, arg, extents, scalars);
    if (!a) return std::nullopt;
    args.push_back(*a);
  }
  DType from = p[n->args.back()].dtype;
  if (n->op == ops::Op::cast) return ops::cast(from, value.dtype, args[0]);
  if (n->op == ops::Op::bits) return ops::reinterpret(from, value.dtype, args[0]);
  if (value.dtype == DType::i64_) {
    std::int64_t exact = 0;
    if ((n->op == ops::Op::add && __builtin_add_overflow(args[0].i, args[1].i, &exact)) ||
        (n->op == ops::Op::sub && __builtin_sub_overflow(args[0].i, args[1].i, &exact)) ||
        (n->op == ops::Op::mul && __builtin_mul_overflow(args[0].i, args[1].i, &exact)))
      throw Error(ErrorCode::bad_argument, value.where,
                  fmt::format("{} is beyond 64 bits for these arguments", ir::describe_expression(p, v)));
  }
  return ops::reference(n->op, from, value.dtype, args.data());
}

std::shared_ptr<const Instance> Instances::get(const language::Binding& binding) const {
  std::string key;
  for (const auto& [variable, type] : binding.types) key += fmt::format("{}={},", variable, name(type));
  for (const auto& [pack, count] : binding.packs) key += fmt::format("{}...={},", pack, count);
  std::lock_guard lock(mutex_);
  auto& slot = instances_[key];
  if (!slot) {
    auto made = std::make_shared<Instance>();
    made->binding = binding;
    made->program = program_.source().instantiate(binding);
    prove::require_proven(made->program);
    made->inlined = ir::inline_replaces(made->program);
    made->narrows = narrows(made->program);
    made->contracts = has_contracts(made->program);
    made->decides = scalars_behind(made->program, deciding(made->program));
    slot = made;
  }
  return slot;
}

Bound bind(const Instances& instances, const Arguments& arguments, BindOptions options) {
  return runtime::bind(instances, match(instances.program().source().signature(), arguments), options);
}

Bound bind(const Instances& instances, Matched matched, BindOptions options) {
  const language::Signature& signature = instances.program().source().signature();
  check_kinds(signature, matched, options.missing_outputs);
  Bound bound;
  bound.instance = instances.get(bind_types(signature, matched));
  const ir::Program& p = bound.instance->program;

  std::vector<const TensorView*> views(p.tensors.size(), nullptr);
  std::vector<std::optional<ops::Scalar>> scalars(p.scalars.size());
  for (std::size_t i = 0; i < matched.size(); ++i) {
    auto [is_tensor, index] = p.parameters[i];
    if (!matched[i]) continue;
    if (!is_tensor) {
      scalars[index] = convert(*matched[i], p.scalars[index]);
      continue;
    }
    const TensorView& view = std::get<TensorView>(*matched[i]);
    if (!view.strides.empty() && view.strides.size() != view.shape.size())
      refuse(ErrorCode::bad_argument,
             fmt::format("{} has {} dimensions but {} strides", p.tensors[index].name, view.shape.size(), view.strides.size()));
    std::int64_t elements = 1;
    for (std::int64_t extent : view.shape)
      if (extent < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements) ||
          elements > (std::int64_t{1} << 60))
        refuse(ErrorCode::bad_argument,
               fmt::format("{} has the impossible shape {}", p.tensors[index].name, shape_text(view.shape)));
    if (options.read_data && view.read_only && p.tensors[index].access != ir::Access::in)
      refuse(ErrorCode::bad_argument, fmt::format("{} is written, but its memory is read-only", p.tensors[index].name));
    check_reach(view, p.tensors[index].name);
    if (options.read_data && !view.data && view.elements() > 0)
      refuse(ErrorCode::bad_argument, fmt::format("{} has no memory", p.tensors[index].name));
    views[index] = &view;
  }
  Solver solver(p, views, std::move(scalars));
  if (options.extents)
    for (const auto& [name, extent] : *options.extents) solver.give(name, extent);
  solver.solve();
  bound.inputs.extents = solver.extents();
  bound.inputs.scalars = solver.scalars();
  for (std::int64_t& extent : bound.inputs.extents) extent = std::max<std::int64_t>(extent, 0);
  constexpr std::int64_t narrow_limit = std::numeric_limits<std::int32_t>::max();
  for (std::size_t a = 0; bound.instance->narrows && a < p.axes.size(); ++a)
    if (bound.inputs.extents[a] > narrow_limit)
      refuse(ErrorCode::bad_argument,
             fmt::format("axis {} is {}, but {} casts 64-bit integers to narrower ones, which is for extents up to {}",
                         p.axes[a].name, bound.inputs.extents[a], p.name, narrow_limit),
             "compute extents and indices with i64");
  for (std::uint32_t t = 0; t < p.tensors.size(); ++t) {
    TensorView view = views[t] ? *views[t] : TensorView(nullptr, p.tensors[t].dtype, solver.shape(t));
    // No element is reached by the strides of an empty array: any numbers may stand there.
    if (view.elements() == 0) view.strides.clear();
    view.strides = strides_of(view);
    bound.inputs.tensors.push_back(std::move(view));
    if (!views[t]) bound.missing.push_back(t);
  }
  if (options.read_data) {
    bound.aliases = check_memory(p, bound.inputs.tensors);
    oracle::check_contracts(p, bound.inputs);
  }
  return bound;
}

}  // namespace cosmati::runtime
