// Views of arrays: the little that is not in the header.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/tensor.h>

namespace cosmati {

TensorView::TensorView(void* data, DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
    : data(data), dtype(dtype), shape(std::move(shape)), strides(std::move(strides)) {}

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace cosmati
