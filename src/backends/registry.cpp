// The table of backends. The oracle and the simulator are always built; the CPU needs LLVM.
// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <fmt/format.h>

#include <cosmati/error.h>

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "backends/gpu/gpu.h"
#include "backends/native/native.h"

namespace cosmati::backends {

std::vector<Backend> list() {
  const auto absent = cpu::absent();
  const auto no_gpu = cuda::absent();
  return {{"cpu", !absent, absent ? *absent : native::host_description()},
          {"cuda", !no_gpu, no_gpu ? *no_gpu : gpu::description()},
          {"sim", true, "the kernel IR, interpreted and checked"},
          {"oracle", true, "the meaning of the program in float64"}};
}

void require(const std::string& name) {
  const auto absent = name == "cpu" ? cpu::absent() : name == "cuda" ? cuda::absent() : std::nullopt;
  if (absent)
    throw Error(ErrorCode::backend_absent, {}, fmt::format("the device {} is not available: {}", name, *absent),
                "run on sim or oracle");
}

}  // namespace cosmati::backends
