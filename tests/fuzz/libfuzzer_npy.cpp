// libFuzzer: any bytes as an .npy file. They are an array whose every element can be read, or throw Error.
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include <cosmati/error.h>

#include "tools/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cosmati;
  static const int file = memfd_create("fuzz.npy", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) __builtin_trap();
  try {
    const tools::Array array = tools::read_npy(path);
    unsigned sum = 0;
    tools::for_each_element(array.view, [&](const char* element) {
      for (int b = 0; b < byte_size(array.view.dtype); ++b) sum += static_cast<unsigned char>(element[b]);
    });
    volatile unsigned keep = sum;
    (void)keep;
  } catch (const Error&) {
  }
  return 0;
}
