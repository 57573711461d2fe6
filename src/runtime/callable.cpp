// One call: bound and checked, or known from before; then run.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/callable.h"

#include "runtime/within_memory.h"

namespace cosmati::runtime {

std::shared_ptr<const Prepared> Callable::prepare(Matched matched) {
  thread_local Form form;
  form_of(matched, form);
  if (auto known = table_.find(form, matched)) {
    known->check_contracts(matched, device.impl()->gpu.get());
    return known;
  }
  const Bound bound = bind(instances, matched, {.gpu = device.impl()->gpu.get()});
  auto kernel = kernel_of(bound, facts_of(bound.inputs.tensors, bound.aliases));
  auto made = std::make_shared<const Prepared>(form, bound, matched, std::move(kernel));
  table_.keep(made);
  return made;
}

void Callable::call(Matched matched, const Fraction& progress) {
  const std::shared_ptr<const Prepared> prepared = prepare(matched);
  kernel::Launch launch = prepared->pattern();
  prepared->fill(matched, launch);
  Scratch scratch;
  if (prepared->scratch_bytes() > 0) scratch = Scratch(device.impl()->scratch, prepared->scratch_bytes());
  prepared->place_scratch(scratch.data(), launch);
  launch.progress = progress;
  prepared->run(matched, launch, nullptr);
}

void Callable::call_in_order(Matched given) {
  const std::size_t count = signature().parameters.size();
  if (given.size() >= count) return within_memory(instances.program(), [&] { call(given); });
  std::vector<const Argument*> matched(given.begin(), given.end());
  matched.resize(count, nullptr);
  within_memory(instances.program(), [&] { call(matched); });
}

}  // namespace cosmati::runtime
