// Walks over a program recurse as deep as the program is, which its readers limit. What holds such walks runs here: on the
// caller's stack where that has room for the deepest program, else on a thread that has. The caller waits; nothing of the user's
// runs inside but what may be called from any thread. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>

namespace cosmati::support {

bool has_deep_stack();
// body() on a thread of its own, waited for. It must not throw. Throws std::bad_alloc where there can be no such thread.
void run_on_deep_stack(const std::function<void()>& body);

// body(), and what it returns or throws.
template <class Body>
auto on_deep_stack(const Body& body) {
  using Result = decltype(body());
  if (has_deep_stack()) return body();
  std::exception_ptr failure;
  std::conditional_t<std::is_void_v<Result>, std::optional<int>, std::optional<Result>> result;
  run_on_deep_stack([&] {
    try {
      if constexpr (std::is_void_v<Result>)
        body();
      else
        result.emplace(body());
    } catch (...) {
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
  if constexpr (!std::is_void_v<Result>) return std::move(*result);
}

}  // namespace cosmati::support
