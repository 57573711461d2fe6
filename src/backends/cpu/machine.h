// LLVM from module to running code: the target machine of this processor, passes, objects, text, and a process-wide linker.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "backends/native/code.h"

namespace cosmati::cpu {

struct HostFacts {
  std::string cpu, features;  // as LLVM names them
};
const HostFacts& host_facts();
// Whether the processor converts between f16 and f32.
bool converts_half();
bool has_ldexp();      // on f32, in vectors of every width
bool converts_bf16();  // from f32, vectors of 16 normal numbers
// LLVM's version, the target and its features, the passes: what turns a module into an object.
std::string compiler_identity();

// A module in its own context, with a target machine: nothing is shared between compilations.
class Unit {
 public:
  // features: null for everything that this processor has, else what code may use beyond the base of its architecture; such a
  // module is for the system's linker.
  explicit Unit(const std::string& name, const std::vector<std::string>* features = nullptr);
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  LLVMModuleRef module() const { return module_; }
  // Verifies, runs the passes of the level (0: none), verifies again. Throws InternalError with LLVM's message.
  void finish(int optimization);
  std::string llvm() const;
  std::string assembly() const;
  std::string object() const;

 private:
  std::string bytes(LLVMCodeGenFileType type) const;
  void verify(const char* when) const;
  void prepare_for_linker() const;

  std::string diagnostics_;
  LLVMContextRef context_;
  LLVMModuleRef module_;
  LLVMTargetMachineRef machine_;
  bool for_linker_;
};

// Linked code, freed when the last one of its prefix dies: equal prefixes are equal objects. All of an object's symbols begin
// with its prefix.
class LinkedObject : public native::Code {
 public:
  LinkedObject(const std::string& prefix, const std::string& object);
  ~LinkedObject() override;
  LinkedObject(const LinkedObject&) = delete;
  LinkedObject& operator=(const LinkedObject&) = delete;
  void* address(const std::string& symbol) const override;

 private:
  std::string prefix_;
};

}  // namespace cosmati::cpu
