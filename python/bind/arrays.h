// Arrays of any library as views: NumPy's and other buffers, and everything with __dlpack__. Nothing is copied; what was borrowed
// is given back exactly once, when its Array goes. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/tensor.h>
#include <string>
#include <vector>

#include "bind/dlpack.h"

namespace cosmati::python {

namespace nb = nanobind;

// Whose array an argument is: decides who allocates outputs.
enum class Producer : std::uint8_t { numpy, torch, other };

// A borrowed array. Move-only; made and destroyed with the GIL held.
class Array {
 public:
  Array() = default;
  // Throws Error{bad_argument} that names `parameter` and the rule that the object breaks.
  Array(nb::handle object, const std::string& parameter);
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept;
  ~Array() { release(); }

  TensorView view;
  Producer producer = Producer::other;

 private:
  void borrow_buffer(nb::handle object, const std::string& parameter);
  void borrow_dlpack(nb::handle object, const std::string& parameter);
  void take(dlpack::ManagedVersioned* managed, const std::string& parameter);
  void read(const dlpack::Tensor& tensor, const std::string& parameter);
  void release();

  enum class Held : std::uint8_t { nothing, buffer, managed, versioned } held_ = Held::nothing;
  Py_buffer buffer_{};
  void* managed_ = nullptr;
};

// What NumPy, torch and the array API call a dtype: "float32", "bfloat16".
std::string array_name(DType dtype);

// A new array of the library of `like` (NumPy without one), uninitialised. `like` may be null.
nb::object allocate(DType dtype, const std::vector<std::int64_t>& shape, Producer producer, const std::string& parameter);
// What is handed to the caller for an array that allocate() made: itself, or the same values as an array of the library of
// `like`.
nb::object as_array_of(nb::handle like, nb::object made);

}  // namespace cosmati::python
