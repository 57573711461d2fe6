// What other languages call things, and what is written here: the hints of names that nothing declares.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace cosmati::language {

// Each is empty for a name that no row has.
std::string_view function_elsewhere(std::string_view name);  // relu: write maximum(x, 0)
std::string_view value_elsewhere(std::string_view name);     // True: write true
std::string_view pair_of(std::string_view reducer);          // max: maximum(x, y), the same of two values
std::string_view symbol_elsewhere(char c);                   // ?: write where(c, x, y)

}  // namespace cosmati::language
