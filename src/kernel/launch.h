// What a launch hands to an executor (simulator, CPU, later GPUs), and the interface of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

// Memory behind one Buffer. `data` points at element 0.
// Arguments: element offsets lo .. hi (half-open) may be touched (lo is negative for views with negative strides).
// Scratch is allocated by the executor's caller and only `data` counts; `elements` is Buffer::elements evaluated on the params.
// launch_scratch: `elements` elements. worker_scratch: workers() consecutive pieces of `elements` elements; the executor gives
// worker w the piece that starts at w * elements. Executors need not find anything particular in scratch.
struct Memory {
  void* data = nullptr;
  std::int64_t lo = 0, hi = 0;
};

// Where a launch is put, if not on the executor's own threads or stream. Each backend has its kind.
class Queue {
 public:
  virtual ~Queue() = default;
};

struct Launch {
  std::vector<Memory> buffers;                // one per Kernel::buffers; scratch entries are filled in by the executor's caller
  std::vector<std::int64_t> params;           // one per Kernel::params: integers as values, f32/f64 as bit patterns of that type
  std::function<void(double)> progress = {};  // told the fraction of a launch that is done; from any worker
};

// What params are read from.
struct Shape {
  std::vector<std::int64_t> extents;               // per axis
  std::vector<std::vector<std::int64_t>> strides;  // per tensor, in elements
  std::vector<std::int64_t> scalars;               // as params hold them
  std::vector<bool> unaligned;                     // per tensor; none: all are aligned
  bool operator<(const Shape& other) const;
};
std::vector<std::int64_t> params_of(const Kernel& k, const Shape& shape);
// A scalar as params hold it.
std::int64_t param_bits(DType t, const ops::Scalar& scalar);

class Executable {
 public:
  virtual ~Executable() = default;
  virtual int workers() const = 0;  // how many worker scratches a launch needs
  // Thread-safe; returns when all phases have finished. `queue` is of this backend.
  virtual void run(const Launch& launch, const Queue* queue) const = 0;
  void run(const Launch& launch) const { run(launch, nullptr); }
};

// The simulator as an executor: interprets kernel IR with the bits of ops::reference, groups in order on two workers in turn.
// Scratch starts as NaN bytes (worker scratch at every group). It throws InternalError with kernel, phase, group, buffer and
// offset on: an access out of bounds; a read of worker scratch that this group has not written, or of launch scratch that nobody
// has; in one phase, an element that two groups write, or that one writes and another reads. What a guard excludes is no access.
std::unique_ptr<Executable> simulate(const Kernel& k);

}  // namespace cosmati::kernel
