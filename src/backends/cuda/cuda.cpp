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
    "extern \"C\" __global__ void",
    "blockIdx.x * i64(blockDim.x) + threadIdx.x",
    "gridDim.x * i64(blockDim.x)",
};

}  // namespace

std::optional<std::string> absent() {
  if (auto why = gpu::absent()) return why;
  return nvrtc_absent();
}

std::string source(const kernel::Kernel& k) { return clike::source(k, dialect); }

std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const gpu::Gpu& gpu) {
  std::vector<std::string> functions;
  for (std::size_t i = 0; i < k.phases.size(); ++i) functions.push_back(clike::function_name(k, i));
  return gpu.load(k, machine_code(source(k), k.name, gpu.architecture()), functions);
}

}  // namespace cosmati::cuda
