// nvrtc: the compiler of CUDA C++ as a library, found when it is first needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

namespace cosmati::cuda {

// Why it is not on this machine.
std::optional<std::string> nvrtc_absent();
// The machine code of a source for an architecture like sm_90; sums and products are not contracted. `name` is for messages.
// Throws InternalError with the compiler's log.
std::string machine_code(const std::string& source, const std::string& name, const std::string& architecture);

}  // namespace cosmati::cuda
