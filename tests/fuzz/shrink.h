// Runs that may end in a signal, and programs made smaller while they still fail the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "fuzz/execute.h"
#include "fuzz/tree.h"

namespace cosmati::fuzz {

// Of a process that runs programs: far above what a small program needs, so that one that asks for more, and memory that outlives
// programs, fail as an allocation. Sanitizers reserve more than this at their start: nothing is limited under them.
void limit_memory();

// Runs a case in a process of its own; a signal, more than `seconds`, or too much memory is a failure. What it counts is added to
// `counts`, if any.
std::optional<Failure> execute_apart(const Case& c, int seconds = 30, Counts* counts = nullptr);

struct Shrunk {
  Case smallest;
  Failure failure;
  int tried = 0;
};
// `failing` is the case of `tree`. Stops after `seconds`.
Shrunk shrink(const Case& failing, Tree tree, const Failure& failure, int seconds);

}  // namespace cosmati::fuzz
