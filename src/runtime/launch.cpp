// Launches: arguments that were checked once, and their exchange.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "runtime/callable.h"
#include "runtime/device.h"
#include "runtime/within_memory.h"

namespace cosmati {

using runtime::Callable;
using runtime::Prepared;

struct Launch::Impl {
  explicit Impl(std::shared_ptr<Callable> callable) : callable(std::move(callable)) {}

  // The arguments, each where `matched` points.
  void take(std::vector<std::unique_ptr<const Argument>> given) {
    arguments = std::move(given);
    matched.clear();
    for (const auto& argument : arguments) matched.push_back(argument.get());
  }

  std::shared_ptr<Callable> callable;
  std::vector<std::unique_ptr<const Argument>> arguments;  // by parameter, null where left out
  std::vector<const Argument*> matched;
  std::shared_ptr<const Prepared> prepared;
  kernel::Launch launch;
  runtime::Scratch own;
  void* lent = nullptr;
  std::size_t lent_bytes = 0;
};

namespace {

void check_lent(const Prepared& prepared, const gpu::Gpu* gpu, const void* memory, std::size_t bytes) {
  if (gpu && bytes > 0 && !gpu->holds(memory))
    throw Error(ErrorCode::bad_argument, {},
                fmt::format("the scratch lent to {} is memory of the host", prepared.kernel()->image.name),
                "lend memory of the device, or none");
  if (bytes < prepared.scratch_bytes())
    throw Error(ErrorCode::bad_argument, {},
                fmt::format("{} needs {} bytes of scratch, but {} are lent", prepared.kernel()->image.name,
                            prepared.scratch_bytes(), bytes),
                "lend scratch_bytes() bytes, or none");
}

// What has changed between two lists of arguments so that it is another kernel, for a message.
std::string changed_type(const language::Signature& signature, runtime::Matched before, runtime::Matched after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto* was = before[i] ? std::get_if<TensorView>(before[i]) : nullptr;
    const auto* is = after[i] ? std::get_if<TensorView>(after[i]) : nullptr;
    if (!was || !is || (was->dtype == is->dtype && was->rank() == is->rank())) continue;
    return fmt::format("{} was {} of {} dimensions and is {} of {}", signature.parameters[i].name, name(was->dtype), was->rank(),
                       name(is->dtype), is->rank());
  }
  return "other types";
}

// The arguments `matched`, known to be of this kernel's program, as a launch of this kernel; or an Error.
std::shared_ptr<const Prepared> same_kernel(Callable& callable, const Prepared& before, runtime::Matched old,
                                            runtime::Matched matched) {
  runtime::Form form;
  runtime::form_of(matched, form);
  const runtime::Bound bound = runtime::bind(callable.instances, matched, {.on = {callable.device.impl()->gpu.get()}});
  const std::string& name = before.kernel()->image.name;
  if (bound.instance != before.instance())
    throw Error(ErrorCode::bad_argument, callable.signature().where,
                fmt::format("this launch of {} is of another kernel: {}", name, changed_type(callable.signature(), old, matched)),
                "prepare another launch");
  const plan::Facts facts = runtime::facts_of(bound.inputs.tensors, bound.aliases);
  if (const auto condition = runtime::outside_domain(*before.kernel(), bound.instance->inlined, facts))
    throw Error(ErrorCode::bad_argument, callable.signature().where,
                fmt::format("the kernel of this launch of {} is for arguments where {}", name, *condition),
                "prepare another launch");
  return std::make_shared<const Prepared>(std::move(form), bound, matched, before.kernel());
}

}  // namespace

void Launch::operator()() const {
  const std::shared_ptr<const Impl> impl = impl_;
  impl->prepared->run(impl->matched, impl->launch, nullptr);
}

void Launch::operator()(const Stream& stream) const {
  const std::shared_ptr<const Impl> impl = impl_;
  impl->prepared->run(impl->matched, impl->launch, impl->callable->queue_of(stream));
}

void Launch::rebind(const std::string& name, const Argument& argument) { rebind(Arguments{{name, argument}}); }

