// A file is read once a process: a launch must not see rates change under it.
// SPDX-License-Identifier: Apache-2.0
#include "library/profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <cosmati/error.h>
#include <cosmati/machine.h>
#include <nlohmann/json.hpp>

#include "backends/native/native.h"
#include "plan/profile.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "support/fork.h"
#include "support/read_file.h"

namespace cosmati {

std::optional<std::string> profile() {
  using nlohmann::json;
  const std::string file = profile_file();
  std::error_code ignored;
  if (file.empty() || !std::filesystem::exists(file, ignored)) return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_file, Where{file, 0, 0}, "this is no profile of this environment: " + why,
                "run cosmati calibrate again");
  };
  std::string text = support::read_file(file);
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= 8; };  // what nests is walked by recursion
  const json profile = json::parse(text, shallow, false);
  if (!profile.is_object()) refuse("it is no JSON object");
  if (profile.value("kind", json()) != "cosmati-profile" || profile.value("schema", json()) != profile_schema)
    refuse(fmt::format("it is of no schema {}", profile_schema));
  if (profile.value("environment", json()) != json::parse(environment())) refuse("it was measured in another environment");
  try {
    plan::with_profile(plan::example_target(), text);
  } catch (const Error& e) {
    refuse(e.message);
  }
  return text;
}

namespace library {

plan::Target target_of(const Device& device) {
  const Device::Impl& impl = *device.impl();
  plan::Target target = plan::target_named(device.name(), native::workers(impl.cpu));
  if (impl.kind != Device::Impl::Kind::cpu) return target;
  static std::map<std::string, std::string> known;  // texts by file, empty: none that can be used
  const std::string file = profile_file();
  std::string text, problem;
  bool fresh = false;
  {
    std::lock_guard lock(support::short_mutex(&known));
    const auto found = known.find(file);
    fresh = found == known.end();
    if (!fresh) text = found->second;
  }
  if (fresh) {
    try {
      text = profile().value_or("");
    } catch (const Error& e) {
      problem = e.what();
    }
    std::lock_guard lock(support::short_mutex(&known));
    const auto [kept, first] = known.emplace(file, text);
    text = kept->second;
    if (!first) problem.clear();
  }
  if (!problem.empty()) runtime::log(LogLevel::warning, "plans are priced for common cores: " + problem);
  return text.empty() ? target : plan::with_profile(std::move(target), text);
}

}  // namespace library
}  // namespace cosmati
