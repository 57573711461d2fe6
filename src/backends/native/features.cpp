// The table holds what a compiler of vector code picks instructions by, and what can be asked of a processor (and its operating
// system) without a compiler at hand. Code for aarch64 keeps to the base, which has vectors.
// SPDX-License-Identifier: Apache-2.0
#include "backends/native/features.h"

#include <algorithm>

namespace cosmati::native {

std::string architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

std::vector<std::string> features() {
  std::vector<std::string> present;
#if defined(__x86_64__)
#define FEATURE(name) \
  if (__builtin_cpu_supports(name)) present.emplace_back(name)
  FEATURE("sse3");
  FEATURE("ssse3");
  FEATURE("sse4.1");
  FEATURE("sse4.2");
  FEATURE("popcnt");
  FEATURE("avx");
  FEATURE("avx2");
  FEATURE("fma");
  FEATURE("f16c");
  FEATURE("bmi");
  FEATURE("bmi2");
  FEATURE("lzcnt");
  FEATURE("movbe");
  FEATURE("gfni");
  FEATURE("avx512f");
  FEATURE("avx512cd");
  FEATURE("avx512bw");
  FEATURE("avx512dq");
  FEATURE("avx512vl");
  FEATURE("avx512ifma");
  FEATURE("avx512vbmi");
  FEATURE("avx512vbmi2");
  FEATURE("avx512vnni");
  FEATURE("avx512bitalg");
  FEATURE("avx512vpopcntdq");
  FEATURE("avx512bf16");
#undef FEATURE
#endif
  return present;
}

std::optional<std::string> lacking(const std::vector<std::string>& wanted) {
  const std::vector<std::string> present = features();
  for (const std::string& name : wanted)
    if (std::find(present.begin(), present.end(), name) == present.end()) return name;
  return std::nullopt;
}

}  // namespace cosmati::native
