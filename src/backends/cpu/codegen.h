// Kernel IR to an LLVM module: the functions of backends/native/code.h, two a phase.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <llvm-c/Core.h>

#include "backends/native/code.h"
#include "kernel/kernel.h"

namespace cosmati::cpu {

void generate(const kernel::Kernel& k, const std::string& prefix, LLVMModuleRef module);

}  // namespace cosmati::cpu
