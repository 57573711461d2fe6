// shipped_programs.inc is generated from programs/*.tile by the build: one PROGRAM(name, text) row a file.
// SPDX-License-Identifier: Apache-2.0
#include "library/shipped.h"

namespace cosmati::library {

const std::vector<std::pair<std::string, std::string_view>>& shipped() {
  static const std::vector<std::pair<std::string, std::string_view>> programs = {
#define PROGRAM(name, text) {#name, text},
#include "shipped_programs.inc"
#undef PROGRAM
  };
  return programs;
}

}  // namespace cosmati::library
