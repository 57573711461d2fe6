// libFuzzer: any bytes as kernel text. They are a kernel whose text reads back, or throw Error.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include <cosmati/error.h>

#include "kernel/kernel.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cosmati;
  try {
    const std::string printed = kernel::print(kernel::parse(std::string(reinterpret_cast<const char*>(data), size)));
    if (kernel::print(kernel::parse(printed)) != printed) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
