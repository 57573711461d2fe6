// Prepared: everything about a call that is the same for all arguments of one form, so that a repeated call only puts in
// addresses and scalars and checks what depends on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/launch.h"
#include "runtime/bind.h"
#include "runtime/device.h"
#include "runtime/kernel.h"

namespace cosmati::runtime {

// Dtypes, shapes, strides, which arguments are given and whether they have memory, as numbers: equal for equal forms.
using Form = std::vector<std::int64_t>;
void form_of(Matched matched, Form& form);

class Prepared {
 public:
  Prepared(Form form, const Bound& bound, Matched matched, std::shared_ptr<const Kernel::Impl> kernel);

  const Form& form() const { return form_; }
  const std::shared_ptr<const Kernel::Impl>& kernel() const { return kernel_; }
  const std::shared_ptr<const Instance>& instance() const { return instance_; }

  // Whether arguments of this form have the same values of scalars that decide about extents, and the same overlaps. Then what
  // was checked for the arguments that made it holds for these, but for contracts.
  bool fits(Matched matched) const;
  void check_contracts(Matched matched, const OnGpu& on) const;  // throws Error{contract_broken}
  bool has_contracts() const { return instance_->contracts; }

  // The launch of arguments that fit. Scratch buffers are left empty.
  const kernel::Launch& pattern() const { return pattern_; }
  void fill(Matched matched, kernel::Launch& launch) const;

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void place_scratch(void* memory, kernel::Launch& launch) const;  // any alignment

  // fill() and place_scratch() come first. The oracle reads the arguments themselves.
  void run(Matched matched, const kernel::Launch& launch, const kernel::Queue* queue) const;

 private:
  struct Tensor {
    std::uint32_t parameter;
    Reach reach;
    bool written;
  };
  struct Scalar {
    std::uint32_t parameter, index;
    std::uint32_t param;  // of the kernel
  };
  struct Decided {
    std::uint32_t parameter, index;
    ops::Scalar value;
  };
  struct Piece {
    std::uint32_t buffer;
    std::size_t offset;
    std::int64_t elements;
  };
  void lay_out_scratch(int workers);
  oracle::Inputs inputs(Matched matched) const;
  const TensorView& view(Matched matched, std::uint32_t tensor) const {
    return std::get<TensorView>(*matched[tensors_[tensor].parameter]);
  }

  const Form form_;
  const std::shared_ptr<const Instance> instance_;
  const std::shared_ptr<const Kernel::Impl> kernel_;
  oracle::Inputs inputs_;  // addresses and values that may change are those of the first call
  kernel::Launch pattern_;
  std::vector<Tensor> tensors_;
  std::vector<Scalar> scalars_;
  std::vector<Decided> decided_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> buffers_;  // of the kernel, and its tensor
  Aliases aliases_;
  std::vector<Piece> scratch_;
  std::size_t scratch_bytes_ = 0;
};

// The latest forms of a function. Thread-safe.
class PreparedTable {
 public:
  std::shared_ptr<const Prepared> find(const Form& form, Matched matched) const;
  void keep(std::shared_ptr<const Prepared> prepared);

 private:
  static constexpr std::size_t sets = 32, ways = 4;
  std::shared_ptr<const Prepared> kept_[sets][ways];  // the latest first
};

}  // namespace cosmati::runtime
