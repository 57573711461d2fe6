// `cosmati calibrate`: what this machine reaches, measured and kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "tools/report.h"

namespace cosmati::tools {

// Measures bandwidths by cache level and threads, launches, and the throughput of operations in compiled programs, and writes the
// profile to `save`, or where it is empty to profile_file(). Throws Error.
void calibrate(const std::string& save, Report& report);

}  // namespace cosmati::tools
