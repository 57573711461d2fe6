// Functions: bind, plan, compile what is new, launch; and what can be asked about them.
// SPDX-License-Identifier: Apache-2.0
#include "library/function.h"

#include <fmt/format.h>

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/registry.h"
#include "language/source.h"
#include "library/environment.h"
#include "library/proofs.h"
#include "lower/lower.h"
#include "plan/choices.h"
#include "plan/picture.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "runtime/device.h"
#include "runtime/within_memory.h"
#include "support/deep_stack.h"

namespace cosmati {

using runtime::Bound;
using runtime::Matched;
using runtime::within_memory;

Function::Impl::Impl(Program program, Device on, Options with)
    : Callable({std::move(program), library::proofs()}, std::move(on)), options(std::move(with)), kernels(device, options) {
  backends::require(device.name());
  if (const place::Verdict fit = plan::values_fit({options.knobs.begin(), options.knobs.end()}); !fit)
    throw plan::refusal(fit.refused());
  if (options.plan) library::warn_of_another_environment(*options.plan);
}

Function::Impl::Sketch Function::Impl::sketch(Matched matched) const {
  Bound bound = runtime::bind(instances, matched, {true, false});
  const ir::Program& program = bound.instance->program;
  const std::vector<TensorView>& tensors = bound.inputs.tensors;
  plan::Facts facts =
      runtime::relied_on(runtime::facts_of(tensors, runtime::check_memory(program, instances.proofs(), tensors)), tensors);
  kernel::Shape shape = runtime::shape_of(program, bound.inputs);
  return {std::move(bound), std::move(facts), std::move(shape)};
}

Function::Function(Program program, Device device, Options options)
    : impl_(std::make_shared<Impl>(std::move(program), std::move(device), std::move(options))) {}

// A call holds what it uses: the object may die meanwhile.
void Function::operator()(const Arguments& arguments) const { call(runtime::match(impl_->signature(), arguments)); }

void Function::operator()(const Arguments& arguments, const Fraction& progress) const {
  const std::shared_ptr<Impl> impl = impl_;
  const std::vector<const Argument*> matched = runtime::match(impl->signature(), arguments);
  within_memory(impl->instances.program(), [&] { impl->call(matched, nullptr, progress); });
}

void Function::call(std::span<const Argument* const> in_declared_order) const {
  const std::shared_ptr<Impl> impl = impl_;
  impl->call_in_order(in_declared_order, nullptr);
}

void Function::call(std::span<const Argument* const> in_declared_order, const Stream& stream) const {
  const std::shared_ptr<Impl> impl = impl_;
  impl->call_in_order(in_declared_order, impl->queue_of(stream));
}

Launch Function::prepare(const Arguments& arguments) const {
  return runtime::make_launch(impl_, runtime::match(impl_->signature(), arguments));
}

Kernel Function::kernel(const Arguments& arguments) const {
  const std::shared_ptr<Impl> impl = impl_;
  const auto [bound, facts, shape] = impl->sketch(runtime::match(impl->signature(), arguments));
  return Kernel(impl->kernels.get(*bound.instance, facts, shape).kernel);
}

std::vector<Function::OutputShape> Function::missing_outputs(const Arguments& arguments, const Extents& extents) const {
  return missing_outputs(runtime::match(impl_->signature(), arguments), extents);
}

std::vector<Function::OutputShape> Function::missing_outputs(std::span<const Argument* const> in_declared_order,
                                                             const Extents& extents) const {
  Bound bound = runtime::bind(impl_->instances, in_declared_order, {true, false, &extents});
  std::vector<OutputShape> shapes;
  for (std::uint32_t t : bound.missing)
    shapes.push_back({bound.instance->program.tensors[t].name, bound.inputs.tensors[t].dtype, bound.inputs.tensors[t].shape});
  return shapes;
}

std::vector<Function::KnobChoices> Function::knobs(const Arguments& arguments) const {
  const auto [bound, facts, shape] = impl_->sketch(runtime::match(impl_->signature(), arguments));
  std::vector<KnobChoices> all;
  auto found = support::on_deep_stack([&] { return plan::choices(bound.instance->inlined, impl_->kernels.target(), facts); });
  for (plan::Choice& choice : found)
    all.push_back({std::move(choice.knob), std::move(choice.values), std::move(choice.automatic)});
  return all;
}

std::vector<std::string> Function::facts(const Arguments& arguments) const {
  const auto [bound, facts, shape] = impl_->sketch(runtime::match(impl_->signature(), arguments));
  return plan::domain(bound.instance->inlined, impl_->kernels.planned(*bound.instance, facts, shape));
}

std::string Function::plan(const Arguments& arguments) const {
  const auto [bound, facts, shape] = impl_->sketch(runtime::match(impl_->signature(), arguments));
  return plan::to_json(bound.instance->inlined, impl_->kernels.planned(*bound.instance, facts, shape));
}

std::string Function::explain(const Arguments& arguments) const {
  const auto [bound, facts, shape] = impl_->sketch(runtime::match(impl_->signature(), arguments));
  return plan::to_text(bound.instance->inlined, impl_->kernels.planned(*bound.instance, facts, shape));
}

std::string Function::picture(const Arguments& arguments) const {
  const auto [bound, facts, shape] = impl_->sketch(runtime::match(impl_->signature(), arguments));
  return plan::to_svg(bound.instance->inlined, impl_->kernels.planned(*bound.instance, facts, shape), shape);
}

std::string Function::Impl::emit(const Sketch& sketch, const std::string& as) {
  const auto& [bound, facts, shape] = sketch;
  if (as == "tile") return language::print(bound.instance->program);
  if (as == "cuda") {  // whatever device there is
    const ir::Program& program = bound.instance->inlined;
    const plan::Facts& relied_on = facts;
    const plan::Planner planner(
        program, language::print(bound.instance->program), plan::target_named("cuda"),
        {options.knobs.begin(), options.knobs.end()}, facts,
        [&](const plan::Mapping& mapping) { return kernel::expand(lower::lower(program, mapping, relied_on), cuda::native); },
        plan::Planner::Search::all);
    const plan::Plan on_gpu = planner.plan(shape);
    std::string comment = "// " + plan::to_text(program, on_gpu);
    comment.pop_back();
    for (std::size_t at = 0; (at = comment.find('\n', at)) != comment.npos; at += 4) comment.replace(at, 1, "\n// ");
    return comment + "\n" + cuda::source(kernel::expand(kernels.lowered(*bound.instance, on_gpu), cuda::native));
  }
  const kernel::Kernel k = kernels.lowered(*bound.instance, kernels.planned(*bound.instance, facts, shape));
  if (as == "kernel") return kernel::print(k);
  if (as == "llvm" || as == "asm") {
    if (const std::string& on = kernels.target().name; on != "cpu")
      throw Error(ErrorCode::bad_argument, {}, fmt::format("{} is what a program becomes on the CPU; this device is {}", as, on),
                  "emit it as kernel, or choose the device cpu");
    backends::require("cpu");
    return cpu::emit(kernel::expand(k, cpu::native()), as);
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("a program is not emitted as `{}`", as),
              "the forms are tile, kernel, llvm, asm, cuda");
}

std::string Function::emit(const Arguments& arguments, const std::string& as) const {
  const Impl::Sketch sketch = impl_->sketch(runtime::match(impl_->signature(), arguments));
  return support::on_deep_stack([&] { return impl_->emit(sketch, as); });
}

std::size_t Function::compiles() const { return impl_->kernels.compiles(); }

}  // namespace cosmati
