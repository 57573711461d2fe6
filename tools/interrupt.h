// An interrupted tool removes what it has not finished, then ends as the signal would have ended it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <list>
#include <mutex>

namespace cosmati::tools {

// Listens for SIGINT, SIGTERM and SIGHUP from here on; call before there are other threads. Where no thread can be made, and for
// a signal that is ignored, nothing changes.
void listen_for_interrupts();

// While it lives, an interruption waits.
class Uninterrupted {
 public:
  Uninterrupted();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// Done where an interruption comes before the object goes away.
class WhenInterrupted {
 public:
  explicit WhenInterrupted(std::function<void()> action);
  ~WhenInterrupted();
  WhenInterrupted(const WhenInterrupted&) = delete;
  WhenInterrupted& operator=(const WhenInterrupted&) = delete;

 private:
  std::list<std::function<void()>>::iterator at_;
};

}  // namespace cosmati::tools
