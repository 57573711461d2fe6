// A view of somebody's array: pointer, dtype, shape, strides. Nothing is owned.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
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

  std::int64_t elements() const;  // product of the shape
  int rank() const { return static_cast<int>(shape.size()); }
};

}  // namespace cosmati
