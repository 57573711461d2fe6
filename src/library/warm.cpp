// warm: makes kernels ahead of their first call, several at a time.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "library/function.h"
#include "runtime/within_memory.h"

namespace cosmati {
namespace {

// body(0) .. body(count - 1) on `threads` threads, this one included.
template <class Body>
void in_parallel(std::size_t count, std::size_t threads, const Body& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) body(i);
  };
  std::vector<std::thread> others;
  try {
    for (std::size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(work);
  } catch (const std::system_error&) {  // fewer threads take longer
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace

void Function::warm(const std::vector<Arguments>& sets, int threads,
                    const std::function<void(const WarmProgress&)>& progress) const {
  const std::shared_ptr<Impl> impl = impl_;
  if (threads < 0) throw Error(ErrorCode::bad_argument, {}, "warm() cannot use a negative number of threads", "0 for all cores");
  std::size_t wanted = threads > 0 ? static_cast<std::size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> failures(sets.size());
  std::mutex telling;
  std::size_t done = 0;
  in_parallel(sets.size(), wanted, [&](std::size_t i) {
    try {
      const auto start = std::chrono::steady_clock::now();
      const auto got = runtime::within_memory(impl->instances.program(), [&] {
        const auto [bound, facts, shape] = impl->sketch(runtime::match(impl->signature(), sets[i]));
        return impl->kernels.get(*bound.instance, facts, shape);
      });
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      std::lock_guard lock(telling);
      ++done;
      if (progress) progress({done, sets.size(), got.kernel->image.name, got.compiled, took.count()});
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace cosmati
