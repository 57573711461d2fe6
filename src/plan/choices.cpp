// The planner itself says what is legal: every value is tried in a plan, and one that it refuses is left out.
// SPDX-License-Identifier: Apache-2.0
#include "plan/choices.h"

#include <array>

#include "ir/describe.h"
#include "plan/plan.h"

namespace cosmati::plan {
namespace {

constexpr std::array lane_counts = {"1", "2", "4", "8", "16", "32"};
constexpr std::array thread_counts = {"1", "8", "32", "64", "96", "128", "192", "256", "384", "512", "768", "1024"};
constexpr std::array vectors = {"1", "2", "4", "8", "16"};
constexpr std::array packed_counts = {"1", "2", "4", "8"};
constexpr std::array tiles = {"1", "2", "3", "4", "6", "8", "12", "16"};
constexpr std::array splits = {"1", "2", "4", "8", "16", "64", "256"};
constexpr std::array chunks = {"1", "4", "16", "64", "256", "1024", "4096"};

class Trial {
 public:
  Trial(const ir::Program& program, const Target& target, const Facts& facts) : derived_(program, target, facts) {}

  bool legal(const Knobs& knobs) { return bool(derived_(knobs)); }

  template <class Values>
  Choice of(const std::string& knob, const Values& values) {
    Choice choice{knob, {}, {}};
    for (const std::string_view value : values)
      if (legal({{knob, std::string(value)}})) choice.values.emplace_back(value);
    return choice;
  }

 private:
  Derivations derived_;
};

}  // namespace

std::vector<Choice> choices(const ir::Program& p, const Target& target, const Facts& facts) {
  Trial trial(p, target, facts);
  std::vector<Choice> all;
  const auto add = [&](Choice choice) {
    if (choice.values.size() > 1) all.push_back(std::move(choice));
  };

  for (const auto& [name, value] : p.names)
    if (!ir::is_automatic_name(name)) add(trial.of("home." + name, std::array{"reload", "worker"}));

  const bool threads = target.subgroup > 0;
  Choice lanes = threads ? trial.of("lanes", thread_counts) : trial.of("lanes", lane_counts);
  lanes.automatic = std::to_string(target.lanes);
  add(std::move(lanes));

  std::vector<std::string> axes, on_lanes, orders = {"none"};
  for (const ir::Axis& axis : p.axes)
    if (!axis.piece) axes.push_back(axis.name);
  for (const std::string& axis : axes)
    if (trial.legal({{"lane_axes", axis}})) on_lanes.push_back(axis);
  orders.insert(orders.end(), on_lanes.begin(), on_lanes.end());
  for (const std::string& first : on_lanes)
    for (const std::string& second : on_lanes) {
      if (first == second) continue;
      const std::string two = first + "," + second;
      orders.push_back(two);
      for (const std::string& third : on_lanes)
        if (third != first && third != second) orders.push_back(two + "," + third);
    }
  add(trial.of("lane_axes", orders));
  if (!on_lanes.empty()) {  // what takes one element at a time neither passes the caches nor is fetched ahead
    add(trial.of("stores", std::array{"cached", "past_caches"}));
    add(trial.of("ahead", std::array{"none", "group"}));
  }

  for (const std::string& axis : axes) add(trial.of("tile." + axis, tiles));
  if (threads) {
    for (const std::string& axis : axes) add(trial.of("vector." + axis, vectors));
    add(trial.of("packed", packed_counts));
    std::vector<std::string> whole = {"none"};
    for (const std::string& axis : axes) {
      if (!trial.legal({{"resident", axis}})) continue;
      whole.push_back(axis);
      Choice full{"full." + axis, {}, {}};
      for (const std::string value : tiles)
        if (trial.legal({{full.knob, value}, {"resident", axis}, {"tile." + axis, std::string(tiles.back())}}))
          full.values.push_back(value);
      add(std::move(full));
    }
    add(trial.of("resident", whole));
  }
  for (const std::string& axis : axes) add(trial.of("split." + axis, splits));
  for (const std::string& axis : axes) add(trial.of("accumulate." + axis, splits));
  for (const std::string& axis : axes) {
    Choice choice{"chunk." + axis, {}, {}};
    for (const std::string value : chunks)
      if (trial.legal({{choice.knob, value}}) || trial.legal({{choice.knob, value}, {"lane_axes", axis}}))
        choice.values.push_back(value);
    add(std::move(choice));
  }
  return all;
}

}  // namespace cosmati::plan
