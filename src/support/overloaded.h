// Exhaustive match over a closed std::variant: std::visit(overloaded{...}, node).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <variant>

namespace cosmati::support {

template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

}  // namespace cosmati::support
