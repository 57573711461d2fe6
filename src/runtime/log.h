// What goes to the callback of <cosmati/log.h>.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <cosmati/log.h>

namespace cosmati::runtime {

void log(LogLevel level, const std::string& message);  // thread-safe; never throws
bool is_logged();                                      // whether anybody listens

}  // namespace cosmati::runtime
