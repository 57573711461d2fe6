// What packaged code may use of a processor beyond the base of its architecture, named as compilers name it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cosmati::native {

std::string architecture();  // "x86_64", "aarch64"; "unknown" for one that no package is made for
// What this processor has of the table.
std::vector<std::string> features();
// The first of `wanted` that this processor is not known to have.
std::optional<std::string> lacking(const std::vector<std::string>& wanted);

}  // namespace cosmati::native
