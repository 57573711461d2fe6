// Two functions timed side by side: what is compared is the time of one over that of the other in the same round.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cosmati::tools {

// A function whose calls are timed in batches that last a while.
class Timed {
 public:
  explicit Timed(std::function<void()> call) : call_(std::move(call)) {}
  // Finds how many calls take `sample_s`; the first call is not counted.
  void calibrate(double sample_s);
  // Microseconds a call, of one batch after one call that is not counted.
  double sample();

 private:
  double batch_us(std::int64_t calls);
  std::function<void()> call_;
  std::int64_t calls_ = 1;
};

// The ratios of the rounds.
struct Ratio {
  std::vector<double> rounds;
  double median = 0, low = 0, high = 0;
  int better = 0, worse = 0;  // rounds in which the first took less time, more time
};
Ratio ratio_of(std::vector<double> rounds);

// The time of `ours` over that of `baseline`, round by round; who is first changes from round to round. `more` is asked after
// every second round whether there is time for two others; `rounds` is even.
Ratio in_rounds(Timed& ours, Timed& baseline, int rounds, const std::function<bool()>& more);

// "0.871 (0.846 .. 0.902, 12 rounds better, 0 worse)".
std::string text_of(const Ratio& ratio);

}  // namespace cosmati::tools
