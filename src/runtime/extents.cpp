// Solves the equations of extents, and checks each of them.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/describe.h"

namespace cosmati::runtime {
namespace {

constexpr std::int64_t unknown = -1;
constexpr const char* own_declaration = "its declaration";

[[noreturn]] void refuse(ErrorCode code, const Where& where, const std::string& message, const std::string& hint = {},
                         const std::string& origin = {}) {
  throw Error(code, where, message, hint, origin);
}

std::string dimension_text(std::uint32_t d, const ir::Tensor& tensor) {
  return fmt::format("dimension {} of {}", d, tensor.name);
}

// An operation on values that are known.
ops::Scalar applied(const ir::Program& p, ir::ValueId v, const ir::Elementwise& n, const std::vector<ops::Scalar>& args) {
  const ir::Value& value = p[v];
  const DType from = p[n.args.back()].dtype;
  if (n.op == ops::Op::cast) return ops::cast(from, value.dtype, args[0]);
  if (n.op == ops::Op::bits) return ops::reinterpret(from, value.dtype, args[0]);
  if (value.dtype == DType::i64_) {
    std::int64_t exact = 0;
    if ((n.op == ops::Op::add && __builtin_add_overflow(args[0].i, args[1].i, &exact)) ||
        (n.op == ops::Op::sub && __builtin_sub_overflow(args[0].i, args[1].i, &exact)) ||
        (n.op == ops::Op::mul && __builtin_mul_overflow(args[0].i, args[1].i, &exact)))
      throw Error(ErrorCode::bad_argument, value.where,
                  fmt::format("{} is beyond 64 bits for these arguments", ir::describe_expression(p, v)));
  }
  return ops::reference(n.op, from, value.dtype, args.data());
}

}  // namespace

// By number, since what a value is made of has smaller ones: no recursion, and what is used twice is computed once.
std::optional<ops::Scalar> launch_value(const ir::Program& p, ir::ValueId v, const std::vector<std::int64_t>& extents,
                                        const std::vector<std::optional<ops::Scalar>>& scalars) {
  std::map<ir::ValueId, std::optional<ops::Scalar>> values{{v, std::nullopt}};
  std::vector<ir::ValueId> work{v};
  while (!work.empty()) {
    const auto* n = std::get_if<ir::Elementwise>(&p[work.back()].node);
    work.pop_back();
    for (std::size_t k = 0; n && k < n->args.size(); ++k)
      if (values.emplace(n->args[k], std::nullopt).second) work.push_back(n->args[k]);
  }
  for (auto& [at, result] : values) {
    const ir::Value& value = p[at];
    // Literals keep their digits in the IR; a constant of a type has that type's value.
    if (const auto* n = std::get_if<ir::Const>(&value.node))
      result = ops::Scalar{is_float(value.dtype) ? ops::round_to(value.dtype, n->f) : 0, n->i};
    if (const auto* n = std::get_if<ir::Extent>(&value.node); n && extents[n->axis.index] != unknown)
      result = ops::Scalar{0, extents[n->axis.index]};
    if (const auto* n = std::get_if<ir::ScalarRef>(&value.node)) result = scalars[n->scalar.index];
    const auto* n = std::get_if<ir::Elementwise>(&value.node);
    std::vector<ops::Scalar> args;
    for (std::size_t k = 0; n && k < n->args.size(); ++k)
      if (const std::optional<ops::Scalar>& arg = values.at(n->args[k])) args.push_back(*arg);
    if (n && args.size() == n->args.size()) result = applied(p, at, *n, args);
  }
  return values.at(v);
}

ExtentEquations::ExtentEquations(const ir::Program& p, const std::vector<const TensorView*>& views,
                                 std::vector<std::optional<ops::Scalar>> scalars, const Extents* given)
    : p_(p), views_(views), extents_(p.axes.size(), unknown), origin_(p.axes.size()), scalars_(std::move(scalars)) {
  if (given)
    for (const auto& [name, extent] : *given) give(name, extent);
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

void ExtentEquations::give(const std::string& name, std::int64_t extent) {
  bool found = false;
  for (std::uint32_t a = 0; a < p_.axes.size(); ++a) {
    if (!p_.axes[a].in_dims || p_.axes[a].name != name) continue;
    found = true;
    if (extent < 0) throw Error(ErrorCode::bad_argument, {}, fmt::format("axis {} cannot have the extent {}", name, extent));
    set(a, extent, "the call");
  }
  if (!found) throw Error(ErrorCode::bad_argument, {}, fmt::format("{} has no parameter or axis `{}`", p_.name, name));
}

std::vector<std::int64_t> ExtentEquations::all() const {
  std::vector<std::int64_t> extents;
  for (std::int64_t extent : extents_) extents.push_back(std::max<std::int64_t>(extent, 0));
  return extents;
}

std::vector<ops::Scalar> ExtentEquations::scalars() const {
  std::vector<ops::Scalar> values;
  for (std::uint32_t s = 0; s < scalars_.size(); ++s) {
    if (!scalars_[s])
      refuse(ErrorCode::bad_argument, p_.scalars[s].where,
             fmt::format("the default of {} needs an extent that nothing gives", p_.scalars[s].name),
             fmt::format("pass {}", p_.scalars[s].name));
    values.push_back(*scalars_[s]);
  }
  return values;
}

std::vector<std::int64_t> ExtentEquations::shape(std::uint32_t t) const {
  const ir::Tensor& tensor = p_.tensors[t];
  std::vector<std::int64_t> shape;
  for (std::uint32_t d = 0; d < tensor.dims.size(); ++d) {
    std::int64_t product = 1;
    for (const ir::Factor& factor : tensor.dims[d]) {
      if (factor.axis.valid() && extents_[factor.axis.index] == unknown) refuse_unknown(factor.axis, t, d);
      times(product, factor, t);
    }
    if (product < 0)
      refuse(ErrorCode::bad_argument, tensor.where,
             fmt::format("{} would have the negative extent {}", dimension_text(d, tensor), product));
    shape.push_back(product);
  }
  return shape;
}

void ExtentEquations::refuse_unknown(ir::AxisId axis, std::uint32_t t, std::uint32_t d) const {
  const ir::Tensor& tensor = p_.tensors[t];
  const std::string& name = p_[axis].name;
  const std::string nothing = fmt::format("nothing gives the extent of axis {}", name);
  // An array that is given says how large the product is; another one says what its factors are.
  const ir::Tensor* telling = views_[t] ? nullptr : &tensor;
  for (std::uint32_t other = 0; !telling && other < p_.tensors.size(); ++other)
    for (const ir::Dim& dim : p_.tensors[other].dims)
      if (!views_[other] && dim.size() == 1 && dim[0].axis == axis) telling = &p_.tensors[other];
  std::string legal = fmt::format("declare `axis {} = ...`", name);
  if (telling) {
    std::vector<std::string> extents(telling->dims.size(), "...");
    legal = fmt::format("pass {0} too (C++: its view; Python: out= or {1}=EXTENT; command line: {0}={2}[{3}]:zeros), or {4}",
                        telling->name, name, cosmati::name(telling->dtype), fmt::join(extents, ","), legal);
  }
  refuse(ErrorCode::bad_argument, tensor.where,
         views_[t] ? fmt::format("{} is {} = {}, and {}", dimension_text(d, tensor), views_[t]->shape[d], product(tensor.dims[d]),
                                 nothing)
                   : fmt::format("{}, {}", nothing, dimension_text(d, tensor)),
         legal);
}

// product *= the extent of a factor whose axis is known.
void ExtentEquations::times(std::int64_t& product, const ir::Factor& factor, std::uint32_t t) const {
  std::int64_t extent = factor.axis.valid() ? extents_[factor.axis.index] : 0;
  if (__builtin_add_overflow(extent, factor.offset, &extent) || __builtin_mul_overflow(product, extent, &product))
    refuse(ErrorCode::bad_argument, p_.tensors[t].where, fmt::format("{} has more elements than memory", p_.tensors[t].name));
}

bool ExtentEquations::set(std::uint32_t axis, std::int64_t extent, const std::string& origin) {
  if (extents_[axis] != unknown) return false;
  extents_[axis] = extent;
  origin_[axis] = origin;
  return true;
}

bool ExtentEquations::dimensions(bool beside_empty) {
  bool progress = false;
  for (std::uint32_t t = 0; t < p_.tensors.size(); ++t)
    if (views_[t])
      for (std::uint32_t d = 0; d < p_.tensors[t].dims.size(); ++d) progress |= dimension(t, d, beside_empty);
  return progress;
}

// "g * r".
std::string ExtentEquations::product(const ir::Dim& dim) const {
  std::string text;
  for (const ir::Factor& factor : dim)
    text += (text.empty() ? "" : " * ") + (factor.axis.valid() ? p_[factor.axis].name : std::to_string(factor.offset));
  return text;
}

// "g is 5 in dimension 1 of k", for the known factors.
std::string ExtentEquations::origins(const ir::Dim& dim) const {
  std::string text;
  for (const ir::Factor& factor : dim)
    if (factor.axis.valid() && extents_[factor.axis.index] != unknown)
      text += fmt::format("{}{} is {} {}", text.empty() ? "" : ", ", p_[factor.axis].name, extents_[factor.axis.index],
                          from(factor.axis));
  return text;
}

// "in dimension 1 of k", "by its declaration".
std::string ExtentEquations::from(ir::AxisId axis) const {
  const std::string& origin = origin_[axis.index];
  return (origin == own_declaration ? "by " : "in ") + origin;
}

// The one unknown factor of a dimension follows by division.
bool ExtentEquations::dimension(std::uint32_t t, std::uint32_t d, bool beside_empty) {
  const ir::Tensor& tensor = p_.tensors[t];
  const ir::Factor* open = nullptr;
  std::int64_t known = 1;
  ir::Dim factors;  // the known ones
  for (const ir::Factor& factor : tensor.dims[d]) {
    if (factor.axis.valid() && extents_[factor.axis.index] == unknown) {
      if (open) return false;
      open = &factor;
    } else {
      times(known, factor, t);
      factors.push_back(factor);
    }
  }
  if (!open) return false;
  std::int64_t extent = views_[t]->shape[d];
  if (tensor.dims[d].size() > 1) {
    if (known == 0 && extent == 0) return beside_empty && set(open->axis.index, 0, dimension_text(d, tensor));
    if (known == 0 || extent % known != 0)
      refuse(
          ErrorCode::extent_mismatch, tensor.where,
          fmt::format("{}: extent {} is not a multiple of {} = {}", dimension_text(d, tensor), extent, known, product(factors)),
          known == 0 ? "pass an empty array" : fmt::format("pass a multiple of {}", known), origins(tensor.dims[d]));
    extent /= known;
  }
  if (extent < open->offset)
    refuse(ErrorCode::extent_mismatch, tensor.where,
           fmt::format("{}: extent {} is less than {}", dimension_text(d, tensor), extent, open->offset),
           fmt::format("pass {} with extent {} or more there", tensor.name, open->offset));
  if (__builtin_sub_overflow(extent, open->offset, &extent))
    refuse(ErrorCode::bad_argument, tensor.where,
           fmt::format("{} gives axis {} an extent beyond 64 bits", dimension_text(d, tensor), p_[open->axis].name));
  return set(open->axis.index, extent, dimension_text(d, tensor));
}

std::optional<std::int64_t> ExtentEquations::range(std::uint32_t a) const {
  const ir::Axis& axis = p_.axes[a];
  if (axis.piece || (!axis.lo && !axis.hi)) return std::nullopt;
  auto lo = axis.lo ? launch_value(p_, *axis.lo, extents_, scalars_) : ops::Scalar{};
  auto hi = axis.hi ? launch_value(p_, *axis.hi, extents_, scalars_) : std::nullopt;
  if (!lo || !hi) return std::nullopt;
  std::int64_t extent = 0;
  if (hi->i > lo->i && __builtin_sub_overflow(hi->i, lo->i, &extent))
    refuse(ErrorCode::bad_argument, axis.where,
           fmt::format("axis {} in {} .. {} has an extent beyond 64 bits", axis.name, lo->i, hi->i));
  return extent;
}

bool ExtentEquations::declared(std::uint32_t a) {
  if (extents_[a] != unknown) return false;
  auto extent = range(a);
  return extent && set(a, *extent, own_declaration);
}

void ExtentEquations::check() const {
  for (std::uint32_t a = 0; a < p_.axes.size(); ++a) {
    const ir::Axis& axis = p_.axes[a];
    if (!axis.in_dims) continue;
    auto extent = range(a);
    if (extent && extents_[a] != unknown && *extent != extents_[a])
      refuse(ErrorCode::extent_mismatch, axis.where,
             fmt::format("axis {} is {} {} but {} by its declaration", axis.name, extents_[a], from(ir::AxisId{a}), *extent));
  }
  for (std::uint32_t t = 0; t < p_.tensors.size(); ++t) {
    if (!views_[t]) continue;
    const ir::Tensor& tensor = p_.tensors[t];
    const std::vector<std::int64_t> expected = shape(t);
    for (std::uint32_t d = 0; d < expected.size(); ++d) {
      const std::int64_t given = views_[t]->shape[d];
      if (expected[d] == given) continue;
      const ir::Dim& dim = tensor.dims[d];
      const std::string legal = fmt::format("pass {} with extent {} there", tensor.name, expected[d]);
      if (dim.size() == 1 && dim[0].axis.valid())
        refuse(ErrorCode::extent_mismatch, tensor.where,
               fmt::format("axis {} is {} {} but {} in {}", p_[dim[0].axis].name, extents_[dim[0].axis.index], from(dim[0].axis),
                           given - dim[0].offset, dimension_text(d, tensor)),
               legal);
      const std::string what = dim.size() > 1 ? " = " + product(dim) : "";
      refuse(ErrorCode::extent_mismatch, tensor.where,
             fmt::format("{}: extent {} is not {}{}", dimension_text(d, tensor), given, expected[d], what), legal, origins(dim));
    }
  }
}

}  // namespace cosmati::runtime
