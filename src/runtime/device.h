// What a Device is inside: which executor it makes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <cosmati/runtime.h>

#include "kernel/launch.h"

namespace cosmati {

struct Device::Impl {
  enum class Kind : std::uint8_t { oracle, sim, cpu } kind;
  std::string name;
  int threads = 0;
  // `k` is expanded. The oracle has no kernels.
  std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k) const;
};

}  // namespace cosmati
