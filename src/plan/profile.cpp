// A profile is used whole or not at all. Its figures are of plain loops and of chains of one operation: none is of a program. Of
// several samples the fastest counts, which others on the machine disturbed least.
// SPDX-License-Identifier: Apache-2.0
#include "plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <cosmati/error.h>
#include <nlohmann/json.hpp>

namespace cosmati::plan {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::bad_argument, {}, what); }

class Figures {
 public:
  explicit Figures(const json& profile) : profile_(profile) {}

  // The fastest of `figure` in the last row of a list that has these entries; nothing where no row has.
  std::optional<double> find(const char* list, const json& which, const char* figure) const {
    std::optional<double> found;
    for (const json& row : profile_.at(list)) {
      bool all = true;
      for (const auto& [key, value] : which.items()) all = all && row.at(key) == value;
      if (all) found = row.at(figure).at(figure == std::string_view("us") ? "low" : "high").get<double>();
    }
    // No machine is farther from common ones than this.
    if (found && !(*found > 1e-4 && *found < 1e6)) refuse(fmt::format("{} of {} is {}", figure, list, *found));
    return found;
  }
  double need(const char* list, const json& which, const char* figure) const {
    const std::optional<double> found = find(list, which, figure);
    if (!found) refuse(fmt::format("figures are missing: {} of {}", figure, list));
    return *found;
  }

 private:
  const json& profile_;
};

}  // namespace

Target with_profile(Target t, const std::string& text) try {
  const json profile = json::parse(text);
  const Figures figures(profile);
  t.prices = "the profile of " + profile.at("measured").get<std::string>();
  const double ghz = figures.need("clock", {{"threads", 1}}, "ghz");
  t.cycles_per_us = ghz * 1000;
  // One lane's operations a nanosecond, as cycles of a register.
  const auto busy = [&](const char* operation, kernel::Rates::Cost& cost) {
    const double lanes = t.rates.register_bytes / 4.0;
    cost.busy = lanes * ghz / figures.need("throughput", {{"operation", operation}, {"threads", 1}}, "per_ns");
  };
  busy("add", t.rates.simple);
  busy("fma", t.rates.multiply);
  busy("div", t.rates.divide);

  // A copied byte is read, its target is read and written: three bytes move where the figure counts two.
  const auto bandwidth = [&](const char* level, int threads) {
    std::optional<double> gb_s = figures.find("bandwidth", {{"level", level}, {"threads", threads}}, "copy_gb_s");
    if (gb_s) *gb_s *= 1500;
    return gb_s;
  };
  int all = 1;
  for (const json& row : profile.at("bandwidth")) all = std::max(all, row.at("threads").get<int>());
  constexpr const char* beyond[] = {"L2", "L3", "memory"};
  for (std::size_t level = 0; level < t.bytes_per_us.size(); ++level) {
    const std::optional<double> one = bandwidth(beyond[level], 1), together = bandwidth(beyond[level], all);
    if (level + 1 == t.bytes_per_us.size() && (!one || !together)) refuse("figures are missing: copy_gb_s of bandwidth");
    if (one) t.bytes_per_us[level] = *one;
    if (one || together) t.shared_per_us[level] = together.value_or(*one * t.workers) * t.workers / all;
  }
  // Of a large launch, what is left beside the work that was shared.
  if (all > 1) {
    const double alone = figures.need("launch", {{"elements", 65536}, {"threads", 1}}, "us");
    const double shared = figures.need("launch", {{"elements", 65536}, {"threads", all}}, "us");
    t.start_us = std::clamp(shared - alone / all, 0.2, 100.0);
  }
  return t;
} catch (const json::exception&) {
  refuse("figures are missing");
}

}  // namespace cosmati::plan
