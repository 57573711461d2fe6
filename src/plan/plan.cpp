// The plan file: canonical JSON (sorted keys, no floats), hashed without its own hash.
// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <cosmati/error.h>
#include <nlohmann/json.hpp>

#include "ir/describe.h"
#include "plan/choose.h"
#include "plan/streaming.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/overloaded.h"

namespace cosmati::plan {
namespace {

using nlohmann::json;

constexpr int schema = 1;

std::string root_text(const ir::Program& p, const Root& root) {
  return std::visit(support::overloaded{[&](const StoreRoot& r) { return "store " + p[p.stores[r.store].tensor].name; },
                                        [&](const KeepRoot& r) { return "keep " + ir::describe(p, r.value); },
                                        [&](const PartRoot& r) { return "parts of " + ir::describe(p, r.reduce); },
                                        [&](const StreamRoot& r) { return "stream " + p[p[r.stream].axis].name; },
                                        [&](const FillRoot& r) { return "complete " + ir::describe(p, r.value); }},
                    root);
}

json body(const ir::Program& program, const Plan& plan) {
  json j;
  j["schema"] = schema;
  j["program"] = plan.program;
  j["program_hash"] = plan.program_hash;
  j["target"] = plan.target;
  j["knobs"] = plan.knobs;
  j["domain"] = domain(program, plan);
  j["mapping"] = mapping_lines(program, plan);
  return j;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::bad_plan, {}, what, "make a new plan with `cosmati plan ... --save FILE`");
}

json parse(const std::string& text) {
  // What is printed is walked by recursion; a plan nests three deep.
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > 16) refuse("the plan is nested too deeply");
    return true;
  };
  json j = json::parse(text, shallow, false);
  if (j.is_discarded() || !j.is_object()) refuse("the plan is not a JSON object");
  return j;
}

// A value of a plan for a message.
std::string shown(const json& value) {
  constexpr std::size_t longest = 400;
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

}  // namespace

namespace {

std::string text_of(const Knobs& knobs) {
  std::string text;
  for (const auto& [knob, value] : knobs) text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob, value);
  return text.empty() ? "the rule" : text;
}

// The terms, the runners-up, and what was refused.
std::string price_text(const Plan& plan) {
  if (plan.candidates.empty()) return "";
  constexpr std::size_t shown_candidates = 3;
  std::string text = fmt::format("  cost {:.3g} us: compute {:.3g}, memory {:.3g}, start {:.3g}\n", plan.cost.total_us,
                                 plan.cost.compute_us, plan.cost.memory_us, plan.cost.start_us);
  text += fmt::format("  the cheapest of {} candidates", plan.candidates.size());
  for (std::size_t i = 1; i < std::min(plan.candidates.size(), shown_candidates + 1); ++i)
    text += fmt::format("{} {} ({:.3g} us)", i == 1 ? "; next:" : ",", text_of(plan.candidates[i].knobs),
                        plan.candidates[i].total_us);
  text += "\n";
  for (const auto& [reason, count] : plan.refusals) text += fmt::format("  refused {}: {}\n", count, reason);
  return text;
}

// The instances are told apart once for all nests; of the other axes every nest places its own.
void check_placement(const ir::Program& program, const Phase& phase) {
  // Extents whose product is a number.
  const auto largest = static_cast<std::int64_t>(std::exp2(60.0 / static_cast<double>(program.axes.size() + 1)));
  std::vector<place::Placement> parts(1);
  for (const place::AxisMap& map : phase.placement.axes) {
    const auto& instances = phase.instance_axes;
    if (std::find(instances.begin(), instances.end(), map.axis) != instances.end())
      parts[0].axes.push_back(map);
    else
      parts.push_back({{map}});
  }
  for (const place::Placement& part : parts)
    for (const std::int64_t extent :
         {std::int64_t{1}, std::min<std::int64_t>(7, largest), std::min<std::int64_t>(1000, largest)}) {
      const std::string wrong = place::ill_formed(part, std::vector<std::int64_t>(program.axes.size(), extent));
      COSMATI_CHECK(wrong.empty(), "phase {}: {}: {}", phase.name, place::print(part, program), wrong);
    }
}

}  // namespace

Mapping derive(const ir::Program& program, const Target& target, const Knobs& knobs, const Facts& facts) {
  Mapping mapping = universal(program, knobs, facts.aliases);
  put_on_lanes(program, mapping, choose_lanes(program, mapping, facts, target, knobs));
  require_used(program, mapping, knobs);
  for (const Phase& phase : mapping.phases) check_placement(program, phase);
  return mapping;
}

