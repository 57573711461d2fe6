// The CPU backend: kernel IR compiled for this processor by LLVM.
// Built from cpu.cpp where LLVM is found, from absent.cpp where it is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cosmati/device.h>

#include "backends/native/native.h"
#include "kernel/kernel.h"
#include "kernel/launch.h"

namespace cosmati::cpu {

constexpr int lean = 1;  // optimization; 0: no passes
struct Options {
  int threads = 0;  // and executor: as in native::Options
  Executor executor;
  int optimization = lean;
};

// A relocatable object file, and what its symbols begin with. Equal prefixes in one process must be equal objects: the linker has
// one name space. Equal kernels, prefixes and options give equal bytes.
struct Object {
  std::string prefix, bytes;
};

// What this processor has instructions for.
kernel::Native native();

// `k` is expanded (kernel::expand for native()). Throws Error{backend_absent} where the backend is not built. Thread-safe, in
// parallel.
Object compile_object(const kernel::Kernel& k, const std::string& prefix, int optimization = lean);
// The same for a package: of what processors may have beyond the base of this architecture the code uses `features`, by their
// names in native/features.cpp. It calls libm and the C library by their own names, so that the system's linker can link it.
Object compile_portable(const kernel::Kernel& k, const std::string& prefix, const std::vector<std::string>& features);
// The executable of an object. Throws InternalError where the object is not of this kernel and this processor.
std::unique_ptr<kernel::Executable> load(const kernel::Kernel& k, const Object& object, const native::Options& options = {});
// Both, with a prefix of its own.
std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const Options& options = {});
// What an object depends on beside its kernel: LLVM, processor, passes. One line.
std::string identity();
// The code of an expanded kernel as text. as: "llvm" (after the passes) or "asm".
std::string emit(const kernel::Kernel& k, const std::string& as, const Options& options = {});
// Why the backend is not in this build, or nothing.
std::optional<std::string> absent();

}  // namespace cosmati::cpu
