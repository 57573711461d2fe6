// One call: bound and checked, or known from before; then run.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/callable.h"

#include <fmt/format.h>

#include <cosmati/error.h>

#include "runtime/within_memory.h"

namespace cosmati::runtime {

namespace {

std::string label(const Device::Impl& device) {
  return device.gpu ? fmt::format("{}:{}", device.name, device.gpu->index()) : device.name;
}

}  // namespace

std::shared_ptr<const Prepared> Callable::prepare(Matched matched, const kernel::Queue* queue) {
  thread_local Form form;
  const gpu::Gpu* gpu = device.impl()->gpu.get();
  const OnGpu on{gpu, gpu ? static_cast<const gpu::StreamQueue*>(queue) : nullptr};
  form_of(matched, form);
  if (auto known = table_.find(form, matched)) {
    known->check_contracts(matched, on);
    return known;
  }
  const Bound bound = bind(instances, matched, {.on = on});
  auto kernel = kernel_of(bound, facts_of(bound.inputs.tensors, bound.aliases));
  auto made = std::make_shared<const Prepared>(form, bound, matched, std::move(kernel));
  table_.keep(made);
  return made;
}

void Callable::call(Matched matched, const kernel::Queue* queue, const Fraction& progress) {
  const std::shared_ptr<const Prepared> prepared = prepare(matched, queue);
  kernel::Launch launch = prepared->pattern();
  prepared->fill(matched, launch);
  Scratch scratch;
  if (prepared->scratch_bytes() > 0) scratch = Scratch(scratch_behind(queue), prepared->scratch_bytes());
  prepared->place_scratch(scratch.data(), launch);
  launch.progress = progress;
  prepared->run(matched, launch, queue);
}

// A launch on a stream of a GPU is still to run when its call returns: its scratch goes back in the order of the stream.
std::shared_ptr<ScratchPool> Callable::scratch_behind(const kernel::Queue* queue) const {
  const std::shared_ptr<const gpu::Gpu>& gpu = device.impl()->gpu;
  if (!gpu || !queue) return device.impl()->scratch;
  const auto* stream = static_cast<const gpu::StreamQueue*>(queue);
  return std::make_shared<ScratchPool>(Allocator{[gpu, stream](std::size_t bytes) { return gpu->allocate(bytes, stream); },
                                                 [gpu, stream](void* data) { gpu->free(data, stream); }});
}

const kernel::Queue* Callable::queue_of(const Stream& stream) const {
  const Device::Impl& own = *device.impl();
  const Device::Impl& other = *stream.impl()->device;
  if (other.kind != own.kind || (own.gpu && own.gpu->index() != other.gpu->index()))
    throw Error(ErrorCode::bad_argument, {},
                fmt::format("{} runs on the device {}, and is put on a stream of {}", signature().name, label(own), label(other)),
                "use a stream of its own device");
  return stream.impl()->queue.get();
}

void Callable::call_in_order(Matched given, const kernel::Queue* queue) {
  const std::size_t count = signature().parameters.size();
  if (given.size() >= count) return within_memory(instances.program(), [&] { call(given, queue); });
  std::vector<const Argument*> matched(given.begin(), given.end());
  matched.resize(count, nullptr);
  within_memory(instances.program(), [&] { call(matched, queue); });
}

}  // namespace cosmati::runtime
