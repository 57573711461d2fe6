// What a Device and a Stream are inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <cosmati/device.h>

#include "backends/gpu/gpu.h"
#include "backends/native/native.h"
#include "kernel/launch.h"
#include "runtime/scratch.h"

namespace cosmati {

struct Device::Impl {
  enum class Kind : std::uint8_t { oracle, sim, cpu, cuda } kind;
  std::string name;
  native::Options cpu = {};
  std::shared_ptr<const gpu::Gpu> gpu = nullptr;  // cuda
  std::shared_ptr<runtime::ScratchPool> scratch = std::make_shared<runtime::ScratchPool>();
};

struct Stream::Impl {
  std::shared_ptr<Device::Impl> device;
  std::unique_ptr<kernel::Queue> queue;  // null: the device's own
};

}  // namespace cosmati
