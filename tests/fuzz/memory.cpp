// Guarded arrays for runs of the fuzzer.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ops/ops.h"

namespace cosmati::fuzz {
namespace {

constexpr std::int64_t guard = 64;  // elements on either side

ops::Scalar poison_of(DType type, Poison poison) {
  if (is_float(type)) return {ops::round_to(type, poison == Poison::nan ? std::numeric_limits<double>::quiet_NaN() : 1e30), 0};
  if (is_bool(type)) return {0, poison == Poison::huge};
  const int bits = byte_size(type) * 8;
  const std::uint64_t high = std::uint64_t{1} << (bits - 1);
  const bool least = poison == Poison::nan;
  return {0, ops::wrap_to(type, static_cast<std::int64_t>(is_signed(type) == least ? high : high - 1))};
}

template <class Visit>
void each_offset(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides, const Visit& visit) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  std::vector<std::int64_t> index(shape.size(), 0);
  while (true) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    visit(offset);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

Layout dense_layout(const std::vector<std::int64_t>& shape) {
  Layout layout{std::vector<std::int64_t>(shape.size()), 0, 1};
  for (std::size_t d = shape.size(); d-- > 0;) {
    layout.strides[d] = layout.span;
    layout.span *= std::max<std::int64_t>(1, shape[d]);
  }
  return layout;
}

Layout random_layout(const std::vector<std::int64_t>& shape, std::mt19937_64& random) {
  Layout layout{std::vector<std::int64_t>(shape.size()), 0, 1};
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (random() % 2) std::reverse(order.begin(), order.end());
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  if (random() % 3 == 0) layout.span = 1 + static_cast<std::int64_t>(random() % 3);
  for (std::size_t d : order) {
    const std::int64_t extent = std::max<std::int64_t>(1, shape[d]), reach = (extent - 1) * layout.span;
    const bool backwards = random() % 4 == 0;
    layout.strides[d] = backwards ? -layout.span : layout.span;
    if (backwards) layout.origin += reach;
    layout.span += reach + static_cast<std::int64_t>(random() % 3);
  }
  const auto shift = static_cast<std::int64_t>(random() % 4);
  layout.origin += shift;
  layout.span += shift;
  return layout;
}

Guarded::Guarded(const TensorView& from, const Layout& layout, Poison poison, bool read_only) {
  const std::int64_t bytes = byte_size(from.dtype);
  memory_.resize(static_cast<std::size_t>((layout.span + 2 * guard) * bytes));
  for (std::size_t at = 0; at < memory_.size(); at += static_cast<std::size_t>(bytes))
    ops::store(from.dtype, memory_.data() + at, poison_of(from.dtype, poison));
  element_.resize(memory_.size(), false);
  view_ = from;
  view_.strides = layout.strides;
  view_.data = memory_.data() + (guard + layout.origin) * bytes;
  std::int64_t linear = 0;
  each_offset(view_.shape, view_.strides, [&](std::int64_t offset) {
    char* to = static_cast<char*>(view_.data) + offset * bytes;
    if (from.data) std::memcpy(to, static_cast<const char*>(from.data) + linear++ * bytes, static_cast<std::size_t>(bytes));
    for (std::int64_t b = 0; b < bytes && !read_only; ++b) element_[static_cast<std::size_t>(to - memory_.data() + b)] = true;
  });
  before_ = memory_;
}

std::string Guarded::damage() const {
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if (!element_[i] && memory_[i] != before_[i])
      return "byte " + std::to_string(&memory_[i] - static_cast<const char*>(view_.data)) + " from element 0 was written";
  return {};
}

std::vector<char> Guarded::elements() const {
  std::vector<char> out;
  each_offset(view_.shape, view_.strides, [&](std::int64_t offset) {
    ops::Scalar s = ops::load(view_.dtype, static_cast<const char*>(view_.data) + offset * byte_size(view_.dtype));
    if (is_float(view_.dtype) && std::isnan(s.f)) s.f = std::numeric_limits<double>::quiet_NaN();
    char element[8] = {};
    ops::store(view_.dtype, element, s);
    out.insert(out.end(), element, element + byte_size(view_.dtype));
  });
  return out;
}

}  // namespace cosmati::fuzz
