// work: how many cycles a core takes for the groups of a kernel, and which bytes come from beyond each cache, counted on kernel
// IR at given params. Loops count their trips, vectors their registers; iterations overlap until their carried values hold them
// back. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/reuse.h"

namespace cosmati::kernel {

// Cycles: of a core's time for one register unless it says otherwise, and until the result is there.
struct Rates {
  struct Cost {
    double busy, latency;
  };
  int register_bytes, registers;           // of the vector registers
  Cost simple, multiply, divide, convert;  // simple: sums, comparisons, choices, bits; multiply: fma too; divide: sqrt too
  Cost quotient;                           // a division of f32 by one number for all lanes
  Cost index;                              // a scalar integer operation
  Cost shuffle, load, store;
  Cost element;         // of a gather or scatter, and of an operation that a vector lacks: one lane
  Cost masked_load;     // one register
  Cost masked_store;    // one register
  Cost call;            // a library function, one lane
  double loop, unroll;  // entering a loop and leaving it; going round
  Cost fence = {0, 0};  // one register
  Cost chip = {0, 0};   // an access of threads to their scratch, one register
  Cost exp = {0, 0};    // exp of f32, where there is one
  double in_order = 0;  // of what a trip of a loop waits for by itself, the part for which the next one waits too
};

class Work {
 public:
  // `kernel` has its expansions written out.
  Work(Kernel kernel, const Rates& rates);
  ~Work();
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;

  struct Phase {
    double groups;        // how many,
    double cycles;        // of one of them,
    double busy;          // of these, where nothing waits,
    double latency;       // and where nothing but results is waited for,
    double live;          // 32-bit values of a lane that are needed later, at most,
    Footprint footprint;  // of all of them, run by one core,
    double turn;          // bytes that loops touch which take turns, once each; infinite where there are none
  };
  // One entry a phase. params: as for a launch. caches: in bytes.
  std::vector<Phase> operator()(const std::vector<std::int64_t>& params, const Bytes& caches) const;
  const Kernel& kernel() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cosmati::kernel
