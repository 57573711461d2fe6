// Cycles are those of common cores of a kind; they order mappings, they do not foretell times.
// SPDX-License-Identifier: Apache-2.0
#include "plan/target.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

namespace cosmati::plan {
namespace {

using kernel::Rates;

//                             bytes, count, simple,   multiply,   divide,  convert, quotient, index,     shuffle, load, store,
//                             element,      masked load, masked store, call,     loop, round
constexpr Rates wide = {64,       32,     {0.42, 1}, {0.5, 4}, {12, 18}, {1, 4},   {4, 14}, {0.25, 1}, {1, 3},
                        {0.5, 6}, {1, 4}, {1, 8},    {0.6, 6}, {1.2, 5}, {20, 60}, 20,      0.6};
constexpr Rates half = {32,       16,     {0.4, 1}, {0.5, 4}, {5, 12}, {1, 4},   {5, 12}, {0.25, 1}, {1, 3},
                        {0.4, 6}, {1, 4}, {0.7, 8}, {1.2, 7}, {6, 12}, {20, 60}, 20,      0.6};
constexpr Rates quarter = {16,       16 + 16, {0.4, 2}, {0.5, 4}, {5, 12}, {1, 4},   {5, 12}, {0.25, 1}, {0.5, 2},
                           {0.4, 5}, {1, 4},  {1.3, 6}, {3, 7},   {4, 8},  {20, 60}, 20,      0.6};

// Of an instruction of 32 lanes, on GPUs.
constexpr Rates warps = {128,      1 << 20, {0.5, 5}, {1.5, 5}, {10, 40}, {7, 8},     {5, 30},
                         {1, 6},   {5, 9},  {1, 400}, {1.4, 5}, {0.5, 4}, {3.4, 400}, {2.4, 5},
                         {60, 90}, 8,       8,        {8, 100}, {15, 30}, {10, 60},   0.2};

// Of a last-level cache that many cores share, each has about so much; what a machine of a few of them tells is the whole.
constexpr double most_of_last_level = 4 << 20;

// In the nearest level first; where the system does not tell, what most processors have.
double cache_bytes(int level) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  constexpr int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  if (const long bytes = ::sysconf(names[level]); bytes > 0) return static_cast<double>(bytes);
#endif
  constexpr double usual[] = {32 << 10, 512 << 10, 16 << 20};
  return usual[level];
}

Target common_core(std::string name, const Rates& rates, int workers) {
  Target t;
  t.name = std::move(name);
  t.lanes = rates.register_bytes / 4;
  t.workers = workers;
  t.priced = true;
  t.rates = rates;
  t.cycles_per_us = 3500;
  t.start_us = 4;
  t.task_cycles = 40'000;
  t.caches = {32 << 10, 512 << 10, 16 << 20};
  t.bytes_per_us = {120'000, 50'000, 16'000};
  const double n = workers;
  t.shared_per_us = {n * t.bytes_per_us[0], n * t.bytes_per_us[1], std::min(n, 3.0) * t.bytes_per_us[2]};
  return t;
}

const Rates& rates_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return wide;
  if (__builtin_cpu_supports("avx2")) return half;
#endif
  return quarter;
}

}  // namespace

Target target_named(const std::string& name, int workers) {
  Target plain;
  plain.name = name;
  plain.lanes = name == "sim" ? 8 : 1;
  if (name == "cuda") {
    plain.lanes = 128;
    plain.subgroup = kernel::subgroup_lanes;
    plain.most_workers_of_group = kernel::most_lanes;
    plain.most_packed = 15;  // one barrier each, and one for all
    plain.prices = "one H200";
    plain.priced = true;
    plain.workers = 132;
    plain.rates = warps;
    plain.cycles_per_us = 1980;
    plain.start_us = 0.55;
    plain.about_equal = 1;
    plain.caches = {200 << 10, 45 << 20, 45 << 20};
    plain.bytes_per_us = {46'000, 46'000, 46'000};
    plain.shared_per_us = {6'200'000, 4'150'000, 4'150'000};
  }
  if (name != "cpu") return plain;
  if (workers <= 0) workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Target t = common_core(name, rates_here(), workers);
  for (int level = 0; level < kernel::cache_levels; ++level) t.caches[static_cast<std::size_t>(level)] = cache_bytes(level);
  t.caches.back() = std::min(t.caches.back(), workers * most_of_last_level);
  return t;
}

Target example_target() { return common_core("example", half, 4); }

}  // namespace cosmati::plan
