// Times a function beside a memcpy on all cores. The copying threads live through all rounds: starting them is not what is timed.
// SPDX-License-Identifier: Apache-2.0
#include "tools/copy.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace cosmati::tools {
namespace {

using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

class Copier {
 public:
  explicit Copier(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        from_(new char[bytes_ + 1]),
        to_(new char[bytes_ + 1]),
        threads_(bytes_ < 256 * 1024 ? 1 : std::max(1u, std::thread::hardware_concurrency())),
        turn_(static_cast<std::ptrdiff_t>(threads_)) {
    std::memset(from_.get(), 1, bytes_);
    std::memset(to_.get(), 2, bytes_);
    for (unsigned i = 1; i < threads_; ++i) helpers_.emplace_back([this, i] { help(i); });
  }
  ~Copier() {
    stop_ = true;
    if (threads_ > 1) turn_.arrive_and_wait();
    for (auto& helper : helpers_) helper.join();
  }
  void operator()() {
    if (threads_ > 1) turn_.arrive_and_wait();
    part(0);
    if (threads_ > 1) turn_.arrive_and_wait();
  }

 private:
  void help(unsigned i) {
    while (true) {
      turn_.arrive_and_wait();
      if (stop_) return;
      part(i);
      turn_.arrive_and_wait();
    }
  }
  void part(unsigned i) {
    const std::size_t begin = bytes_ / threads_ * i, end = i + 1 == threads_ ? bytes_ : bytes_ / threads_ * (i + 1);
    std::memcpy(to_.get() + begin, from_.get() + begin, end - begin);
  }

  const std::size_t bytes_;
  std::unique_ptr<char[]> from_, to_;
  const unsigned threads_;
  std::barrier<> turn_;
  bool stop_ = false;  // written before a barrier, read after it
  std::vector<std::thread> helpers_;
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

}  // namespace

Timing time_beside_copy(const std::function<void()>& ours, std::int64_t bytes) {
  Copier copy(bytes);
  copy();
  std::vector<double> ours_us, copy_us;
  const auto begin = Clock::now();
  while (ours_us.size() < 5 || (ours_us.size() < 101 && since_us(begin) < 1.5e6)) {
    auto start = Clock::now();
    ours();
    ours_us.push_back(since_us(start));
    start = Clock::now();
    copy();
    copy_us.push_back(since_us(start));
  }
  return {median(ours_us), median(copy_us), static_cast<int>(ours_us.size())};
}

}  // namespace cosmati::tools
