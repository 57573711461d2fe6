// reuse: which lines of memory loops touch, and how often they come from beyond each cache. What one trip of a loop touches is
// found again by the next one if all of it fits into the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace cosmati::kernel {

constexpr int cache_levels = 3;
using Bytes = std::array<double, cache_levels>;  // per level, the nearest first

// What one access touches: `count` separate runs of `run` bytes, the first one `at` bytes from where the buffer's accesses start.
struct Touched {
  std::uint32_t buffer;
  double at, count, run;
  Bytes beyond{};  // bytes that come from beyond a level, or go there
  bool stored = false;
  double visit = 0;                  // of a run, what is touched before the access goes elsewhere,
  bool left = false;                 // as it did
  bool ragged = false;               // starts inside of a line, or moves on by lines and a part of one
  double piece = 0;                  // bytes of each of the runs that have grown into this one; 0: none have
  double pitch = 0, pitched = 1;     // so many of the runs follow each other at such a distance
  std::array<double, 2> sets{1, 1};  // of the nearest caches, in which its lines lie, where there are as many

  double bytes() const;  // of the lines
};
using Footprint = std::vector<Touched>;

double bytes(const Footprint& all);
// What `trips` trips of a loop touch that advances each access by so many bytes a trip (one entry each), where one trip touches
// `body`.
Footprint repeated(Footprint body, double trips, const std::vector<double>& advance, const Bytes& caches);
// Straight code: accesses next to each other make longer runs. `kept`: the numbers of those in the result.
Footprint adjoined(const Footprint& accesses, std::vector<std::size_t>& kept);
// One after the other: who touches the same memory again finds it where all of it fits, and is left out of the result. Runs that
// lie end to end are one, but for stores to several at the same time. `kept`: the numbers of those in the result, counted through
// all parts.
Footprint together(const std::vector<Footprint>& parts, const Bytes& caches, std::vector<std::size_t>& kept);

}  // namespace cosmati::kernel
