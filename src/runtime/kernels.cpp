// Planning, lowering and compiling are plain functions of their inputs; here is only who does them, and once.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.h"

#include <fmt/format.h>

#include "backends/cpu/cpu.h"
#include "lower/lower.h"
#include "runtime/device.h"
#include "support/check.h"

namespace cosmati {

const std::string& Kernel::name() const { return impl_->name; }
const std::string& Kernel::plan() const { return impl_->plan; }
const std::string& Kernel::explain() const { return impl_->explanation; }
const std::vector<std::string>& Kernel::domain() const { return impl_->domain; }

namespace runtime {
namespace {

std::string text_of(const language::Binding& binding, const plan::Facts& facts) {
  std::string text;
  for (const auto& [variable, type] : binding.types) text += fmt::format("{}={},", variable, name(type));
  for (const auto& [pack, count] : binding.packs) text += fmt::format("{}...={},", pack, count);
  for (const auto& dims : facts.unit_stride) {
    for (const bool unit : dims) text += unit ? '1' : '0';
    text += ';';
  }
  for (const auto& [in, out] : facts.aliases) text += fmt::format("{}={},", in.index, out.index);
  return text;
}

kernel::Kernel interface_of(kernel::Kernel k) {
  for (kernel::Phase& phase : k.phases) phase.body.clear();
  k.vars.clear();
  k.stmts.clear();
  return k;
}

}  // namespace

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

plan::Plan Kernels::planned(const Instance& instance, const plan::Facts& facts) const {
  plan::Knobs knobs(options_.knobs.begin(), options_.knobs.end());
  if (options_.plan)
    for (const auto& [knob, value] : plan::knobs_of(*options_.plan)) knobs[knob] = value;
  plan::Plan plan = plan::make_plan(instance.inlined, language::print(instance.program), device_.name(), knobs, facts);
  if (options_.plan) plan::require_same(instance.inlined, plan, *options_.plan);
  return plan;
}

kernel::Kernel Kernels::lowered(const Instance& instance, const plan::Plan& plan) const {
  return lower::lower(instance.inlined, plan.mapping, plan.facts);
}

Kernels::Got Kernels::get(const Instance& instance, const plan::Facts& facts) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& at = slots_[text_of(instance.binding, facts)];
    if (!at) at = std::make_shared<Slot>();
    slot = at;
  }
  std::lock_guard lock(slot->making);
  if (slot->kernel) return {slot->kernel, false};
  Got got = make(instance, facts);
  slot->kernel = got.kernel;
  return got;
}

Kernels::Got Kernels::make(const Instance& instance, const plan::Facts& facts) {
  const plan::Plan plan = planned(instance, facts);
  auto made = std::make_shared<Kernel::Impl>();
  made->name = instance.program.name;
  made->plan = plan::to_json(instance.inlined, plan);
  made->explanation = plan::to_text(instance.inlined, plan);
  made->domain = plan::domain(instance.inlined, plan);
  made->facts = facts;
  const Device::Impl& device = *device_.impl();
  if (device.kind == Device::Impl::Kind::oracle) return {made, false};
  if (options_.jit == Jit::forbid) {
    std::string domain;
    for (const std::string& condition : made->domain) domain += (domain.empty() ? "" : "; ") + condition;
    throw Error(ErrorCode::not_compiled, {},
                fmt::format("{} is not compiled for these facts, and compiling is forbidden: {}", made->name, domain),
                "warm() a function that may compile with arguments like these and the same cache");
  }
  const kernel::Kernel k = lowered(instance, plan);
  made->interface = interface_of(k);
  kernel::Kernel expanded = kernel::expand(k);
  kernel::verify(expanded, "expand");
  made->executable = device.kind == Device::Impl::Kind::sim ? kernel::simulate(expanded) : cpu::compile(expanded, device.cpu);
  ++compiles_;
  return {made, true};
}

}  // namespace runtime
}  // namespace cosmati
