// Matching arguments with parameters, and the checks of each argument by itself.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/inline_replaces.h"
#include "runtime/extents.h"
#include "support/deep_stack.h"

namespace cosmati::runtime {
namespace {

// `where`: the parameter or axis in the text of the program that the argument does not fit.
[[noreturn]] void refuse(ErrorCode code, const Where& where, const std::string& message, const std::string& hint = {}) {
  throw Error(code, where, message, hint);
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

std::string types_of(language::TypeClass c) {
  std::string names;
  for (int i = 0; i < dtype_count; ++i)
    if (in_class(static_cast<DType>(i), c)) names += (names.empty() ? "" : ", ") + std::string(dtype_table[i].name);
  return names;
}

// Whether the distances that strides span are numbers of bytes at all.
void check_reach(const TensorView& view, const ir::Tensor& tensor) {
  if (view.strides.empty() || view.elements() == 0) return;
  std::int64_t sum = byte_size(view.dtype);
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &reach) ||
        __builtin_mul_overflow(reach, byte_size(view.dtype), &reach) || reach == std::numeric_limits<std::int64_t>::min() ||
        __builtin_add_overflow(sum, std::abs(reach), &sum) || sum > (std::int64_t{1} << 60))
      refuse(ErrorCode::bad_argument, tensor.where,
             fmt::format("stride {} of {} in dimension {} reaches beyond any memory", view.strides[d], tensor.name, d));
  }
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

bool has_contract(const ir::Tensor& t) {
  return t.access != ir::Access::out && (t.contract.lo || t.contract.hi || t.contract.sorted || t.contract.distinct);
}

// Whether each parameter is given what it takes.
void check_kinds(const language::Signature& signature, Matched matched, bool missing_outputs) {
  if (matched.size() != signature.parameters.size())
    refuse(ErrorCode::bad_argument, signature.where,
           fmt::format("{} arguments are given, but {} has {} parameters", matched.size(), signature.name,
                       signature.parameters.size()));
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const language::Parameter& parameter = signature.parameters[i];
    bool is_view = matched[i] && std::holds_alternative<TensorView>(*matched[i]);
    if (matched[i] && parameter.is_tensor != is_view)
      refuse(ErrorCode::bad_argument, parameter.where,
             fmt::format("{} is a {} parameter of {}, but a {} is given", parameter.name,
                         parameter.is_tensor ? "tensor" : "scalar", signature.name, is_view ? "tensor" : "scalar"),
             parameter.is_tensor ? "pass a TensorView" : "pass a number, true or false");
    if (matched[i]) continue;
    bool optional = parameter.is_tensor ? missing_outputs && parameter.access == ir::Access::out : parameter.has_default;
    if (!optional)
      refuse(ErrorCode::bad_argument, parameter.where, fmt::format("{} needs an argument `{}`", signature.name, parameter.name),
             fmt::format("pass {}: {}{}", parameter.name, parameter.dtype ? name(*parameter.dtype) : parameter.variable,
                         parameter.is_tensor ? "[" + listed(parameter.dim_names) + "]" : ""));
  }
}

