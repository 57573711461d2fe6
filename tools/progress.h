// Progress on standard error for whatever takes more than a second: what runs, for how long, and how much time is left.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <cosmati/runtime.h>

namespace cosmati::tools {

// Lives as long as the work. Prints nothing in the first second; then one line a second on a terminal (overwritten), one line
// every ten seconds elsewhere.
class Progress {
 public:
  // `expected_s`: an estimate of the whole, used until fraction() knows better; 0: unknown.
  explicit Progress(std::string what, double expected_s = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // How much is done, 0 .. 1. Any thread.
  void fraction(double done) { done_.store(done, std::memory_order_relaxed); }
  // The same as a function that the library calls; while this lives.
  Fraction teller() {
    return [this](double done) { fraction(done); };
  }

 private:
  void loop();
  const std::string what_;
  const double expected_s_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<double> done_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  bool printed_ = false;
  std::thread thread_;
};

// "12 s", "3 min 20 s".
std::string human_seconds(double seconds);
// One line of progress, without its line end. Time left comes from `done` where it is known, else from `expected_s`.
std::string progress_line(const std::string& what, double elapsed_s, double done, double expected_s);

}  // namespace cosmati::tools
