// A compiled kernel as bytes: what launching it needs and nothing that only planning or compiling needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "backends/cpu/cpu.h"
#include "runtime/kernel.h"

namespace cosmati::library {

struct StoredKernel {
  runtime::KernelImage image;
  cpu::Object object;
};

// The kernel without its phases' bodies.
kernel::Kernel interface_of(kernel::Kernel k);

std::string to_bytes(const StoredKernel& stored);
// Nothing for bytes that are no kernel.
std::optional<StoredKernel> stored_kernel(std::string_view bytes);

}  // namespace cosmati::library