language::Binding bind_types(const language::Signature& signature, Matched matched) {
  language::Binding binding;
  std::map<std::string, const language::Parameter*> from;  // a type variable's first parameter
  for (std::size_t i = 0; i < matched.size(); ++i) {
    const language::Parameter& parameter = signature.parameters[i];
    if (!parameter.is_tensor || !matched[i]) continue;
    const TensorView& view = std::get<TensorView>(*matched[i]);
    if (parameter.dtype && view.dtype != *parameter.dtype)
      refuse(ErrorCode::bad_argument, parameter.where,
             fmt::format("{} is {}, but {} takes {}", parameter.name, name(view.dtype), signature.name, name(*parameter.dtype)),
             fmt::format("pass an array of {}", name(*parameter.dtype)));
    if (!parameter.dtype) {
      auto [it, fresh] = binding.types.emplace(parameter.variable, view.dtype);
      if (fresh)
        from[parameter.variable] = &parameter;
      else if (it->second != view.dtype)
        refuse(ErrorCode::bad_argument, parameter.where,
               fmt::format("{} is {} but {} is {}, and both are {}", from[parameter.variable]->name, name(it->second),
                           parameter.name, name(view.dtype), parameter.variable),
               "pass arrays of one type for both");
    }
    int extra = view.rank() - parameter.rank;
    if (parameter.pack.empty() ? extra != 0 : extra < 0)
      refuse(ErrorCode::bad_argument, parameter.where,
             fmt::format("{} has {} dimension{} {}, but {} declares [{}]", parameter.name, view.rank(),
                         view.rank() == 1 ? "" : "s", shape_text(view.shape), signature.name, listed(parameter.dim_names)),
             fmt::format("pass {}{} dimension{}", parameter.rank, parameter.pack.empty() ? "" : " or more",
                         parameter.rank == 1 ? "" : "s"));
    if (parameter.pack.empty()) continue;
    auto [it, fresh] = binding.packs.emplace(parameter.pack, extra);
    if (!fresh && it->second != extra)
      refuse(ErrorCode::bad_argument, parameter.where,
             fmt::format("{}... stands for {} dimensions elsewhere but for {} in {}", parameter.pack, it->second, extra,
                         parameter.name),
             fmt::format("pass {} with {} dimensions", parameter.name, parameter.rank + it->second));
  }
  for (const auto& [variable, klass] : signature.type_variables) {
    auto it = binding.types.find(variable);
    if (it == binding.types.end())
      refuse(ErrorCode::bad_argument, signature.where, fmt::format("nothing binds the type {} of {}", variable, signature.name),
             "give an array for a parameter of that type");
    if (!in_class(it->second, klass))
      refuse(ErrorCode::type_mismatch, from[variable]->where,
             fmt::format("{} is {}, but {} takes {} types for {}", from[variable]->name, name(it->second), signature.name,
                         klass == language::TypeClass::any_float ? "float" : "integer", variable),
             "the types are " + types_of(klass));
  }
  return binding;
}

std::string legal_scalars(DType t) {
  if (is_bool(t)) return "true or false";
  if (is_float(t)) return "a number";
  if (t == DType::i64_) return "an integer";
  const int bits = 8 * byte_size(t) - (is_signed(t) ? 1 : 0);
  return fmt::format("an integer from {} to {}", is_signed(t) ? -(std::int64_t{1} << bits) : 0, (std::int64_t{1} << bits) - 1);
}

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
      refuse(ErrorCode::bad_argument, signature.where, fmt::format("{} has no parameter `{}`", signature.name, name),
             "its parameters are " + listed(names));
    }
    if (matched[at])
      refuse(ErrorCode::bad_argument, signature.parameters[at].where, fmt::format("{} is given twice", name), "give it once");
    matched[at] = &argument;
    next = at + 1;
  }
  return matched;
}

