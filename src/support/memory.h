// How much memory there is. Virtual memory is handed out freely; touching more than there is ends the process without an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstdint>

namespace cosmati::support {

inline std::int64_t machine_memory() {
  static const std::int64_t bytes =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(::sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace cosmati::support
