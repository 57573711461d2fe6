// The programs of programs/, embedded at build time: (name, text).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cosmati::library {

const std::vector<std::pair<std::string, std::string_view>>& shipped();

}  // namespace cosmati::library
