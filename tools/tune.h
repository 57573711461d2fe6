// `cosmati tune`: a search for a faster plan by measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "tools/commands.h"

namespace cosmati::tools {

struct TuneOptions {
  double minutes = 1;     // for everything: oracle, search, confirmation
  std::int64_t most = 0;  // settings to try at most; 0: as many as there is time for
  std::string save;       // empty: PROGRAM.plan.json
};

// Tries settings of the knobs that --set leaves open, each held against the oracle before it is timed, in paired rounds beside
// the default plan; measures the best again, and saves the plan of the one that is best then. Throws Error.
void tune(const Invocation& invocation, const TuneOptions& options, Report& report);

}  // namespace cosmati::tools
