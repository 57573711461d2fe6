// The room is what lies below the frame that asks. A frame outside of the stack that the system gave its thread is one of a
// fiber, whose end nothing tells. SPDX-License-Identifier: Apache-2.0
#include "support/deep_stack.h"

#include <pthread.h>
#include <signal.h>

#include <cstdint>
#include <new>

namespace cosmati::support {
namespace {

constexpr std::size_t enough = std::size_t{6}
                               << 20;  // a main thread has it; deep programs take up to a third where code is optimised
constexpr std::size_t deep = std::size_t{64} << 20;  // of addresses: memory is taken as it is touched

struct Bounds {
  std::uintptr_t lo = 0, hi = 0;
};

Bounds bounds_of_this_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lo = nullptr;
  std::size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lo, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!known) return {};
  return {reinterpret_cast<std::uintptr_t>(lo), reinterpret_cast<std::uintptr_t>(lo) + size};
}

void* call(void* body) {
  (*static_cast<const std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

bool has_deep_stack() {
  thread_local const Bounds stack = bounds_of_this_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return stack.lo <= here && here < stack.hi && here - stack.lo >= enough;
}

void run_on_deep_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) throw std::bad_alloc();
  // Signals are for the threads of the process, and who waits here must not end before the thread does.
  sigset_t all, before;
  sigfillset(&all);
  int cancels = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool made = pthread_attr_setstacksize(&attributes, deep) == 0 &&
                    pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&body)) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (made) pthread_join(thread, nullptr);
  pthread_setcancelstate(cancels, nullptr);
  if (!made) throw std::bad_alloc();
}

}  // namespace cosmati::support
