// The yardstick of --time: a plain copy that reads and writes as many bytes as the program, on all cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>

namespace cosmati::tools {

struct Timing {
  double ours_us = 0, copy_us = 0;  // medians
  int rounds = 0;
};

// Runs `ours` and a copy of `bytes` in turns, so that both see the same machine, for about a second and a half (at least 5
// rounds, at most 101). The caller has run `ours` once before.
Timing time_beside_copy(const std::function<void()>& ours, std::int64_t bytes);

}  // namespace cosmati::tools
