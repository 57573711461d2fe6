// A compiled kernel as bytes: what launching it needs and nothing that only planning or compiling needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/cpu.h"
#include "kernel/kernel.h"

namespace cosmati::runtime {

struct KernelImage {
  std::string name, plan, explanation;
  std::vector<std::string> domain;
  kernel::Kernel interface;  // params, buffers and their sizes; the phases have no bodies
  cpu::Object object;
};

// The kernel without its phases' bodies.
kernel::Kernel interface_of(kernel::Kernel k);

std::string to_bytes(const KernelImage& image);
// Nothing for bytes that are no image.
std::optional<KernelImage> image_of(std::string_view bytes);

}  // namespace cosmati::runtime
