// Running compiled code on this processor's threads, whoever compiled it and wherever it was loaded from.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <utility>

#include <cosmati/device.h>

#include "backends/native/code.h"
#include "kernel/kernel.h"
#include "kernel/launch.h"

namespace cosmati::native {

struct Options {
  int threads = 0;    // at most this many tasks at once; 0: the size of the pool
  Executor executor;  // runs the tasks instead of the pool; empty: the process-wide pool
};

// The tasks of a launch go to this executor.
class ExecutorQueue : public kernel::Queue {
 public:
  explicit ExecutorQueue(Executor executor) : executor(std::move(executor)) {}
  const Executor executor;
};

// The executable of code. Of `k` only the interface is read (params, buffers, the number of phases); the code is of that kernel
// and this processor. Throws what `code` throws for a symbol that it lacks.
std::unique_ptr<kernel::Executable> executable(const kernel::Kernel& k, std::unique_ptr<const Code> code,
                                               const std::string& prefix, const Options& options = {});

// How many workers run a launch under these options.
int workers(const Options& options);
// Processor, vector width and cores: "Intel(R) Xeon(R) ..., 512-bit vectors, 2 threads".
std::string host_description();

}  // namespace cosmati::native
