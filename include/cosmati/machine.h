// What figures and tuned plans are only good for: this machine under this library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <cosmati/export.h>

namespace cosmati {

// A JSON object that tells it from others as far as speed goes: {"cores": 2, "library": "0.1.0", "processor": "..."}. A plan that
// carries one under "environment" is used elsewhere with a warning (set_log).
COSMATI_API std::string environment();

// The file in the cache directory that `cosmati calibrate` keeps its profile of this environment in; empty where neither
// COSMATI_CACHE_DIR, XDG_CACHE_HOME nor HOME names a directory.
COSMATI_API std::string profile_file();

}  // namespace cosmati
