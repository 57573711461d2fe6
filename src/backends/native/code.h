// Compiled code as a launch sees it: functions behind symbols, two a phase.
//   void PREFIX_phase_K(i64 begin, i64 end, i64 worker, ptr buffers, ptr params)   groups begin .. end
//   void PREFIX_size_K(ptr params, ptr size)                                        how large the phase is
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "kernel/launch.h"

namespace cosmati::native {

struct Size {  // of a phase at a launch
  std::int64_t groups;
  double operations;  // an estimate over all groups, for deciding how many threads are worth waking
};
using PhaseFunction = void(std::int64_t begin, std::int64_t end, std::int64_t worker, const kernel::Memory* buffers,
                           const std::int64_t* params);
using SizeFunction = void(const std::int64_t* params, Size* size);

std::string phase_symbol(const std::string& prefix, std::size_t phase);
std::string size_symbol(const std::string& prefix, std::size_t phase);

// Code in memory, for as long as the object lives.
class Code {
 public:
  virtual ~Code() = default;
  // Never null. Throws where there is no such symbol.
  virtual void* address(const std::string& symbol) const = 0;
};

}  // namespace cosmati::native
