// .npy files: read as memory-mapped views, written under a temporary name and renamed.
// Reads versions 1.0 to 3.0, every element type of the language, C and Fortran order. NumPy has no name for bf16 and f8: their
// files hold u2, u1 or the opaque V2, V1 that ml_dtypes writes, and they are written as u2 and u1.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <cosmati/tensor.h>

#include "tools/interrupt.h"

namespace cosmati::tools {

// An array and whatever keeps its memory alive.
struct Array {
  TensorView view;
  std::shared_ptr<void> memory;
  bool opaque = false;  // the file says V1 or V2: dtype is u8 or u16 until somebody says which type the bytes are
};

// Dense, row-major, 64-byte aligned, every byte 0xff (NaN in every floating type), so that what nobody stores is seen.
// Throws Error{bad_argument} where the shape is negative or its size overflows; `what` names the array in the message.
Array make_array(DType dtype, const std::vector<std::int64_t>& shape, const std::string& what);
// A dense row-major copy of any view.
Array dense_copy(const TensorView& view, const std::string& what);

// Throws Error{bad_file} that names the path and what is wrong.
Array read_npy(const std::string& path);

// Throws Error{bad_file} where something other than a regular file is at `path`: renaming a result over it would take the place
// of a device, a pipe or a folder.
void require_replaceable(const std::string& path);

// A file written completely under a temporary name in the same folder. commit() renames it to `path`; without it the temporary
// is removed.
class NpyWriter {
 public:
  NpyWriter(std::string path, const TensorView& view);
  ~NpyWriter();
  NpyWriter(NpyWriter&& other) noexcept;
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  NpyWriter& operator=(NpyWriter&&) = delete;
  void commit();

 private:
  std::string path_, temporary_;
  std::unique_ptr<WhenInterrupted> removal_;
};

// Calls visit(element) for every element of a view, the last dimension fastest; `element` points at its bytes.
template <class Visit>
void for_each_element(const TensorView& view, Visit&& visit) {
  if (view.elements() == 0) return;
  const int rank = view.rank();
  std::vector<std::int64_t> strides = view.strides, at(static_cast<std::size_t>(rank), 0);
  if (strides.empty()) {
    strides.assign(static_cast<std::size_t>(rank), 1);
    for (int d = rank - 2; d >= 0; --d) strides[d] = strides[d + 1] * view.shape[d + 1];
  }
  const char* row = static_cast<const char*>(view.data);
  const int bytes = byte_size(view.dtype);
  while (true) {
    if (rank == 0) {
      visit(row);
      return;
    }
    for (std::int64_t i = 0; i < view.shape[rank - 1]; ++i) visit(row + i * strides[rank - 1] * bytes);
    int d = rank - 2;
    for (; d >= 0; --d) {
      row += strides[d] * bytes;
      if (++at[d] < view.shape[d]) break;
      row -= strides[d] * view.shape[d] * bytes;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace cosmati::tools
