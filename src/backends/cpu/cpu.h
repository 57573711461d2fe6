// The CPU backend: kernel IR compiled for this processor by LLVM and run on a thread pool.
// Built from cpu.cpp where LLVM is found, from absent.cpp where it is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernel/kernel.h"
#include "kernel/launch.h"

namespace cosmati::cpu {

// Runs task(0) .. task(tasks - 1), in any order and on any threads, and returns when all have finished. Tasks do not throw.
using Executor = std::function<void(int tasks, const std::function<void(int)>& task)>;

struct Options {
  int threads = 0;       // at most this many tasks at once; 0: the size of the pool
  Executor executor;     // runs the tasks instead of the pool; empty: the process-wide pool
  int optimization = 1;  // 0: no passes; 1: the lean pipeline
};

// `k` is expanded (kernel::expand). Throws Error{backend_absent} where the backend is not built. Thread-safe.
std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const Options& options = {});
// The code of an expanded kernel as text. as: "llvm" (after the passes) or "asm".
std::string emit(const kernel::Kernel& k, const std::string& as, const Options& options = {});
// Processor, vector width and cores: "Intel(R) Xeon(R) ..., 512-bit vectors, 2 threads".
std::string host_description();
// Why the backend is not in this build, or nothing.
std::optional<std::string> absent();

}  // namespace cosmati::cpu
