// The dialect, and one compilation a kernel.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda.h"

#include <vector>

#include "backends/clike/source.h"
#include "backends/cuda/nvrtc.h"
#include "backends/gpu/driver.h"

namespace cosmati::cuda {
namespace {

constexpr clike::Dialect dialect = {
#include "backends/cuda/prelude.inc"
    ,
    "__device__ inline",
    "extern \"C\" __global__ void __launch_bounds__({})",
    "threadIdx.x",
    "i64(blockIdx.x)",
    "blockDim.x",
    "i64(gridDim.x)",
    "__restrict__ ",
    "__shared__",
    "extern __shared__ __align__(16) u8 chip[];",
};

}  // namespace

std::optional<std::string> absent() {
  if (auto why = gpu::absent()) return why;
  return nvrtc_absent();
}

std::string source(const kernel::Kernel& k) { return clike::source(k, dialect); }

std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const gpu::Gpu& gpu) {
  gpu::Gpu::Code code;
  code.image = machine_code(source(k), k.name, gpu.architecture());
  for (std::size_t i = 0; i < k.phases.size(); ++i) {
    code.functions.push_back(clike::function_name(k, i));
    code.threads.push_back(clike::threads(k.phases[i]));
  }
  code.chip_bytes = [k](const std::vector<std::int64_t>& params) { return clike::chip_bytes(k, params); };
  return gpu.load(k, std::move(code));
}

}  // namespace cosmati::cuda
