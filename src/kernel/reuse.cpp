// Distances are compared as sizes only: runs that grow into each other are one run.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/reuse.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace cosmati::kernel {
namespace {

constexpr double line = 64;

bool fits(double bytes, double cache) { return bytes <= 0.8 * cache; }  // caches keep other things too

// Lines whose addresses are a multiple of this apart take each other's place. What is farther away is hashed.
double sets_of(std::size_t level, const Bytes& caches) {
  constexpr double near_sets = 64, ways = 16;
  return level == 0 ? near_sets : std::max(near_sets, caches[level] / line / ways);
}
double bytes_in_sets(const Touched& t, std::size_t level, const Bytes& caches) {
  if (level >= t.sets.size()) return t.bytes();
  const double sets = sets_of(level, caches), own = std::min(sets, t.sets[level]);
  return t.bytes() / line > own ? t.bytes() * sets / own : t.bytes();
}
bool fits(const Footprint& all, std::size_t level, const Bytes& caches) {
  double sum = 0;
  for (const Touched& t : all) sum += bytes_in_sets(t, level, caches);
  return fits(sum, caches[level]);
}

double lines(double run) { return std::max(1.0, run / line); }

void grow(Touched& t, double run) {
  for (double& sets : t.sets) sets *= lines(run) / lines(t.run);
  t.run = run;
}

// So many runs of it, each so far from the last.
void jump(Touched& t, double trips, double by, const Bytes& caches) {
  if (t.count == 1) t.pitch = by;
  if (by == t.pitch * t.pitched) t.pitched *= trips;
  t.count *= trips;
  t.left = true;
  const auto distance = static_cast<std::int64_t>(by / line);
  const bool whole = std::fmod(by, line) == 0;
  for (std::size_t level = 0; level < t.sets.size(); ++level) {
    const double sets = sets_of(level, caches);
    t.sets[level] *=
        std::min(trips, whole ? sets / static_cast<double>(std::gcd(distance, static_cast<std::int64_t>(sets))) : sets);
  }
}

// Runs that have grown into each other while the nearest cache held them are one.
void merge(Touched& t, const Bytes& caches) {
  const double run = t.pitch * (t.pitched - 1) + t.run;
  if (t.pitched == 1 || t.pitch >= t.run + line || !fits(run, caches[0])) return;
  t.piece = t.run;
  t.count /= t.pitched;
  t.left = t.count > 1;
  t.pitched = 1;
  t.run = run;
}

// Two accesses of the same elements, give or take a tail.
bool same_memory(const Touched& a, const Touched& b) {
  // Rows next to each other are not the same row.
  if (a.buffer != b.buffer || std::abs(a.at - b.at) > std::max(std::max(a.run, b.run) / 2, line)) return false;
  const double x = a.bytes(), y = b.bytes();
  return x < 4 * y && y < 4 * x;
}

// Runs that lie end to end are read as one, also side by side: what fetches ahead of one fetches the next. `part`: which part
// each is from; who stores several in one part goes elsewhere with each store.
Footprint end_to_end(const Footprint& all, const std::vector<std::size_t>& part, std::vector<std::size_t>& kept) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(all[a].buffer, all[a].stored, all[a].at) < std::tuple(all[b].buffer, all[b].stored, all[b].at);
  });
  std::vector<std::optional<Touched>> joined(all.begin(), all.end());
  std::set<std::size_t> parts;
  for (std::size_t i = 0, last = 0; i < order.size(); ++i) {
    Touched &before = *joined[order[last]], &next = *joined[order[i]];
    const double end = before.at + before.run;
    const bool new_part = parts.insert(part[order[i]]).second;
    if (i == last) continue;
    if (before.buffer != next.buffer || before.stored != next.stored || (next.stored && !new_part) || before.count != 1 ||
        next.count != 1 || std::abs(next.at - end) > line) {
      last = i;
      parts = {part[order[i]]};
      continue;
    }
    for (std::size_t level = 0; level < before.beyond.size(); ++level) before.beyond[level] += next.beyond[level];
    before.ragged = before.ragged || next.ragged;
    before.visit += next.visit;
    grow(before, std::max(end, next.at + next.run) - before.at);
    joined[order[i]].reset();
  }
  Footprint rest;
  std::vector<std::size_t> rest_kept;
  for (std::size_t i = 0; i < joined.size(); ++i)
    if (joined[i]) rest.push_back(*joined[i]), rest_kept.push_back(kept[i]);
  kept = std::move(rest_kept);
  return rest;
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
  std::array<bool, cache_levels> found_again{};
  for (std::size_t level = 0; level < found_again.size(); ++level) found_again[level] = fits(body, level, caches);
  for (std::size_t i = 0; i < body.size(); ++i) {
    Touched& t = body[i];
    const double by = advance[i];
    t.ragged = t.ragged || (trips > 1 && by >= line && std::fmod(by, line) != 0);
    if (by <= std::max(t.run, line))
      grow(t, t.run + by * (trips - 1));
    else if (trips > 1)
      jump(t, trips, by, caches);
    else
      t.count *= trips;
    merge(t, caches);
    if (!t.left) t.visit = t.run;
    for (std::size_t level = 0; level < found_again.size(); ++level)
      t.beyond[level] = found_again[level] ? t.bytes() : trips * t.beyond[level];
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
    grow(*next, end - next->at);
    next->stored = next->stored || t.stored;
  }
  for (Touched& t : all) {
    t.beyond.fill(t.bytes());
    t.visit = t.run;
    t.ragged = t.ragged || std::fmod(t.at, line) != 0;
  }
  return all;
}

Footprint together(const std::vector<Footprint>& parts, const Bytes& caches, std::vector<std::size_t>& kept) {
  Footprint all;
  std::vector<Bytes> sums;
  std::vector<std::size_t> part_of;
  std::size_t number = 0, part_number = 0;
  for (const Footprint& part : parts) {
    ++part_number;
    for (const Touched& t : part) {
      const std::size_t own = number++;
      const auto known = std::find_if(all.begin(), all.end(), [&](const Touched& k) { return same_memory(k, t); });
      if (known == all.end()) {
        all.push_back(t);
        sums.push_back(t.beyond);
        kept.push_back(own);
        part_of.push_back(part_number);
        continue;
      }
      Bytes& sum = sums[static_cast<std::size_t>(known - all.begin())];
      for (std::size_t c = 0; c < sum.size(); ++c) {
        sum[c] += t.beyond[c];
        known->beyond[c] = std::max(known->beyond[c], t.beyond[c]);
      }
      if (t.bytes() > known->bytes()) known->count = t.count, known->run = t.run;
      if (t.visit > known->visit) known->visit = t.visit, known->left = t.left;
      known->ragged = known->ragged || t.ragged;
      known->stored = known->stored || t.stored;
    }
  }
  for (std::size_t level = 0; level < cache_levels; ++level)
    if (!fits(all, level, caches))
      for (std::size_t i = 0; i < all.size(); ++i) all[i].beyond[level] = sums[i][level];
  return end_to_end(all, part_of, kept);
}

}  // namespace cosmati::kernel
