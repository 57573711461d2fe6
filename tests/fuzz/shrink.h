// Runs that may end in a signal, and programs made smaller while they still fail the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "fuzz/execute.h"
#include "fuzz/tree.h"

namespace cosmati::fuzz {

// Runs a case in a process of its own; a signal or more than `seconds` is a failure. What it counts is added to `counts`, if any.
std::optional<Failure> execute_apart(const Case& c, int seconds = 30, Counts* counts = nullptr);

struct Shrunk {
  Case smallest;
  Failure failure;
  int tried = 0;
};
// `failing` is the case of `tree`. Stops after `seconds`.
Shrunk shrink(const Case& failing, Tree tree, const Failure& failure, int seconds);

}  // namespace cosmati::fuzz
