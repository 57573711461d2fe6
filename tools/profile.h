// The profile of this environment: what `cosmati calibrate` measured, in a file of the cache directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cosmati::tools {

constexpr int profile_schema = 1;

// Nothing where there is none. Throws Error{bad_file} for a file that is not the profile of this environment, saying why.
std::optional<nlohmann::ordered_json> read_profile();

// The figures that most depends on, in one line: "memory 21.3 GB/s copied by 2 threads, launch 0.31 us, exp 2.1 and div 4.0 per
// ns".
std::string profile_summary(const nlohmann::ordered_json& profile);

}  // namespace cosmati::tools
