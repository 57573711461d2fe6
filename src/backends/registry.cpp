// The table of backends. The oracle and the simulator are always built; the CPU needs LLVM.
// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <fmt/format.h>

#include <cosmati/error.h>

#include "backends/cpu/cpu.h"

namespace cosmati::backends {

std::vector<Backend> list() {
  const auto absent = cpu::absent();
  return {{"cpu", !absent, absent ? *absent : cpu::host_description()},
          {"sim", true, "the kernel IR, interpreted and checked"},
          {"oracle", true, "the meaning of the program in float64"}};
}

void require(const std::string& name) {
  std::string names;
  for (const Backend& backend : list()) {
    if (backend.name == name) {
      if (backend.present) return;
      throw Error(ErrorCode::backend_absent, {}, fmt::format("the device {} is not available: {}", name, backend.detail),
                  "run on sim or oracle");
    }
    names += (names.empty() ? "" : ", ") + backend.name;
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("there is no device {}", name), "the devices are " + names);
}

}  // namespace cosmati::backends
