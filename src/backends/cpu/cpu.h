// The CPU backend: kernel IR compiled for this processor by LLVM and run on a thread pool.
// Built from cpu.cpp where LLVM is found, from absent.cpp where it is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <cosmati/device.h>

#include "kernel/kernel.h"
#include "kernel/launch.h"

namespace cosmati::cpu {

struct Options {
  int threads = 0;       // at most this many tasks at once; 0: the size of the pool
  Executor executor;     // runs the tasks instead of the pool; empty: the process-wide pool
  int optimization = 1;  // 0: no passes; 1: the lean pipeline
};

// The tasks of a launch go to this executor.
class ExecutorQueue : public kernel::Queue {
 public:
  explicit ExecutorQueue(Executor executor) : executor(std::move(executor)) {}
  const Executor executor;
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
Object compile_object(const kernel::Kernel& k, const std::string& prefix, const Options& options = {});
// The executable of an object. Of `k` only the interface is read (params, buffers, the number of phases); the object is of that
// kernel and this processor. Throws InternalError where it is not.
std::unique_ptr<kernel::Executable> load(const kernel::Kernel& k, const Object& object, const Options& options = {});
// Both, with a prefix of its own.
std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const Options& options = {});
// How many workers run a launch under these options.
int workers(const Options& options);
// What an object depends on beside its kernel: LLVM, processor, passes. One line.
std::string identity();
// The code of an expanded kernel as text. as: "llvm" (after the passes) or "asm".
std::string emit(const kernel::Kernel& k, const std::string& as, const Options& options = {});
// Processor, vector width and cores: "Intel(R) Xeon(R) ..., 512-bit vectors, 2 threads".
std::string host_description();
// Why the backend is not in this build, or nothing.
std::optional<std::string> absent();

}  // namespace cosmati::cpu
