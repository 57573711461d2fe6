// What the processor is called and how wide its vectors are, for people.
// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>

#include <fstream>

#include <fmt/format.h>

#include "backends/native/native.h"
#include "backends/native/pool.h"

namespace cosmati::native {
namespace {

std::string processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != line.npos) return line.substr(colon + 2);
  }
  utsname machine = {};
  return ::uname(&machine) == 0 ? machine.machine : "unknown";
}

int vector_bits() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx")) return 256;
#endif
  return 128;
}

}  // namespace

std::string host_description() {
  const int threads = pool_size();
  return fmt::format("{}, {}-bit vectors, {} thread{}", processor(), vector_bits(), threads, threads == 1 ? "" : "s");
}

}  // namespace cosmati::native
