// Progress lines, written by a thread of their own so that the work needs no hooks where it has none.
// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

namespace cosmati::tools {

std::string human_seconds(double seconds) {
  const long long s = std::llround(std::clamp(seconds, 0.0, 1e9));
  return s < 120 ? fmt::format("{} s", s) : fmt::format("{} min {} s", s / 60, s % 60);
}

std::string progress_line(const std::string& what, double elapsed_s, double done, double expected_s) {
  const double total = done > 0.01 ? elapsed_s / done : expected_s;
  std::string line = fmt::format("cosmati: {}: {}", what, human_seconds(elapsed_s));
  if (done > 0.01) line += fmt::format(", {:.0f}% done", done * 100);
  if (total > elapsed_s) return line + fmt::format(", about {} left", human_seconds(total - elapsed_s));
  return line + (total > 0 ? ", nearly done" : "");
}

Progress::Progress(std::string what, double expected_s) : what_(std::move(what)), expected_s_(expected_s) {
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error&) {  // work goes on without being told of
  }
}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::loop() {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(terminal || !printed_ ? 1 : 10), [this] { return stop_; })) {
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const std::string line = progress_line(what_, elapsed, done_.load(std::memory_order_relaxed), expected_s_);
    std::fputs((terminal ? "\r\x1b[K" + line : line + "\n").c_str(), stderr);
    std::fflush(stderr);
    printed_ = true;
  }
  if (terminal && printed_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace cosmati::tools
