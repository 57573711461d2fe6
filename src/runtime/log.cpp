// The callback of the process.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/log.h"

#include <memory>

#include "support/fork.h"

namespace cosmati {
namespace {

struct Listener {
  std::shared_ptr<const LogCallback> callback;
};

Listener& listener() {
  static auto* const made = new Listener;  // messages may come from destructors of static objects
  return *made;
}

std::shared_ptr<const LogCallback> current() {
  std::lock_guard lock(support::short_mutex(&listener()));
  return listener().callback;
}

}  // namespace

void set_log(LogCallback callback) {
  auto next = callback ? std::make_shared<const LogCallback>(std::move(callback)) : nullptr;
  std::lock_guard lock(support::short_mutex(&listener()));
  listener().callback.swap(next);  // the old one dies outside of the lock
}

namespace runtime {

bool is_logged() { return current() != nullptr; }

void log(LogLevel level, const std::string& message) {
  try {
    if (const auto callback = current()) (*callback)(level, message);
  } catch (...) {
  }
}

}  // namespace runtime
}  // namespace cosmati
