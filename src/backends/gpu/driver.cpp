// Each function by its symbol; a library that lacks one is as good as absent.
// SPDX-License-Identifier: Apache-2.0
#include "backends/gpu/driver.h"

#include <fmt/format.h>

#include <cosmati/error.h>

#include "backends/gpu/library_file.h"

namespace cosmati::gpu {
namespace {

struct FoundDriver {
  Driver driver = {};
  std::optional<std::string> absent;

  FoundDriver() {
    LibraryFile library({"libcuda.so.1", "libcuda.so"});
    library.find(driver.init, "cuInit");
    library.find(driver.device_count, "cuDeviceGetCount");
    library.find(driver.device, "cuDeviceGet");
    library.find(driver.device_name, "cuDeviceGetName");
    library.find(driver.device_attribute, "cuDeviceGetAttribute");
    library.find(driver.retain_context, "cuDevicePrimaryCtxRetain");
    library.find(driver.release_context, "cuDevicePrimaryCtxRelease_v2");
    library.find(driver.push_context, "cuCtxPushCurrent_v2");
    library.find(driver.pop_context, "cuCtxPopCurrent_v2");
    library.find(driver.synchronize, "cuStreamSynchronize");
    library.find(driver.load_module, "cuModuleLoadData");
    library.find(driver.unload_module, "cuModuleUnload");
    library.find(driver.function, "cuModuleGetFunction");
    library.find(driver.function_attribute, "cuFuncGetAttribute");
    library.find(driver.set_function_attribute, "cuFuncSetAttribute");
    library.find(driver.launch, "cuLaunchKernel");
    library.find(driver.allocate, "cuMemAlloc_v2");
    library.find(driver.free, "cuMemFree_v2");
    library.find(driver.allocate_on, "cuMemAllocAsync");
    library.find(driver.free_on, "cuMemFreeAsync");
    library.find(driver.copy, "cuMemcpy");
    library.find(driver.pointer_attribute, "cuPointerGetAttribute");
    library.find(driver.error_text, "cuGetErrorString");
    absent = library.absent();
    if (absent) return;
    int count = 0;
    if (driver.init(0) != 0 || driver.device_count(&count) != 0 || count == 0) absent = "the CUDA driver finds no device";
  }
};

const FoundDriver& found() {
  static const FoundDriver once;
  return once;
}

}  // namespace

std::optional<std::string> absent() { return found().absent; }
const Driver& driver() { return found().driver; }

void require(Result result, const char* doing) {
  if (result == 0) return;
  const char* text = nullptr;
  if (driver().error_text(result, &text) != 0 || !text) text = "an unknown error";
  throw Error(ErrorCode::backend_absent, {}, fmt::format("the CUDA driver failed at {}: {} ({})", doing, text, result));
}

}  // namespace cosmati::gpu
