// The processor by its own name and numbers, since virtual machines give many the same name.
// SPDX-License-Identifier: Apache-2.0
#include "library/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include <cosmati/machine.h>
#include <cosmati/version.h>
#include <nlohmann/json.hpp>

#include "library/cache_directory.h"
#include "runtime/log.h"
#include "support/hash.h"

namespace cosmati {
namespace {

using nlohmann::json;

// What /proc/cpuinfo says of the first core.
std::string processor() {
  constexpr const char* fields[] = {"model name",      "cpu family",  "model",   "stepping",
                                    "CPU implementer", "CPU variant", "CPU part"};
  std::ifstream facts("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(facts, line) && !line.empty();) {
    const std::size_t colon = line.find(": "), end = line.find_last_not_of(" \t", line.find(':') - 1);
    if (colon == line.npos || end == line.npos) continue;
    const std::string name = line.substr(0, end + 1), value = line.substr(colon + 2);
    for (const char* field : fields)
      if (name == field) text += (text.empty() ? "" : ", ") + (name == "model name" ? value : name + " " + value);
  }
  if (!text.empty()) return text;
  utsname machine = {};
  return ::uname(&machine) == 0 ? std::string(machine.sysname) + " " + machine.machine : "unknown";
}

json described() {
  return {{"processor", processor()}, {"cores", std::max(1u, std::thread::hardware_concurrency())}, {"library", COSMATI_VERSION}};
}

}  // namespace

std::string environment() {
  static const std::string text = described().dump(-1, ' ', false, json::error_handler_t::replace);
  return text;
}

std::string profile_file() {
  const std::string directory = library::cache_directory();
  return directory.empty() ? "" : fmt::format("{}/profile-cpu-{}.json", directory, support::hash(environment()));
}

namespace library {

void warn_of_another_environment(const std::string& plan) {
  const json j = json::parse(plan, nullptr, false);
  if (!j.is_object() || !j.contains("environment")) return;
  const json &theirs = j["environment"], ours = json::parse(environment());
  for (const auto& [field, value] : ours.items()) {
    const auto other = theirs.find(field);
    const bool given = theirs.is_object() && other != theirs.end();
    if (given && *other == value) continue;
    const bool shown = given && (other->is_string() || other->is_number());  // what nests is walked by recursion
    runtime::log(
        LogLevel::warning,
        fmt::format("the plan was tuned in another environment: {} {}, here {}; it may be slower than the default plan", field,
                    shown ? other->dump(-1, ' ', false, json::error_handler_t::replace) : "unknown", value.dump()));
    return;
  }
}

}  // namespace library
}  // namespace cosmati
