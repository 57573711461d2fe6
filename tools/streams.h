// How fast threads read, write and copy memory of their own, by plain vector loads and stores.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "tools/stream_kernels.h"

namespace cosmati::tools {

// The same measured several times.
struct Measured {
  double median = 0, low = 0, high = 0;
};
Measured measured(std::vector<double> values);

// Gigabytes a second of all threads together, each going through `bytes` of its own again and again (half of them source and half
// target of copies, whose bytes count once read and once written). Takes about `samples` times `sample_s`.
Measured stream_gb_s(Stream stream, std::int64_t bytes, int threads, int samples = 5, double sample_s = 0.025);

struct Cache {
  int level;
  std::int64_t bytes;
  int cores;  // that share it
};
// The data caches of the first core, the nearest first; empty where the system does not tell.
std::vector<Cache> data_caches();

}  // namespace cosmati::tools
