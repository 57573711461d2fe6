// A fixed number of mutexes, so that the handler of a fork can take them all.
// SPDX-License-Identifier: Apache-2.0
#include "support/fork.h"

#include <pthread.h>

#include <array>
#include <cstdint>

namespace cosmati::support {
namespace {

struct alignas(64) Padded {
  std::mutex mutex;
};
using Mutexes = std::array<Padded, 16>;

Mutexes& mutexes() {
  static Mutexes* const made = [] {
    auto* all = new Mutexes;  // never destroyed: sections run in destructors of static objects too
    ::pthread_atfork(
        [] {
          for (Padded& p : mutexes()) p.mutex.lock();
        },
        [] {
          for (Padded& p : mutexes()) p.mutex.unlock();
        },
        [] {
          for (Padded& p : mutexes()) p.mutex.unlock();
        });
    return all;
  }();
  return *made;
}

}  // namespace

std::mutex& short_mutex(const void* owner) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(owner));
  return mutexes()[(bits * 0x9e3779b97f4a7c15u) >> 60].mutex;
}

}  // namespace cosmati::support
