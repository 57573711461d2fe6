// LLVM from module to running code: the target machine of this processor, passes, text, and a process-wide linker.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

namespace cosmati::cpu {

struct HostFacts {
  std::string cpu, features;  // as LLVM names them
};
const HostFacts& host_facts();

// A module in its own context, with a target machine: nothing is shared between compilations.
class Unit {
 public:
  explicit Unit(const std::string& name);
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  LLVMModuleRef module() const { return module_; }
  // Verifies, runs the passes of the level (0: none), verifies again. Throws InternalError with LLVM's message.
  void finish(int optimization);
  std::string llvm() const;
  std::string assembly() const;
  LLVMMemoryBufferRef object() const;  // owned by the caller

 private:
  LLVMMemoryBufferRef emit(LLVMCodeGenFileType type) const;
  void verify(const char* when) const;

  std::string diagnostics_;
  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMTargetMachineRef machine_;
};

// Linked code. The memory is freed when it dies.
class Code {
 public:
  explicit Code(LLVMMemoryBufferRef object);  // takes the object
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  std::uint64_t address(const std::string& symbol) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cosmati::cpu
