// Kernel IR to an LLVM module: one function a phase, and one that says how large a launch is.
//   void PREFIX_phase_K(i64 begin, i64 end, i64 worker, ptr buffers, ptr params)   groups begin .. end
//   void PREFIX_sizes(ptr params, ptr sizes)                                        a Size for each phase
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <llvm-c/Core.h>

#include "kernel/kernel.h"

namespace cosmati::cpu {

struct Size {
  std::int64_t groups;
  double operations;  // an estimate over all groups, for deciding how many threads are worth waking
};
using PhaseFunction = void(std::int64_t begin, std::int64_t end, std::int64_t worker, void* const* buffers,
                           const std::int64_t* params);
using SizesFunction = void(const std::int64_t* params, Size* sizes);

std::string phase_symbol(const std::string& prefix, std::size_t phase);
std::string sizes_symbol(const std::string& prefix);
void generate(const kernel::Kernel& k, const std::string& prefix, LLVMModuleRef module);

}  // namespace cosmati::cpu
