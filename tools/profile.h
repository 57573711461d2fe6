// The profile of this environment: what `cosmati calibrate` measured, in a file of the cache directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cosmati::tools {

// cosmati::profile() as JSON, with all that a summary shows. Throws Error{bad_file}.
std::optional<nlohmann::ordered_json> read_profile();

// The figures that most depends on, in one line: "memory 21.3 GB/s copied by 2 threads, launch 0.31 us, exp 2.1 and div 4.0 per
// ns".
std::string profile_summary(const nlohmann::ordered_json& profile);

}  // namespace cosmati::tools
