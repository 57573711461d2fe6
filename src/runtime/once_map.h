// Values that are expensive to make, made once a key: different keys in parallel, and who asks for a value in the making waits
// for it. A forked child makes again what another thread of its parent was making. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "support/fork.h"

namespace cosmati::runtime {

template <class Value>
class OnceMap {
 public:
  // The value of a key; `make` is called where there is none, and what it throws goes to its caller only: the next one tries
  // again.
  template <class Make>
  std::shared_ptr<const Value> get(const std::string& key, const Make& make) {
    std::shared_ptr<Slot> slot;
    {
      std::lock_guard lock(mutex());
      std::shared_ptr<Slot>& at = slots_[key];
      if (!at) at = std::make_shared<Slot>();
      slot = at;
    }
    for (;;) {
      {
        std::lock_guard lock(mutex());
        if (slot->value) return slot->value;
        if (slot->making == 0 || slot->maker != ::getpid()) {
          slot->making = 1;
          slot->maker = ::getpid();
          break;
        }
      }
      slot->making.wait(1);
    }
    std::shared_ptr<const Value> made;
    try {
      made = make();
    } catch (...) {
      finish(*slot, nullptr);
      throw;
    }
    finish(*slot, made);
    return made;
  }

  // The value of a key that has one.
  std::shared_ptr<const Value> find(const std::string& key) const {
    std::lock_guard lock(mutex());
    const auto at = slots_.find(key);
    return at == slots_.end() ? nullptr : at->second->value;
  }

 private:
  struct Slot {
    std::atomic<int> making = 0;  // what waiters look at; changed under the mutex
    ::pid_t maker = 0;
    std::shared_ptr<const Value> value;
  };
  std::mutex& mutex() const { return support::short_mutex(this); }
  void finish(Slot& slot, std::shared_ptr<const Value> value) {
    {
      std::lock_guard lock(mutex());
      slot.value = std::move(value);
      slot.making = 0;
    }
    slot.making.notify_all();
  }

  std::map<std::string, std::shared_ptr<Slot>> slots_;
};

}  // namespace cosmati::runtime
