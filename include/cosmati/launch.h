// Arguments, kernels that are ready, and launches: what running code needs, whether it was compiled here or comes from a package.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <cosmati/device.h>
#include <cosmati/export.h>
#include <cosmati/tensor.h>

namespace cosmati {

// A scalar argument keeps the form it was given in; it is converted to the parameter's dtype at launch (a value that does not
// fit is bad_argument).
using Argument = std::variant<TensorView, double, std::int64_t, bool>;
using Arguments = std::vector<std::pair<std::string, Argument>>;
using Extents = std::vector<std::pair<std::string, std::int64_t>>;  // of axes, by name

// Told the fraction done, 0 .. 1, while something long runs; from any thread, in steps of any size. Must not throw,
// but where it is said that this ends the work.
using Fraction = std::function<void(double)>;

// One compiled (facts, plan) of a program for a device. A handle: the code lives as long as any handle, launch or call in
// progress. Immutable, thread-safe.
class COSMATI_API Kernel {
 public:
  const std::string& name() const;
  const std::string& plan() const;                 // canonical JSON: program, target, knobs, domain, hash, mapping, ...
  const std::string& explain() const;              // the same for people
  const std::vector<std::string>& domain() const;  // what arguments must satisfy, one condition a string

  struct COSMATI_HIDDEN Impl;
  explicit Kernel(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// A kernel with its arguments: everything was checked when it was prepared, so running it allocates nothing and checks nothing.
// The arrays must outlive it, and their data must go on to keep the contracts of the program. Moves, does not copy.
// One thread at a time; different launches are independent, and one may be destroyed while another thread still runs it.
class COSMATI_API Launch {
 public:
  Launch(Launch&&) noexcept = default;
  Launch& operator=(Launch&&) noexcept = default;

  void operator()() const;                      // on the device's own stream, and waits
  void operator()(const Stream& stream) const;  // throws Error{bad_argument} for a stream of another device

  // Exchanges arguments, checking what depends on them: types, extents, overlap with the others, contracts on host data, and that
  // the kernel's domain holds. Where it throws Error, nothing has changed. Extents that several arguments share change together.
  void rebind(const std::string& name, const Argument& argument);
  void rebind(const Arguments& arguments);

  // Working memory: by default it is taken from the device's pool and kept. scratch() lends the caller's instead (any alignment;
  // it must outlive the launch and serve no other at the same time), and null gives it back. Throws Error{bad_argument} where it
  // is less than scratch_bytes(), as does a rebind that needs more than was lent.
  std::size_t scratch_bytes() const;
  void scratch(void* memory, std::size_t bytes);

  Kernel kernel() const;

  struct COSMATI_HIDDEN Impl;
  explicit Launch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace cosmati
