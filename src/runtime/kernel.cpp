// The public face of a kernel, and whether arguments are what it was made for.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel.h"

#include <fmt/format.h>

namespace cosmati {

const std::string& Kernel::name() const { return impl_->image.name; }
const std::string& Kernel::plan() const { return impl_->image.plan; }
const std::string& Kernel::explain() const { return impl_->image.explanation; }
const std::vector<std::string>& Kernel::domain() const { return impl_->image.domain; }

namespace runtime {

plan::Facts facts_of(const std::vector<TensorView>& tensors, const Aliases& aliases) {
  plan::Facts facts;
  for (const TensorView& view : tensors) {
    std::vector<bool> unit;
    for (std::size_t d = 0; d < view.shape.size(); ++d) unit.push_back(view.shape[d] <= 1 || view.strides[d] == 1);
    facts.unit_stride.push_back(std::move(unit));
  }
  for (const auto& pair : aliases) facts.aliases.insert(pair);
  return facts;
}

plan::Facts relied_on(plan::Facts facts, const std::vector<TensorView>& tensors) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::vector<bool>& unit = facts.unit_stride[t];
    std::optional<std::size_t> kept;
    for (std::size_t d = 0; d < unit.size(); ++d)
      if (unit[d] && (!kept || tensors[t].shape[d] > 1 || tensors[t].shape[*kept] <= 1)) kept = d;
    for (std::size_t d = 0; d < unit.size(); ++d) unit[d] = d == kept;
  }
  return facts;
}

std::optional<std::string> outside_domain(const Kernel::Impl& kernel, const ir::Program& program, const plan::Facts& facts) {
  for (std::size_t t = 0; t < program.tensors.size(); ++t)
    for (std::size_t d = 0; d < program.tensors[t].dims.size(); ++d)
      if (kernel.facts.unit_stride[t][d] && !facts.unit_stride[t][d])
        return fmt::format("stride({}, {}) == 1 or extent <= 1", program.tensors[t].name, d);
  for (const auto& [in, out] : kernel.facts.aliases)
    if (!facts.aliases.contains({in, out})) return fmt::format("{} is exactly {}", program[out].name, program[in].name);
  for (const auto& [in, out] : facts.aliases)
    if (!kernel.facts.aliases.contains({in, out}))
      return fmt::format("{} does not share memory with {}", program[out].name, program[in].name);
  return std::nullopt;
}

bool is_aligned(const TensorView& view) { return reinterpret_cast<std::uintptr_t>(view.data) % kernel::aligned_bytes == 0; }

kernel::Shape shape_of(const ir::Program& program, const oracle::Inputs& inputs) {
  kernel::Shape shape{inputs.extents, {}, {}, {}};
  for (const TensorView& view : inputs.tensors) {
    shape.strides.push_back(view.strides);
    shape.unaligned.push_back(!is_aligned(view));
  }
  for (std::size_t s = 0; s < inputs.scalars.size(); ++s)
    shape.scalars.push_back(kernel::param_bits(program.scalars[s].dtype, inputs.scalars[s]));
  return shape;
}

}  // namespace runtime
}  // namespace cosmati
