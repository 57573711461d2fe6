// What a launch hands to an executor (simulator, CPU, later GPUs), and the interface of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

// Memory behind one Buffer. Element offsets lo .. hi (half-open) relative to `data` may be touched (lo is negative for
// views with negative strides).
struct Memory {
  void* data = nullptr;
  std::int64_t lo = 0, hi = 0;
};

struct Launch {
  std::vector<Memory> buffers;         // one per Kernel::buffers; scratch entries are filled in by the executor's caller
  std::vector<std::int64_t> params;    // one per Kernel::params: integers as values, f32/f64 as bit patterns of that type
};

class Executable {
 public:
  virtual ~Executable() = default;
  virtual int workers() const = 0;                 // how many worker scratches a launch needs
  virtual void run(const Launch& launch) const = 0;  // thread-safe; returns when all phases have finished
};

// The simulator as an executor: interprets kernel IR; throws InternalError naming buffer, offset and group on an access out of
// bounds, a read of scratch or out elements never written, an element of an argument stored twice, a NaN-poison read.
std::unique_ptr<Executable> simulate(const Kernel& k);

}  // namespace cosmati::kernel
