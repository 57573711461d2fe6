// Views of arrays: the little that is not in the header.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/tensor.h>

#include <fmt/format.h>

#include <limits>

#include <cosmati/error.h>

namespace cosmati {

TensorView::TensorView(void* data, DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
    : data(data), dtype(dtype), shape(std::move(shape)), strides(std::move(strides)) {}

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  bool beyond = false;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return 0;  // also beside extents whose product is no number of 64 bits
    beyond = __builtin_mul_overflow(product, extent, &product) || beyond;
  }
  return beyond ? std::numeric_limits<std::int64_t>::max() : product;
}

TensorView detail::checked_view(TensorView view, std::size_t size) {
  // 128 bits hold every step, since what has left any memory ends the walk.
  constexpr __int128 anywhere = __int128{1} << 62;
  __int128 lo = 0, hi = 0, dense = 1;
  for (std::size_t d = view.shape.size(); d-- > 0 && -lo < anywhere && hi < anywhere;) {
    if (view.shape[d] <= 0) return view;  // nothing is reached, or the shape is refused where it is used
    const __int128 stride = view.strides.size() == view.shape.size() ? __int128{view.strides[d]} : dense;
    (stride < 0 ? lo : hi) += stride * (view.shape[d] - 1);
    if (dense < anywhere) dense *= view.shape[d];
  }
  if (lo < 0 || hi >= static_cast<__int128>(size)) {
    std::string shape;
    for (const std::int64_t extent : view.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    throw Error(ErrorCode::bad_argument, {}, fmt::format("a view [{}] reaches outside of an array of {} elements", shape, size),
                "pass a pointer to view() where the array goes on before or behind");
  }
  return view;
}

}  // namespace cosmati
