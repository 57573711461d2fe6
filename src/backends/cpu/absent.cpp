// The CPU backend of a build without LLVM: says so.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/error.h>

#include "backends/cpu/cpu.h"

namespace cosmati::cpu {
namespace {

constexpr const char* reason = "this build of cosmati has no LLVM";

[[noreturn]] void refuse() {
  throw Error(ErrorCode::backend_absent, {}, std::string("the device cpu is not available: ") + reason,
              "build with LLVM 16 to 19 and -DCOSMATI_LLVM=ON, or run on sim or oracle");
}

}  // namespace

Object compile_object(const kernel::Kernel&, const std::string&, int) { refuse(); }
Object compile_portable(const kernel::Kernel&, const std::string&, const std::vector<std::string>&) { refuse(); }
std::unique_ptr<kernel::Executable> load(const kernel::Kernel&, const Object&, const native::Options&) { refuse(); }
kernel::Native native() { return {}; }
std::string identity() { return reason; }
std::unique_ptr<kernel::Executable> compile(const kernel::Kernel&, const Options&) { refuse(); }
std::string emit(const kernel::Kernel&, const std::string&, const Options&) { refuse(); }
std::optional<std::string> absent() { return reason; }

}  // namespace cosmati::cpu
