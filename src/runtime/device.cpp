// The devices there are, by name; their streams and memory.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include <cosmati/error.h>
#include <cosmati/version.h>

#include "support/memory.h"

namespace cosmati {

Device Device::pick() {
  const char* wanted = std::getenv("COSMATI_DEVICE");
  if (wanted && *wanted) return named(wanted);
  return cpu();
}

Device Device::named(const std::string& name) {
  if (name == "cpu") return cpu();
  if (name == "sim") return sim();
  if (name == "oracle") return oracle();
  if (name == "cuda") return cuda();
  int index = 0;
  const char* end = name.data() + name.size();
  if (name.starts_with("cuda:"))
    if (const auto [stop, error] = std::from_chars(name.data() + 5, end, index);
        error == std::errc{} && stop == end && index >= 0)
      return cuda(index);
  throw Error(ErrorCode::bad_argument, {}, fmt::format("there is no device {}", name),
              "the devices are cpu, cuda, cuda:1 and so on, sim, oracle");
}

Device Device::cpu(int threads) { return cpu(Executor{}, threads); }

Device Device::cpu(Executor executor, int threads) {
  constexpr int most = 1024;
  if (threads < 0 || threads > most)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("the device cpu cannot have {} threads", threads),
                fmt::format("0 for all cores, or a number up to {}", most));
  return Device(std::make_shared<Impl>(Impl{Impl::Kind::cpu, "cpu", {.threads = threads, .executor = std::move(executor)}}));
}

Device Device::cuda(int index) {
  std::shared_ptr<const gpu::Gpu> gpu = gpu::Gpu::at(index);
  const runtime::Allocator memory = {[gpu](std::size_t bytes) { return gpu->allocate(bytes); },
                                     [gpu](void* data) { gpu->free(data); }};
  return Device(
      std::make_shared<Impl>(Impl{Impl::Kind::cuda, "cuda", {}, std::move(gpu), std::make_shared<runtime::ScratchPool>(memory)}));
}

Device Device::sim() { return Device(std::make_shared<Impl>(Impl{Impl::Kind::sim, "sim"})); }
Device Device::oracle() { return Device(std::make_shared<Impl>(Impl{Impl::Kind::oracle, "oracle"})); }

const std::string& Device::name() const { return impl_->name; }

Stream Device::stream() const { return Stream(std::make_shared<const Stream::Impl>(Stream::Impl{impl_, nullptr})); }

Stream Device::adopt(Executor executor) const {
  if (impl_->kind != Impl::Kind::cpu)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("an executor runs nothing for the device {}", name()),
                "adopt it for the device cpu");
  if (!executor) throw Error(ErrorCode::bad_argument, {}, "the executor to adopt is empty");
  return Stream(
      std::make_shared<const Stream::Impl>(Stream::Impl{impl_, std::make_unique<native::ExecutorQueue>(std::move(executor))}));
}

Stream Device::adopt(void* driver_stream) const {
  if (impl_->gpu)
    return Stream(std::make_shared<const Stream::Impl>(Stream::Impl{impl_, std::make_unique<gpu::StreamQueue>(driver_stream)}));
  throw Error(ErrorCode::bad_argument, {}, fmt::format("the device {} has no driver streams to adopt", name()),
              "adopt an executor, or use stream()");
}

void Stream::wait() const {
  const auto& gpu = impl_->device->gpu;
  if (gpu && impl_->queue) gpu->wait(static_cast<const gpu::StreamQueue&>(*impl_->queue));
}

void Device::copy(void* to, const void* from, std::size_t bytes) const {
  if (impl_->gpu)
    impl_->gpu->copy(to, from, bytes);
  else
    std::memmove(to, from, bytes);
}

Buffer Device::allocate(std::size_t bytes) const {
  try {
    if (impl_->gpu) {
      const std::shared_ptr<const gpu::Gpu> gpu = impl_->gpu;
      return Buffer({gpu->allocate(bytes), [gpu](void* data) { gpu->free(data); }}, bytes);
    }
    if (bytes <= static_cast<std::size_t>(support::machine_memory())) {
      const runtime::Allocator host = runtime::host_memory();
      return Buffer({host.allocate(std::max<std::size_t>(bytes, 1)), host.free}, bytes);
    }
  } catch (const std::bad_alloc&) {
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("the device {} has no {} bytes of memory", name(), bytes));
}

TensorView Buffer::view(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) const {
  return detail::checked_view(TensorView(data(), dtype, std::move(shape), std::move(strides)),
                              bytes_ / static_cast<std::size_t>(byte_size(dtype)));
}

std::string version() { return COSMATI_VERSION; }

}  // namespace cosmati
