// Which vector registers a target has.
// SPDX-License-Identifier: Apache-2.0
#include "plan/target.h"

namespace cosmati::plan {

Target target_named(const std::string& name) {
  if (name == "sim") return {name, 8};
  if (name != "cpu") return {name, 1};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return {name, 16};
  if (__builtin_cpu_supports("avx2")) return {name, 8};
#endif
  return {name, 4};
}

}  // namespace cosmati::plan
