// Read from the environment every time: tests and hosts change it.
// SPDX-License-Identifier: Apache-2.0
#include "library/cache_directory.h"

#include <cstdlib>

namespace cosmati::library {

std::string cache_directory() {
  const auto absolute = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value && *value == '/' ? value : "";
  };
  if (const char* named = std::getenv("COSMATI_CACHE_DIR")) return named;
  if (const std::string xdg = absolute("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/cosmati";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/cosmati";
  return "";
}

}  // namespace cosmati::library
