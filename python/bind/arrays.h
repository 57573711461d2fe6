// Arrays of any library as views: NumPy's and other buffers, and everything with __dlpack__. Nothing is copied; what was borrowed
// is given back exactly once, when its Array goes. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/device.h>
#include <cosmati/tensor.h>
#include <optional>
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

  // The same array copied to the host, once the producer's work so far has finished; its strides stay.
  TensorView on_host(const TensorView& view);

  TensorView view;
  Producer producer = Producer::other;
  std::optional<int> gpu;  // of CUDA, in whose memory it lies; else in the host's
  void* stream = nullptr;  // of the driver, on which the producer puts its work for that GPU

 private:
  void borrow_buffer(nb::handle object, const std::string& parameter);
  void borrow_dlpack(nb::handle object, const std::string& parameter);
  void take(dlpack::ManagedVersioned* managed, nb::handle object, const std::string& parameter);
  void read(const dlpack::Tensor& tensor, nb::handle object, const std::string& parameter);
  void place(std::int64_t type, std::int64_t id, nb::handle object, const std::string& parameter);
  void release();

  enum class Held : std::uint8_t { nothing, buffer, managed, versioned } held_ = Held::nothing;
  Py_buffer buffer_{};
  void* managed_ = nullptr;
  std::vector<char> host_;
};

// What NumPy, torch and the array API call a dtype: "float32", "bfloat16".
std::string array_name(DType dtype);

// Where a new array lies, and whose it is: of the library of `like` on a GPU; in the host's memory torch's or NumPy's.
struct Beside {
  nb::handle like;  // may be null
  Producer producer = Producer::numpy;
  std::optional<int> gpu;
};
std::string device_name(std::optional<int> gpu);
// Uninitialised.
nb::object allocate(DType dtype, const std::vector<std::int64_t>& shape, const Beside& beside, const std::string& parameter);
// What is handed to the caller for an array that allocate() made: itself, or the same values as an array of the library of
// `beside.like`.
nb::object as_array_of(const Beside& beside, nb::object made);

}  // namespace cosmati::python
