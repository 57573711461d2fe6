// inline_replaces: rewrites every v[a := e] on a computed value by evaluating v at the replaced coordinates.
// In: a verified program. Out: the same meaning; Replace remains only directly around the final or carried value of a stream, on
// axes that the carried value is an array over. A guarded Replace becomes a `where`, and the loads it guards get an `otherwise`.
// Runs before planning, so that homes and phases are chosen for values that are really evaluated.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/program.h"

namespace cosmati::ir {

Program inline_replaces(const Program& program);

// The axes that a carried value is an array over: those of the carry that are neither program axes nor stream pieces.
AxisSet array_axes(const Program& p, StreamId stream, std::uint32_t slot);

}  // namespace cosmati::ir
