// Scalars first, then shapes, then data, all from one seeded generator.
// SPDX-License-Identifier: Apache-2.0
#include "library/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "runtime/bind.h"
#include "runtime/extents.h"
#include "support/distinct.h"

namespace cosmati::library {

constexpr std::int64_t most_elements = 1 << 18;  // of one tensor

namespace {

// What a caller might choose: an extent for each axis, with declared ranges and defaults where they can be computed.
std::vector<std::int64_t> proposed_extents(const ir::Program& p, std::vector<std::optional<ops::Scalar>> scalars,
                                           const std::function<std::int64_t()>& choose) {
  std::vector<std::int64_t> extents(p.axes.size(), -1);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      const ir::Axis& axis = p.axes[a];
      if (extents[a] >= 0 || axis.piece) continue;
      if (!axis.hi) {
        extents[a] = choose();
        progress = true;
        continue;
      }
      auto lo = axis.lo ? runtime::launch_value(p, *axis.lo, extents, scalars) : ops::Scalar{};
      auto hi = runtime::launch_value(p, *axis.hi, extents, scalars);
      if (!lo || !hi) continue;
      extents[a] = static_cast<std::int64_t>(std::clamp<__int128>(__int128{hi->i} - lo->i, 0, 64));
      progress = true;
    }
    for (std::size_t s = 0; s < scalars.size(); ++s) {
      if (scalars[s]) continue;
      scalars[s] = runtime::launch_value(p, *p.scalars[s].fallback, extents, scalars);
      progress = progress || scalars[s].has_value();
    }
  }
  for (std::int64_t& extent : extents) extent = std::max<std::int64_t>(extent, 0);
  return extents;
}

// A view without memory; nothing where the extents do not allow one, or only one that is too large.
std::optional<TensorView> view_of(const ir::Tensor& tensor, const std::vector<std::int64_t>& extents) {
  TensorView view;
  view.dtype = tensor.dtype;
  std::int64_t elements = 1;
  for (const ir::Dim& dim : tensor.dims) {
    std::int64_t extent = 1;
    for (const ir::Factor& factor : dim) extent *= (factor.axis.valid() ? extents[factor.axis.index] : 0) + factor.offset;
    if (extent < 0) return std::nullopt;
    view.shape.push_back(extent);
    elements *= extent;
    if (elements > most_elements) return std::nullopt;
  }
  view.strides = runtime::strides_of(view);
  return view;
}

}  // namespace

std::optional<OwnedInputs> random_inputs(const ir::Program& p, std::uint64_t seed, std::int64_t largest_extent) try {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 12345);
  auto below = [&](std::int64_t n) {
    return n <= 0 ? std::int64_t{0} : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  auto normal = [&] {
    double total = -6;
    for (int i = 0; i < 12; ++i) total += static_cast<double>(random() >> 11) * 0x1p-53;
    return total;
  };
  OwnedInputs owned;
  std::vector<std::optional<ops::Scalar>> given(p.scalars.size());
  for (std::size_t s = 0; s < given.size(); ++s) {
    if (p.scalars[s].fallback) continue;
    const DType t = p.scalars[s].dtype;
    ops::Scalar value;
    if (is_float(t))
      value.f = ops::round_to(t, normal());
    else
      value.i = is_bool(t) ? below(2) : 1 + below(3);
    given[s] = value;
  }
  const std::vector<std::int64_t> proposed = proposed_extents(p, given, [&] { return below(largest_extent + 1); });
  std::vector<const TensorView*> views;
  for (const ir::Tensor& tensor : p.tensors) {
    std::optional<TensorView> view = view_of(tensor, proposed);
    if (!view) return std::nullopt;
    owned.inputs.tensors.push_back(std::move(*view));
  }
  for (const TensorView& view : owned.inputs.tensors) views.push_back(&view);
  // From here on the extents are those that a launch finds in these shapes.
  const runtime::ExtentEquations solved(p, views, given);
  const std::vector<std::int64_t> extents = solved.all();
  owned.inputs.scalars = solved.scalars();
  const std::vector<std::optional<ops::Scalar>> scalars(owned.inputs.scalars.begin(), owned.inputs.scalars.end());
  for (const auto& [condition, where] : p.requires_) {
    auto holds = runtime::launch_value(p, condition, extents, scalars);
    if (holds && !holds->i) return std::nullopt;
  }
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    const ir::Tensor& tensor = p.tensors[t];
    TensorView& view = owned.inputs.tensors[t];
    const std::int64_t elements = view.elements();
    std::vector<ops::Scalar> values(elements);
    if (is_int(tensor.dtype)) {
      auto lo = tensor.contract.lo ? runtime::launch_value(p, *tensor.contract.lo, extents, scalars) : std::nullopt;
      auto hi = tensor.contract.hi ? runtime::launch_value(p, *tensor.contract.hi, extents, scalars) : std::nullopt;
      // 128 bits hold every bound and every count of integers.
      __int128 first = lo ? __int128{lo->i} : hi ? std::min<__int128>(0, __int128{hi->i} - 4) : is_signed(tensor.dtype) ? -4 : 0;
      __int128 last = hi ? __int128{hi->i} : first + 9;
      const __int128 all = __int128{1} << (8 * byte_size(tensor.dtype)), least = is_signed(tensor.dtype) ? -all / 2 : 0;
      first = std::max(first, least);  // contracts may be wider than the type
      last = std::min(last, least + all);
      if (elements > 0 && last <= first) return std::nullopt;
      const auto span = static_cast<std::uint64_t>(std::max<__int128>(0, last - first));
      auto value = [&](std::uint64_t drawn) { return static_cast<std::int64_t>(first + drawn); };
      if (tensor.contract.distinct) {
        const auto count = static_cast<std::uint64_t>(elements);
        if (span < count) return std::nullopt;
        const auto drawn = support::draw_distinct(span, count, [&](std::uint64_t, std::uint64_t n) { return random() % n; });
        for (std::size_t i = 0; i < drawn.size(); ++i) values[i].i = value(drawn[i]);
      } else {
        for (ops::Scalar& v : values) v.i = value(random() % span);
      }
      if (tensor.contract.sorted && !view.shape.empty() && view.shape.back() > 0)
        for (std::int64_t i = 0; i < elements; i += view.shape.back())
          std::sort(values.begin() + i, values.begin() + i + view.shape.back(),
                    [](const auto& a, const auto& b) { return a.i < b.i; });
    } else if (is_bool(tensor.dtype)) {
      for (ops::Scalar& v : values) v.i = below(2);
    } else {
      for (ops::Scalar& v : values) v.f = ops::round_to(tensor.dtype, normal());
    }
    std::vector<char> storage(std::max<std::int64_t>(1, elements) * byte_size(tensor.dtype));
    for (std::int64_t i = 0; i < elements; ++i) ops::store(tensor.dtype, storage.data() + i * byte_size(tensor.dtype), values[i]);
    view.data = storage.data();
    owned.storage.push_back(std::move(storage));
  }
  owned.inputs.extents = extents;
  return owned;
} catch (const Error&) {  // no launch takes these shapes and scalars
  return std::nullopt;
}

}  // namespace cosmati::library
