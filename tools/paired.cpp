// Batches are calibrated once and then stay as they are, so that all rounds do the same work.
// SPDX-License-Identifier: Apache-2.0
#include "tools/paired.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace cosmati::tools {

double Timed::batch_us(std::int64_t calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call_();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

void Timed::calibrate(double sample_s) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  call_();
  for (calls_ = 1; calls_ < most;) {
    const double us = batch_us(calls_);
    if (us >= sample_s * 1e6) return;
    const double grown =
        us > 0 ? static_cast<double>(calls_) * std::min(8.0, 1.1e6 * sample_s / us) : 8.0 * static_cast<double>(calls_);
    calls_ = std::clamp(static_cast<std::int64_t>(grown), calls_ + 1, most);
  }
}

double Timed::sample() {
  call_();
  return batch_us(calls_) / static_cast<double>(calls_);
}

Ratio ratio_of(std::vector<double> rounds) {
  Ratio r{std::move(rounds)};
  if (r.rounds.empty()) return r;
  std::vector<double> sorted = r.rounds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  r.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  r.low = sorted.front();
  r.high = sorted.back();
  r.better = static_cast<int>(std::count_if(sorted.begin(), sorted.end(), [](double x) { return x < 1; }));
  r.worse = static_cast<int>(std::count_if(sorted.begin(), sorted.end(), [](double x) { return x > 1; }));
  return r;
}

Ratio in_rounds(Timed& ours, Timed& baseline, int rounds, const std::function<bool()>& more) {
  std::vector<double> ratios;
  for (int round = 0; round < rounds && (round % 2 != 0 || round == 0 || more()); ++round) {
    double mine = 0, theirs = 0;
    if (round % 2 == 0) mine = ours.sample();
    theirs = baseline.sample();
    if (round % 2 != 0) mine = ours.sample();
    ratios.push_back(mine / theirs);
  }
  return ratio_of(std::move(ratios));
}

std::string text_of(const Ratio& r) {
  return fmt::format("{:.3f} ({:.3f} .. {:.3f}, {} rounds better, {} worse)", r.median, r.low, r.high, r.better, r.worse);
}

}  // namespace cosmati::tools
