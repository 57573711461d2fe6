// The devices there are, by name; their streams and memory.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include <cosmati/error.h>
#include <cosmati/version.h>

#include "support/memory.h"

namespace cosmati {
namespace {

constexpr std::align_val_t alignment{runtime::memory_alignment};

void free_memory(void* data) { ::operator delete(data, alignment); }

}  // namespace

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
  throw Error(ErrorCode::bad_argument, {}, fmt::format("there is no device {}", name), "the devices are cpu, sim, oracle");
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
  throw Error(ErrorCode::backend_absent, {},
              fmt::format("the device cuda:{} is not available: this build of cosmati has no CUDA backend", index),
              "run on cpu, sim or oracle");
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

Stream Device::adopt(void*) const {
  throw Error(ErrorCode::bad_argument, {}, fmt::format("the device {} has no driver streams to adopt", name()),
              "adopt an executor, or use stream()");
}

void Stream::wait() const {}

Buffer Device::allocate(std::size_t bytes) const {
  if (bytes <= static_cast<std::size_t>(support::machine_memory())) {
    if (void* data = ::operator new(bytes > 0 ? bytes : 1, alignment, std::nothrow)) return Buffer({data, free_memory}, bytes);
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("the device {} has no {} bytes of memory", name(), bytes));
}

TensorView Buffer::view(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) const {
  return detail::checked_view(TensorView(data(), dtype, std::move(shape), std::move(strides)),
                              bytes_ / static_cast<std::size_t>(byte_size(dtype)));
}

std::string version() { return COSMATI_VERSION; }

}  // namespace cosmati