Plan make_plan(const ir::Program& program, const std::string& text, const std::string& target, const Knobs& knobs,
               const Facts& facts) {
  return {program.name, support::hash(text), target, knobs, facts, derive(program, target_named(target), knobs, facts)};
}

std::vector<std::string> domain(const ir::Program& program, const Plan& plan) {
  std::vector<std::string> conditions;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const ir::Tensor& tensor = program.tensors[t];
    conditions.push_back(fmt::format("{}: {}, {} dimension{}", tensor.name, name(tensor.dtype), tensor.dims.size(),
                                     tensor.dims.size() == 1 ? "" : "s"));
    for (std::size_t d = 0; d < tensor.dims.size(); ++d)
      if (plan.facts.unit_stride[t][d]) conditions.push_back(fmt::format("stride({}, {}) == 1 or extent <= 1", tensor.name, d));
  }
  for (const auto& [in, out] : plan.facts.aliases)
    conditions.push_back(fmt::format("{} is exactly {}", program[out].name, program[in].name));
  return conditions;
}

std::vector<std::string> mapping_lines(const ir::Program& program, const Plan& plan) {
  std::vector<std::string> lines;
  for (const Phase& phase : plan.mapping.phases) {
    std::string roots;
    for (const Root& root : phase.roots) roots += (roots.empty() ? "" : ", ") + root_text(program, root);
    std::string instances;
    for (ir::AxisId axis : phase.instance_axes) instances += (instances.empty() ? "" : ", ") + program[axis].name;
    lines.push_back(fmt::format("phase {}: {}; instances {}; {}", phase.name, place::print(phase.placement, program),
                                instances.empty() ? "one" : "of " + instances, roots));
  }
  for (const auto& [value, home] : plan.mapping.homes)
    lines.push_back(fmt::format("home {}: {}", ir::describe(program, value),
                                home == Home::worker   ? "worker"
                                : home == Home::launch ? "launch"
                                                       : "reload"));
  for (ir::ValueId v : plan.mapping.two_passes) lines.push_back(fmt::format("two passes: {}", ir::describe(program, v)));
  for (std::string& line : streaming_lines(program)) lines.push_back(std::move(line));
  return lines;
}

std::string to_json(const ir::Program& program, const Plan& plan) {
  json j = body(program, plan);
  j["hash"] = support::hash(j.dump());
  // What it was chosen by is told, and does not bind who replays it.
  const auto rounded = [](double us) { return std::round(us * 1000) / 1000; };
  j["cost_us"] = nullptr;
  if (!plan.candidates.empty())
    j["cost_us"] = {{"compute", rounded(plan.cost.compute_us)},
                    {"memory", rounded(plan.cost.memory_us)},
                    {"start", rounded(plan.cost.start_us)},
                    {"total", rounded(plan.cost.total_us)}};
  j["candidates"] = json::array();
  for (const Plan::Priced& c : plan.candidates) j["candidates"].push_back({{"knobs", c.knobs}, {"cost_us", rounded(c.total_us)}});
  j["refusals"] = json::array();
  for (const auto& [reason, count] : plan.refusals) j["refusals"].push_back({{"reason", reason}, {"count", count}});
  return j.dump(2);
}

std::string to_text(const ir::Program& program, const Plan& plan) {
  std::string text = fmt::format("plan of {} for {}\n", plan.program, plan.target);
  for (const std::string& line : mapping_lines(program, plan)) text += "  " + line + "\n";
  for (const auto& [knob, value] : plan.knobs) text += fmt::format("  knob {} = {}\n", knob, value);
  text += price_text(plan);
  text += "  domain:\n";
  for (const std::string& condition : domain(program, plan)) text += "    " + condition + "\n";
  return text;
}

Knobs knobs_of(const std::string& text) {
  json j = parse(text);
  if (!j.contains("schema") || j["schema"] != schema) refuse(fmt::format("the plan is not of schema {}", schema));
  if (!j.contains("knobs") || !j["knobs"].is_object()) refuse("the plan has no knobs");
  Knobs knobs;
  for (const auto& [name, value] : j["knobs"].items()) {
    if (!value.is_string()) refuse(fmt::format("knob {} of the plan is not text", name));
    knobs[name] = value.get<std::string>();
  }
  return knobs;
}

void require_same(const ir::Program& program, const Plan& derived, const std::string& text) {
  json given = parse(text), made = parse(to_json(program, derived));
  for (const char* key : {"schema", "program", "program_hash", "target", "knobs", "domain", "mapping", "hash"}) {
    if (!given.contains(key)) refuse(fmt::format("the plan has no `{}`", key));
    if (given[key] != made[key])
      refuse(fmt::format("the plan's {} is {}, but these arguments give {}", key, shown(given[key]), shown(made[key])));
  }
}

}  // namespace cosmati::plan
