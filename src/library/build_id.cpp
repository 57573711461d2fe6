// The hash is made by cmake/build_id.cmake whenever a source changes.
// SPDX-License-Identifier: Apache-2.0
#include "library/build_id.h"

namespace cosmati::library {

std::string_view build_id() {
  return
#include "build_id.inc"
      ;
}

}  // namespace cosmati::library
