// What figures and tuned plans are only good for: this machine under this library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include <cosmati/export.h>

namespace cosmati {

// A JSON object that tells it from others as far as speed goes: {"cores": 2, "library": "0.1.0", "processor": "..."}. A plan that
// carries one under "environment" is used elsewhere with a warning (set_log).
COSMATI_API std::string environment();

// The file in the cache directory that `cosmati calibrate` keeps its profile of this environment in; empty where neither
// COSMATI_CACHE_DIR, XDG_CACHE_HOME nor HOME names a directory.
COSMATI_API std::string profile_file();

inline constexpr int profile_schema = 2;  // of the file

// The text of that file: rates of this machine as JSON, by which the planner prices its candidates. Nothing where there is no
// file. Throws Error{bad_file} for a file that is no profile of this environment, saying why; a Function warns (set_log), and
// takes rates of common processors instead. Functions read it once a process.
COSMATI_API std::optional<std::string> profile();

}  // namespace cosmati
