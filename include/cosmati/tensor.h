// A view of somebody's array: pointer, dtype, shape, strides. Nothing is owned.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <cosmati/dtype.h>
#include <cosmati/export.h>

namespace cosmati {

struct COSMATI_API TensorView {
  void* data = nullptr;
  DType dtype = DType::f32_;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements; empty: dense row-major
  bool read_only = false;

  TensorView() = default;
  TensorView(void* data, DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {});

  std::int64_t elements() const;  // product of the shape, at most what 64 bits hold
  int rank() const { return static_cast<int>(shape.size()); }
};

namespace detail {
template <class T>
concept Element =
    std::same_as<T, bool> || std::same_as<T, float> || std::same_as<T, double> ||
    (std::is_integral_v<T> && !(sizeof(T) == 8 && std::is_unsigned_v<T>) && !std::same_as<T, char> && !std::same_as<T, wchar_t>);
template <Element T>
constexpr DType dtype_of() {
  if (std::is_same_v<T, bool>) return DType::bool_;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::f32_ : DType::f64_;
  const bool s = std::is_signed_v<T>;
  return sizeof(T) == 8   ? DType::i64_
         : sizeof(T) == 4 ? (s ? DType::i32_ : DType::u32_)
         : sizeof(T) == 2 ? (s ? DType::i16_ : DType::u16_)
                          : (s ? DType::i8_ : DType::u8_);
}
// `view` of the first `size` elements; throws Error{bad_argument} where the view leaves them.
COSMATI_API TensorView checked_view(TensorView view, std::size_t size);
}  // namespace detail

// A view of an array of C++ numbers: view(pointer, {37, 1537}). Constant elements are read-only. (Half precision has no C++ type
// here: say TensorView{p, bf16, ...}.)
template <class T>
  requires detail::Element<std::remove_const_t<T>>
TensorView view(T* data, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) {
  TensorView v(const_cast<std::remove_const_t<T>*>(data), detail::dtype_of<std::remove_const_t<T>>(), std::move(shape),
               std::move(strides));
  v.read_only = std::is_const_v<T>;
  return v;
}

// The same of a vector, array or span. Throws Error{bad_argument} where its elements are fewer than the view reaches.
template <class Range>
  requires requires(Range& r) {
    *r.data();
    r.size();
  }
TensorView view(Range& elements, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) {
  return detail::checked_view(view(elements.data(), std::move(shape), std::move(strides)), elements.size());
}

}  // namespace cosmati
