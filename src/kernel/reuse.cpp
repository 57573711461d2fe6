// Distances are compared as sizes only: runs that grow into each other are one run.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/reuse.h"

#include <algorithm>
#include <cmath>

namespace cosmati::kernel {
namespace {

constexpr double line = 64;

bool fits(double bytes, double cache) { return bytes <= 0.8 * cache; }  // caches keep other things too

// Two accesses of the same elements, give or take a tail.
bool same_memory(const Touched& a, const Touched& b) {
  // Rows next to each other are not the same row.
  if (a.buffer != b.buffer || std::abs(a.at - b.at) > std::max(std::max(a.run, b.run) / 2, line)) return false;
  const double x = a.bytes(), y = b.bytes();
  return x < 4 * y && y < 4 * x;
}

}  // namespace

double Touched::bytes() const {
  // A run starts anywhere in its first line.
  return count * (run >= line ? run : line);
}

double bytes(const Footprint& all) {
  double sum = 0;
  for (const Touched& t : all) sum += t.bytes();
  return sum;
}

Footprint repeated(Footprint body, double trips, const std::vector<double>& advance, const Bytes& caches) {
  const double once = bytes(body);
  for (std::size_t i = 0; i < body.size(); ++i) {
    Touched& t = body[i];
    const double by = advance[i];
    if (by > std::max(t.run, line)) {
      t.count *= trips;
      t.left = t.left || trips > 1;
    } else {
      t.run += by * (trips - 1);
    }
    if (!t.left) t.visit = t.run;
    for (int c = 0; c < cache_levels; ++c)
      t.beyond[static_cast<std::size_t>(c)] =
          fits(once, caches[static_cast<std::size_t>(c)]) ? t.bytes() : trips * t.beyond[static_cast<std::size_t>(c)];
  }
  return body;
}

Footprint adjoined(const Footprint& accesses, std::vector<std::size_t>& kept) {
  Footprint all;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Touched& t = accesses[i];
    const auto next = std::find_if(all.begin(), all.end(), [&](const Touched& k) {
      return k.buffer == t.buffer && k.count == t.count && t.at <= k.at + k.run + line && k.at <= t.at + t.run + line;
    });
    if (next == all.end()) {
      all.push_back(t);
      kept.push_back(i);
      continue;
    }
    const double end = std::max(next->at + next->run, t.at + t.run);
    next->at = std::min(next->at, t.at);
    next->run = end - next->at;
    next->stored = next->stored || t.stored;
  }
  for (Touched& t : all) {
    t.beyond.fill(t.bytes());
    t.visit = t.run;
  }
  return all;
}

Footprint together(const std::vector<Footprint>& parts, const Bytes& caches, std::vector<std::size_t>& kept) {
  Footprint all;
  std::vector<Bytes> sums;
  std::size_t number = 0;
  for (const Footprint& part : parts)
    for (const Touched& t : part) {
      const std::size_t own = number++;
      const auto known = std::find_if(all.begin(), all.end(), [&](const Touched& k) { return same_memory(k, t); });
      if (known == all.end()) {
        all.push_back(t);
        sums.push_back(t.beyond);
        kept.push_back(own);
        continue;
      }
      Bytes& sum = sums[static_cast<std::size_t>(known - all.begin())];
      for (std::size_t c = 0; c < sum.size(); ++c) {
        sum[c] += t.beyond[c];
        known->beyond[c] = std::max(known->beyond[c], t.beyond[c]);
      }
      if (t.bytes() > known->bytes()) known->count = t.count, known->run = t.run;
      if (t.visit > known->visit) known->visit = t.visit, known->left = t.left;
      known->stored = known->stored || t.stored;
    }
  const double whole = bytes(all);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t c = 0; c < all[i].beyond.size(); ++c)
      if (!fits(whole, caches[c])) all[i].beyond[c] = sums[i][c];
  return all;
}

}  // namespace cosmati::kernel
