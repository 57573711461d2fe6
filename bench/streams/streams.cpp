// Streams over arrays, split over threads that live through all calls. A batch waits for the threads once, so that waking them is
// not what is timed. SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/stream_kernels.h"

namespace {

using namespace cosmati::tools;

void library_copy(void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); }

constexpr int pieces = 8;  // of a thread's part of an array

class Streams {
 public:
  explicit Streams(int threads) : threads_(threads), turn_(threads), next_(static_cast<std::size_t>(threads)) {
    for (int t = 1; t < threads; ++t) others_.emplace_back([this, t] { serve(t); });
  }
  ~Streams() {
    stop_ = true;
    turn_.arrive_and_wait();
  }

  void run(Pass* pass, bool reads, char* const* to, const char* const* from, std::int64_t bytes, const int* sets, int count) {
    pass_ = pass, reads_ = reads, to_ = to, from_ = from, bytes_ = bytes, sets_ = sets, count_ = count;
    for (Counter& counter : next_) counter.piece = 0;
    turn_.arrive_and_wait();
    work(0);
    turn_.arrive_and_wait();
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::int64_t> piece = 0;  // of all sets of the batch
  };

  void serve(int t) {
    while (true) {
      turn_.arrive_and_wait();
      if (stop_) return;
      work(t);
      turn_.arrive_and_wait();
    }
  }
  void work(int t) {
    for (int k = 0; k < threads_; ++k) {
      const int owner = (t + k) % threads_;
      std::atomic<std::int64_t>& next = next_[static_cast<std::size_t>(owner)].piece;
      for (std::int64_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < std::int64_t{pieces} * count_;)
        piece(sets_[at / pieces], owner * pieces + static_cast<int>(at % pieces));
    }
  }
  // A read leaves its vector at to[set] + number * vector_room.
  void piece(int set, int number) const {
    const int all = threads_ * pieces;
    const auto cut = [&](int n) { return n == all ? bytes_ : bytes_ * n / all / vector_room * vector_room; };
    const std::int64_t begin = cut(number), size = cut(number + 1) - begin;
    pass_(to_[set] + (reads_ ? number * vector_room : begin), from_[set] + begin, size);
  }

  const int threads_;
  std::barrier<> turn_;
  std::vector<Counter> next_;
  Pass* pass_ = nullptr;  // these are written before a barrier and read after it
  bool reads_ = false, stop_ = false;
  char* const* to_ = nullptr;
  const char* const* from_ = nullptr;
  std::int64_t bytes_ = 0;
  const int* sets_ = nullptr;
  int count_ = 0;
  std::vector<std::jthread> others_;  // the last member: they end before what they use
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* streams_open(int threads) { return new Streams(threads); }
__attribute__((visibility("default"))) void streams_close(void* streams) { delete static_cast<Streams*>(streams); }

// kind: read, copy, bypass, memcpy. Goes through `count` sets, whose numbers are `sets`, one after the other.
__attribute__((visibility("default"))) void streams_run(void* streams, int kind, char* const* to, const char* const* from,
                                                        std::int64_t bytes, const int* sets, int count) {
  Pass* const passes[] = {pass_of(Stream::read), pass_of(Stream::copy), pass_of(Stream::bypass), library_copy};
  static_cast<Streams*>(streams)->run(passes[kind], kind == 0, to, from, bytes, sets, count);
}

}  // extern "C"
