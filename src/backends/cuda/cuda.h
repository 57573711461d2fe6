// The CUDA backend: kernel IR as CUDA C++, compiled by NVRTC and run through the driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "backends/gpu/gpu.h"
#include "kernel/kernel.h"

namespace cosmati::cuda {

// Why programs cannot run on a GPU of this machine.
std::optional<std::string> absent();

// What its processors have instructions for, and what its sources write out.
inline constexpr kernel::Native native = {.half = true, .bf16 = true, .exp = true};

// The source of all phases of a kernel whose expansions are written out. Needs neither driver nor device.
std::string source(const kernel::Kernel& k);

// Throws InternalError with the compiler's log.
std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const gpu::Gpu& gpu);

}  // namespace cosmati::cuda