ops::Scalar convert(const Argument& argument, const ir::Scalar& parameter) {
  const DType t = parameter.dtype;
  auto wrong = [&](const std::string& got) {
    refuse(ErrorCode::bad_argument, parameter.where, fmt::format("{} is {}, but {} is given", parameter.name, name(t), got),
           "pass " + legal_scalars(t));
  };
  auto rounded = [&](double given) {
    const double kept = ops::round_to(t, given);
    if (std::isfinite(given) && (!std::isfinite(kept) || (kept == 0 && given != 0)))
      refuse(ErrorCode::bad_argument, parameter.where,
             fmt::format("{} is {}, but {} is given, which {} rounds to {}", parameter.name, name(t), given, name(t), kept),
             fmt::format("pass a number that {} holds, or {}", name(t), kept));
    return kept;
  };
  ops::Scalar value;
  if (const bool* b = std::get_if<bool>(&argument)) {
    if (!is_bool(t)) wrong(*b ? "true" : "false");
    value.i = *b;
  } else if (const auto* i = std::get_if<std::int64_t>(&argument)) {
    if (is_bool(t)) wrong(std::to_string(*i));
    if (is_float(t)) {
      value.f = rounded(static_cast<double>(*i));
    } else {
      value.i = *i;
      if (ops::wrap_to(t, *i) != *i) wrong(std::to_string(*i));
    }
  } else {
    double d = std::get<double>(argument);
    if (is_float(t)) {
      value.f = rounded(d);
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

std::shared_ptr<const Instance> Instances::get(const language::Binding& binding) const {
  std::string key;
  for (const auto& [variable, type] : binding.types) key += fmt::format("{}={},", variable, name(type));
  for (const auto& [pack, count] : binding.packs) key += fmt::format("{}...={},", pack, count);
  return instances_.get(key, [&] {
    auto made = std::make_shared<Instance>();
    made->binding = binding;
    made->program = program_.source().instantiate(binding);
    support::on_deep_stack([&] {
      proofs_.program(made->program);
      made->inlined = ir::inline_replaces(made->program);
    });
    made->narrows = ir::narrows_integers(made->program);
    made->contracts = std::any_of(made->program.tensors.begin(), made->program.tensors.end(), has_contract);
    made->decides = scalars_behind(made->program, deciding(made->program));
    return made;
  });
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
    const ir::Tensor& tensor = p.tensors[index];
    if (!view.strides.empty() && view.strides.size() != view.shape.size())
      refuse(ErrorCode::bad_argument, tensor.where,
             fmt::format("{} has {} dimensions but {} strides", tensor.name, view.shape.size(), view.strides.size()));
    std::int64_t elements = 1;
    for (std::int64_t extent : view.shape)
      if (extent < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements) ||
          elements > (std::int64_t{1} << 60))
        refuse(ErrorCode::bad_argument, tensor.where,
               fmt::format("{} has the impossible shape {}", tensor.name, shape_text(view.shape)));
    if (options.read_data && view.read_only && tensor.access != ir::Access::in)
      refuse(ErrorCode::bad_argument, tensor.where, fmt::format("{} is written, but its memory is read-only", tensor.name),
             "pass memory that may be written, or a copy");
    check_reach(view, tensor);
    if (options.read_data && !view.data && view.elements() > 0)
      refuse(ErrorCode::bad_argument, tensor.where, fmt::format("{} has no memory", tensor.name),
             "pass the address of its elements, which only an array without elements can do without");
    views[index] = &view;
  }
  const ExtentEquations extents(p, views, std::move(scalars), options.extents);
  bound.inputs.extents = extents.all();
  bound.inputs.scalars = extents.scalars();
  constexpr std::int64_t narrow_limit = std::numeric_limits<std::int32_t>::max();
  for (std::size_t a = 0; bound.instance->narrows && a < p.axes.size(); ++a)
    if (bound.inputs.extents[a] > narrow_limit)
      refuse(ErrorCode::bad_argument, p.axes[a].where,
             fmt::format("axis {} is {}, but {} casts 64-bit integers to narrower ones, which is for extents up to {}",
                         p.axes[a].name, bound.inputs.extents[a], p.name, narrow_limit),
             "compute extents and indices with i64");
  // Rounded up to whole vectors and blocks an extent must still be a number.
  constexpr std::int64_t most = std::int64_t{1} << 62;
  for (std::size_t a = 0; a < p.axes.size(); ++a)
    if (bound.inputs.extents[a] > most)
      refuse(ErrorCode::bad_argument, p.axes[a].where,
             fmt::format("axis {} has {} points, more than the {} that an axis may have", p.axes[a].name, bound.inputs.extents[a],
                         most),
             "use smaller extents");
  for (std::uint32_t t = 0; t < p.tensors.size(); ++t) {
    TensorView view = views[t] ? *views[t] : TensorView(nullptr, p.tensors[t].dtype, extents.shape(t));
    // No element is reached by the strides of an empty array: any numbers may stand there.
    if (view.elements() == 0) view.strides.clear();
    view.strides = strides_of(view);
    bound.inputs.tensors.push_back(std::move(view));
    if (!views[t]) bound.missing.push_back(t);
  }
  if (options.read_data) {
    bound.aliases = check_memory(p, instances.proofs(), bound.inputs.tensors);
    check_contracts(p, bound.inputs, options.on);
  }
  return bound;
}

void check_contracts(const ir::Program& p, oracle::Inputs inputs, const OnGpu& on) {
  std::vector<std::vector<char>> copies;
  for (std::size_t t = 0; on.gpu && t < p.tensors.size(); ++t) {
    TensorView& view = inputs.tensors[t];
    if (!has_contract(p.tensors[t]) || view.elements() == 0 || !on.gpu->holds(view.data)) continue;
    if (on.after && copies.empty()) on.gpu->wait(*on.after);
    const Reach reach = reach_of(view);
    copies.emplace_back(static_cast<std::size_t>(reach.hi - reach.lo));
    on.gpu->copy(copies.back().data(), static_cast<const char*>(view.data) + reach.lo, copies.back().size());
    view.data = copies.back().data() - reach.lo;
  }
  oracle::check_contracts(p, inputs);
}

}  // namespace cosmati::runtime
