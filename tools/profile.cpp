// The few figures that a line has room for.
// SPDX-License-Identifier: Apache-2.0
#include "tools/profile.h"

#include <fmt/format.h>

#include <cosmati/error.h>
#include <cosmati/machine.h>

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
  const std::optional<std::string> text = profile();
  if (!text) return std::nullopt;
  Json read = Json::parse(*text);
  try {
    profile_summary(read);
  } catch (const Json::exception&) {
    throw Error(ErrorCode::bad_file, Where{profile_file(), 0, 0}, "this is no profile of this environment: figures are missing",
                "run cosmati calibrate again");
  }
  return read;
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