void Launch::rebind(const Arguments& arguments) {
  Impl& impl = *impl_;
  const std::vector<const Argument*> exchanged = runtime::match(impl.callable->signature(), arguments);
  std::vector<const Argument*> matched = impl.matched;
  bool contracts = false;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (!exchanged[i]) continue;
    matched[i] = exchanged[i];
    const auto [is_tensor, index] = impl.prepared->instance()->program.parameters[i];
    if (!is_tensor) continue;
    const ir::Contract& contract = impl.prepared->instance()->program.tensors[index].contract;
    contracts = contracts || contract.lo || contract.hi || contract.sorted || contract.distinct;
  }
  runtime::within_memory(impl.callable->instances.program(), [&] {
    runtime::Form form;
    runtime::form_of(matched, form);
    std::shared_ptr<const Prepared> prepared = impl.prepared;
    if (form != prepared->form() || !prepared->fits(matched))
      prepared = same_kernel(*impl.callable, *impl.prepared, impl.matched, matched);
    else if (contracts)
      prepared->check_contracts(matched, {impl.callable->device.impl()->gpu.get()});
    kernel::Launch launch = prepared->pattern();
    prepared->fill(matched, launch);
    runtime::Scratch own;
    const bool more = prepared->scratch_bytes() > impl.prepared->scratch_bytes();
    if (impl.lent) {
      check_lent(*prepared, impl.callable->device.impl()->gpu.get(), impl.lent, impl.lent_bytes);
    } else if (more) {
      own = runtime::Scratch(impl.callable->device.impl()->scratch, prepared->scratch_bytes());
    }
    prepared->place_scratch(impl.lent ? impl.lent : more ? own.data() : impl.own.data(), launch);
    std::vector<std::unique_ptr<const Argument>> given(matched.size());
    for (std::size_t i = 0; i < matched.size(); ++i)
      if (exchanged[i]) given[i] = std::make_unique<const Argument>(*exchanged[i]);
    // From here on nothing fails.
    for (std::size_t i = 0; i < matched.size(); ++i)
      if (!exchanged[i]) given[i] = std::move(impl.arguments[i]);
    impl.take(std::move(given));
    impl.prepared = std::move(prepared);
    impl.launch = std::move(launch);
    if (more && !impl.lent) impl.own = std::move(own);
  });
}

std::size_t Launch::scratch_bytes() const { return impl_->prepared->scratch_bytes(); }

void Launch::scratch(void* memory, std::size_t bytes) {
  Impl& impl = *impl_;
  const std::size_t needed = impl.prepared->scratch_bytes();
  if (memory) {
    check_lent(*impl.prepared, impl.callable->device.impl()->gpu.get(), memory, bytes);
    impl.own = {};
  } else if (needed > 0) {
    impl.own = runtime::Scratch(impl.callable->device.impl()->scratch, needed);
  }
  impl.lent = memory;
  impl.lent_bytes = memory ? bytes : 0;
  impl.prepared->place_scratch(memory ? memory : impl.own.data(), impl.launch);
}

Kernel Launch::kernel() const { return Kernel(impl_->prepared->kernel()); }

Launch runtime::make_launch(std::shared_ptr<Callable> callable, Matched arguments) {
  auto impl = std::make_shared<Launch::Impl>(std::move(callable));
  std::vector<std::unique_ptr<const Argument>> given;
  for (const Argument* argument : arguments) given.push_back(argument ? std::make_unique<const Argument>(*argument) : nullptr);
  if (given.size() < impl->callable->signature().parameters.size()) given.resize(impl->callable->signature().parameters.size());
  impl->take(std::move(given));
  within_memory(impl->callable->instances.program(), [&] {
    impl->prepared = impl->callable->prepare(impl->matched);
    impl->launch = impl->prepared->pattern();
    impl->prepared->fill(impl->matched, impl->launch);
    if (const std::size_t bytes = impl->prepared->scratch_bytes(); bytes > 0)
      impl->own = Scratch(impl->callable->device.impl()->scratch, bytes);
    impl->prepared->place_scratch(impl->own.data(), impl->launch);
  });
  return Launch(std::move(impl));
}

}  // namespace cosmati
