// A thread waits for the signals, so what it does then may be anything.
// SPDX-License-Identifier: Apache-2.0
#include "tools/interrupt.h"

#include <csignal>
#include <system_error>
#include <thread>

namespace cosmati::tools {
namespace {

struct Interrupts {
  std::recursive_mutex mutex;
  std::list<std::function<void()>> actions;
};

Interrupts& interrupts() {
  static auto* const all = new Interrupts;  // the waiting thread outlives everything
  return *all;
}

void wait_for(const sigset_t& signals) {
  int signal = 0;
  if (::sigwait(&signals, &signal) != 0) return;
  const Uninterrupted alone;
  for (const auto& action : interrupts().actions) action();
  std::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  ::raise(signal);
}

}  // namespace

void listen_for_interrupts() {
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  try {
    std::thread([signals] { wait_for(signals); }).detach();
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

Uninterrupted::Uninterrupted() : lock_(interrupts().mutex) {}

WhenInterrupted::WhenInterrupted(std::function<void()> action) {
  const Uninterrupted alone;
  at_ = interrupts().actions.insert(interrupts().actions.end(), std::move(action));
}

WhenInterrupted::~WhenInterrupted() {
  const Uninterrupted alone;
  interrupts().actions.erase(at_);
}

}  // namespace cosmati::tools
