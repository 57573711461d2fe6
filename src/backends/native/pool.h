// The process-wide thread pool: made on first use, never destroyed, made again in a forked child. The calling thread takes part
// in its own run; a run from inside a task is done inline.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace cosmati::native {

// The number of threads a run can use, the caller included: COSMATI_THREADS, else the number of cores.
// Throws Error{bad_argument} where COSMATI_THREADS is not a number from 1 to 1024.
int pool_size();
// Runs task(0) .. task(tasks - 1) and returns when all have finished. Tasks do not throw. Any number of threads may call at once.
void pool_run(int tasks, const std::function<void(int)>& task);

}  // namespace cosmati::native
