// A profile is used whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "tools/profile.h"

#include <fmt/format.h>

#include <filesystem>

#include <cosmati/error.h>
#include <cosmati/machine.h>

#include "support/read_file.h"

namespace cosmati::tools {
namespace {

using Json = nlohmann::ordered_json;

// Null where a number is missing.
const Json* find(const Json& profile, const char* list, const Json& which) {
  const Json* last = nullptr;
  for (const Json& row : profile.at(list)) {
    bool all = true;
    for (const auto& [key, value] : which.items()) all = all && row.at(key) == value;
    if (all) last = &row;
  }
  return last;
}

}  // namespace

std::optional<Json> read_profile() {
  const std::string file = profile_file();
  std::error_code ignored;
  if (file.empty() || !std::filesystem::exists(file, ignored)) return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_file, Where{file, 0, 0}, "this is no profile of this environment: " + why,
                "run cosmati calibrate again");
  };
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {  // what nests is walked by recursion
    return depth <= 8;
  };
  Json profile = Json::parse(support::read_file(file), shallow, false);
  if (!profile.is_object()) refuse("it is no JSON object");
  if (profile.value("kind", Json()) != "cosmati-profile" || profile.value("schema", Json()) != profile_schema)
    refuse(fmt::format("it is of no schema {}", profile_schema));
  if (profile.value("environment", Json()) != Json::parse(environment())) refuse("it was measured in another environment");
  try {
    static_cast<void>(profile.at("measured").get<std::string>());
    profile_summary(profile);
  } catch (const Json::exception&) {
    refuse("figures are missing");
  }
  return profile;
}

std::string profile_summary(const Json& profile) {
  const Json *copy = find(profile, "bandwidth", {{"level", "memory"}}),
             *launch = find(profile, "launch", {{"threads", 1}, {"elements", 16}});
  const Json *exp = find(profile, "throughput", {{"operation", "exp"}}),
             *div = find(profile, "throughput", {{"operation", "div"}});
  if (!copy || !launch || !exp || !div) throw Json::other_error::create(501, "a figure is missing", nullptr);
  return fmt::format("memory {:.1f} GB/s copied by {} thread{}, launch {:.2f} us, exp {:.2f} and div {:.2f} per ns",
                     copy->at("copy_gb_s").at("median").get<double>(), copy->at("threads").get<int>(),
                     copy->at("threads") == 1 ? "" : "s", launch->at("us").at("median").get<double>(),
                     exp->at("per_ns").at("median").get<double>(), div->at("per_ns").at("median").get<double>());
}

}  // namespace cosmati::tools
