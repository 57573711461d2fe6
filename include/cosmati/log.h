// What the library has to say besides errors. It never writes to standard output or standard error by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include <cosmati/export.h>

namespace cosmati {

// info: a kernel was compiled, or read from the disk cache. warning: something is broken or missing, and work goes on without it.
enum class LogLevel : std::uint8_t { info, warning };

// One message without a newline. Called from any thread, several at once; what it throws is dropped.
using LogCallback = std::function<void(LogLevel, const std::string& message)>;

// The callback of the process; an empty one (as at the start) drops every message. Thread-safe: a call in progress ends with the
// callback it began with.
COSMATI_API void set_log(LogCallback callback);

}  // namespace cosmati
