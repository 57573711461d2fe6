// From kernels to objects and executables; how a launch runs is in backends/native.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu.h"

#include <atomic>

#include <fmt/format.h>

#include <cosmati/error.h>

#include "backends/cpu/codegen.h"
#include "backends/cpu/machine.h"

namespace cosmati::cpu {

std::optional<std::string> absent() { return std::nullopt; }

kernel::Native native() { return {.half = converts_half(), .ldexp = has_ldexp(), .bf16 = converts_bf16()}; }

Object compile_object(const kernel::Kernel& k, const std::string& prefix, int optimization) {
  Unit unit(k.name);
  generate(k, prefix, unit.module());
  unit.finish(optimization);
  return {prefix, unit.object()};
}

Object compile_portable(const kernel::Kernel& k, const std::string& prefix, const std::vector<std::string>& features) {
  Unit unit(k.name, &features);
  generate(k, prefix, unit.module());
  unit.finish(lean);
  return {prefix, unit.object()};
}

std::unique_ptr<kernel::Executable> load(const kernel::Kernel& k, const Object& object, const native::Options& options) {
  return native::executable(k, std::make_unique<const LinkedObject>(object.prefix, object.bytes), object.prefix, options);
}

std::unique_ptr<kernel::Executable> compile(const kernel::Kernel& k, const Options& options) {
  static std::atomic<std::uint64_t> count = 0;
  const std::string prefix = fmt::format("cosmati_{}", count.fetch_add(1, std::memory_order_relaxed));
  return load(k, compile_object(k, prefix, options.optimization), {options.threads, options.executor});
}

std::string identity() { return fmt::format("{}, {}", compiler_identity(), Options{}.optimization); }

std::string emit(const kernel::Kernel& k, const std::string& as, const Options& options) {
  if (as != "llvm" && as != "asm")
    throw Error(ErrorCode::bad_argument, {}, fmt::format("the cpu emits no {}", as), "llvm or asm");
  Unit unit(k.name);
  generate(k, k.name, unit.module());
  unit.finish(options.optimization);
  return as == "llvm" ? unit.llvm() : unit.assembly();
}

}  // namespace cosmati::cpu
