// Packages: programs that were compiled ahead of time. Function::package and `cosmati package` write one; opening and running it
// needs neither LLVM nor isl, so libcosmati_runtime is enough.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cosmati/device.h>
#include <cosmati/error.h>
#include <cosmati/export.h>
#include <cosmati/launch.h>
#include <cosmati/tensor.h>

namespace cosmati {

// One program compiled for one kind of arguments: their dtypes, ranks and the facts of its domain; any extents. A handle; copies
// are the same package, and launches keep it. Thread-safe. A package is code: open what you would link.
class COSMATI_API Package {
 public:
  // Throws Error before anything of the package runs: bad_file where it is missing, incomplete, damaged, of another format, or
  // its parts do not belong together; backend_absent where it is for a device or processor that this is not.
  static Package open(const std::string& directory, Device device = Device::pick());

  // Runs and waits, with every check of Function and the same errors; bad_argument for arguments outside the package's domain.
  void operator()(const Arguments& arguments) const;
  // The arguments in declared order; scalars with defaults may be left out at the end.
  template <class... A>
    requires(sizeof...(A) > 0 && (std::convertible_to<A, Argument> && ...))
  void operator()(A&&... arguments) const {
    const std::optional<Argument> given[] = {Argument(std::forward<A>(arguments))...};
    call(given);
  }
  void call(std::span<const std::optional<Argument>> in_declared_order) const;

  Launch prepare(const Arguments& arguments) const;
  Launch prepare(std::span<const std::optional<Argument>> in_declared_order) const;

  Kernel kernel() const;                // its name, plan, explanation and domain
  const std::string& identity() const;  // 32 hexadecimal digits, the same for the same code
  // For generated headers. Throws Error{bad_file} where this is another package than the header's.
  const Package& require(std::string_view identity) const;

  struct COSMATI_HIDDEN Impl;

 private:
  explicit Package(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// What generated headers are written with, and where their functions are.
namespace packaged {

// One number a dimension: {37, 1537}.
template <std::size_t rank>
struct PerDimension {
  template <std::convertible_to<std::int64_t>... N>
    requires(sizeof...(N) == rank)
  PerDimension(N... numbers) : of{static_cast<std::int64_t>(numbers)...} {}
  std::array<std::int64_t, rank> of;
};

// An argument of a generated function, which fixes its dtype and rank: {x, {37, 1537}}. T: an element, constant where the array
// is only read; the bits of one where C++ has no such type.
template <class T, DType dtype, std::size_t rank>
struct Array {
  T* data;
  PerDimension<rank> shape;
  std::optional<PerDimension<rank>> strides = {};  // in elements; absent: dense row-major

  operator Argument() const {
    static_assert(sizeof(T) == byte_size(dtype));
    TensorView view(const_cast<std::remove_const_t<T>*>(data), dtype, {shape.of.begin(), shape.of.end()});
    if (strides) view.strides.assign(strides->of.begin(), strides->of.end());
    view.read_only = std::is_const_v<T>;
    return view;
  }
};

}  // namespace packaged
}  // namespace cosmati
