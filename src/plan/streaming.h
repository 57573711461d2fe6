// streaming: where the streaming rule of the language could apply, for the reader of a plan. Values over an axis that are used
// only through reductions over it, a later one depending on an earlier one's result, could run as one stream with a combined
// state.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::plan {

// One line an axis: the chain of reductions, and the condition that keeps it from being one stream (or that the mapping does not
// stream).
std::vector<std::string> streaming_lines(const ir::Program& program);

}  // namespace cosmati::plan
