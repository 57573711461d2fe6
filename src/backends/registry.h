// Which backends this build has: one row each, and why a row is absent.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace cosmati::backends {

struct Backend {
  std::string name;
  bool present;
  std::string detail;  // what it runs on, or why it is absent
};

// In the order in which they are shown.
std::vector<Backend> list();
// Throws Error{backend_absent} where the row of that name is not present.
void require(const std::string& name);

}  // namespace cosmati::backends
