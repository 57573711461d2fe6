// Threads wait for jobs in a list; each takes task numbers of the oldest job that has some left. Nothing is allocated by a run.
// Before a thread sleeps it watches for the next job about as long as waking it would take, so that launches in close succession
// pay for no wake-up.
// SPDX-License-Identifier: Apache-2.0
#include "backends/native/pool.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <cosmati/error.h>

namespace cosmati::native {
namespace {

thread_local bool inside_task = false;

struct Job {
  const std::function<void(int)>& task;
  int tasks;
  std::atomic<int> next = 0;
  std::atomic<int> helpers = 0;  // pool threads that hold a pointer to this job; changed under Pool::mutex_
  Job* newer = nullptr;

  // Whether there was any.
  bool work() {
    inside_task = true;
    bool any = false;
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks; any = true) task(i);
    inside_task = false;
    return any;
  }
  bool open() const { return next.load(std::memory_order_relaxed) < tasks; }
};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Watches until `done()` or the time is over; says whether it is done. Lets others have the core: it may be the one that whoever
// is waited for needs.
template <class Done>
bool watch(const Done& done) {
  constexpr std::chrono::microseconds longest{30};
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() - start < longest);
  return done();
}

class Pool {
 public:
  explicit Pool(int size) {
    for (int i = 1; i < size; ++i) {
      try {
        std::thread([this] { serve(); }).detach();
      } catch (const std::system_error&) {
        break;  // fewer threads are slower, not wrong
      }
      ++helpers_;
    }
  }

  void run(int tasks, const std::function<void(int)>& task) {
    Job job{task, tasks};
    if (helpers_ == 0) {
      job.work();
      return;
    }
    int sleeping = 0;
    {
      std::lock_guard lock(mutex_);
      Job** end = &oldest_;
      while (*end) end = &(*end)->newer;
      *end = &job;
      jobs_.fetch_add(1, std::memory_order_relaxed);
      sleeping = sleeping_;
    }
    if (tasks - 1 >= sleeping) {
      if (sleeping > 0) wake_.notify_all();
    } else {
      for (int i = 1; i < tasks; ++i) wake_.notify_one();
    }
    job.work();
    std::unique_lock lock(mutex_);
    Job** at = &oldest_;
    while (*at != &job) at = &(*at)->newer;
    *at = job.newer;
    if (job.helpers == 0) return;
    lock.unlock();
    watch([&] { return job.helpers.load(std::memory_order_relaxed) == 0; });
    lock.lock();  // whoever was last has let go of the job when the lock is free
    idle_.wait(lock, [&] { return job.helpers == 0; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    bool worked = false;  // since it slept: who is woken in vain goes back to sleep
    for (;;) {
      Job* job = oldest_;
      while (job && !job->open()) job = job->newer;
      if (job) {
        ++job->helpers;
        lock.unlock();
        worked = job->work() || worked;
        lock.lock();
        if (--job->helpers == 0) idle_.notify_all();
        continue;
      }
      if (worked) {
        const std::uint64_t seen = jobs_.load(std::memory_order_relaxed);
        lock.unlock();
        worked = watch([&] { return jobs_.load(std::memory_order_relaxed) != seen; });
        lock.lock();
        continue;
      }
      ++sleeping_;
      wake_.wait(lock);
      --sleeping_;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* oldest_ = nullptr;
  std::atomic<std::uint64_t> jobs_ = 0;  // so far; changed under the mutex
  int helpers_ = 0, sleeping_ = 0;
};

int size_from_environment() {
  const char* text = std::getenv("COSMATI_THREADS");
  if (!text || !*text) return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024);
  int size = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failure] = std::from_chars(text, end, size);
  if (failure != std::errc{} || at != end || size < 1 || size > 1024)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("COSMATI_THREADS is '{}'", text), "a number from 1 to 1024");
  return size;
}

// A pool is never deleted: its threads sleep until the process ends, and a forked child leaves its parent's pool alone.
std::mutex making;
std::atomic<Pool*> current = nullptr;

Pool& pool() {
  if (Pool* made = current.load(std::memory_order_acquire)) return *made;
  const int size = pool_size();
  std::lock_guard lock(making);
  if (Pool* made = current.load(std::memory_order_relaxed)) return *made;
  static const int forks = pthread_atfork([] { making.lock(); }, [] { making.unlock(); },
                                          [] {
                                            current.store(nullptr, std::memory_order_relaxed);
                                            making.unlock();
                                          });
  static_cast<void>(forks);
  Pool* made = new Pool(size);
  current.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

int pool_size() {
  static const int size = size_from_environment();
  return size;
}

void pool_run(int tasks, const std::function<void(int)>& task) {
  if (tasks <= 1 || inside_task) {
    for (int i = 0; i < tasks; ++i) task(i);
  } else {
    pool().run(tasks, task);
  }
}

}  // namespace cosmati::native
