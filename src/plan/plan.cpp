// The plan file: canonical JSON (sorted keys, no floats), hashed without its own hash.
// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <cosmati/error.h>
#include <nlohmann/json.hpp>

#include "ir/describe.h"
#include "plan/choose.h"
#include "plan/legal.h"
#include "plan/streaming.h"
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
                                        [&](const AccumulateRoot& r) { return "accumulate " + ir::describe(p, r.reduce); },
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

std::string text_of(const Cost& cost) {
  return fmt::format("{:.3g} us: compute {:.3g}, memory {:.3g}, start {:.3g}", cost.total_us, cost.compute_us, cost.memory_us,
                     cost.start_us);
}

// The terms of the chosen one and the next, and what was refused: by reason, with the first that it happened to.
std::string price_text(const Plan& plan) {
  if (plan.candidates.empty()) return "";
  constexpr std::size_t shown_candidates = 3;
  std::string text = fmt::format("  cost {}, by rates of {}\n", text_of(plan.candidates.front().cost), plan.prices);
  text += fmt::format("  chosen of {} candidates: the first about as cheap as the cheapest", plan.candidates.size());
  text += plan.left_out == 0 ? "\n" : fmt::format(", {} not tried\n", plan.left_out);
  for (std::size_t i = 1; i < std::min(plan.candidates.size(), shown_candidates + 1); ++i)
    text += fmt::format("  next {}: {}\n", text_of(plan.candidates[i].knobs), text_of(plan.candidates[i].cost));
  std::map<place::Reason, std::pair<int, const Refusal*>> counted;
  for (const Refusal& r : plan.refusals) {
    auto& [count, first] = counted.try_emplace(r.refused.reason, 0, &r).first->second;
    ++count;
  }
  for (const auto& [reason, of] : counted)
    text += fmt::format("  refused {} {}: {}, first {}\n", of.first, place::name(reason), place::sentence(reason),
                        text_of(of.second->knobs));
  return text;
}

json cost_json(const Cost& cost) {
  const auto rounded = [](double us) { return std::round(us * 1000) / 1000; };
  return {{"compute", rounded(cost.compute_us)},
          {"memory", rounded(cost.memory_us)},
          {"start", rounded(cost.start_us)},
          {"total", rounded(cost.total_us)}};
}

}  // namespace

place::Result<Mapping> Derivations::operator()(const Knobs& knobs) {
  if (const place::Verdict fit = values_fit(knobs); !fit) return fit.refused();
  Knobs of_phases;
  std::copy_if(knobs.begin(), knobs.end(), std::inserter(of_phases, of_phases.end()),
               [](const auto& knob) { return decides_phases(knob.first); });
  auto known = universal_.find(of_phases);
  if (known == universal_.end()) known = universal_.emplace(of_phases, universal(program_, of_phases, facts_.aliases)).first;
  const place::Result<Mapping>& mapping = known->second;
  if (!mapping) return mapping;
  const place::Result<Lanes> lanes = choose_lanes(program_, *mapping, facts_, target_, knobs);
  if (!lanes) return lanes.refused();
  Mapping placed = *mapping;
  put_on_lanes(program_, placed, *lanes);
  const auto is = [&](const char* knob, const char* value) { return knobs.contains(knob) && knobs.at(knob) == value; };
  placed.apart = target_.subgroup > 0;
  if (const auto packed = knobs.find("packed"); packed != knobs.end()) placed.packed = std::stoi(packed->second);
  if (placed.packed > target_.most_packed)
    return place::Refused{place::Reason::group_too_large, "packed",
                          fmt::format("{} groups side by side, the limit is {}", placed.packed, target_.most_packed)};
  placed.past_caches = is("stores", "past_caches");
  placed.ahead = is("ahead", "group");
  if (const place::Verdict used = all_used(program_, placed, knobs); !used) return used.refused();
  if (const place::Verdict allowed = legal(program_, placed, facts_, target_); !allowed) return allowed.refused();
  return placed;
}

place::Result<Mapping> derive(const ir::Program& program, const Target& target, const Knobs& knobs, const Facts& facts) {
  return Derivations(program, target, facts)(knobs);
}

Plan make_plan(const ir::Program& program, const std::string& text, const Target& target, const Knobs& knobs,
               const Facts& facts) {
  place::Result<Mapping> mapping = derive(program, target, knobs, facts);
  if (!mapping) throw refusal(mapping.refused());
  return {program.name, support::hash(text), target.name, knobs, facts, *std::move(mapping)};
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
  std::set<std::string> held;
  for (const Phase& phase : plan.mapping.phases)
    for (const place::AxisMap& map : phase.placement.axes) {
      const std::string& axis = program[map.axis].name;
      if (const std::int64_t side = place::side_by_side(map); side > 1) {
        held.insert(fmt::format("{} is a multiple of {}", axis, side));
        if (plan.mapping.apart)
          held.insert(
              fmt::format("arrays along {} begin at multiples of {} bytes, and so do their rows", axis, kernel::aligned_bytes));
      }
      if (const auto whole = held_whole(phase, map.axis)) {
        held.insert(fmt::format("{} has at most {}", axis, *whole));
        if (const auto full = plan.mapping.full.find(map.axis); full != plan.mapping.full.end())
          held.insert(fmt::format("{} has at least {}", axis, full->second * place::group_lanes(map)));
      }
    }
  conditions.insert(conditions.end(), held.begin(), held.end());
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
  std::vector<std::string> values;
  for (const auto& [value, home] : plan.mapping.homes)
    values.push_back(fmt::format("home {}: {}", ir::describe(program, value),
                                 home == Home::worker   ? "worker"
                                 : home == Home::launch ? "launch"
                                                        : "reload"));
  for (ir::ValueId v : plan.mapping.two_passes) values.push_back(fmt::format("two passes: {}", ir::describe(program, v)));
  // By their text: numbers in the arena may be others after a program is printed and read back.
  std::sort(values.begin(), values.end());
  lines.insert(lines.end(), values.begin(), values.end());
  if (plan.mapping.packed > 1) lines.push_back(fmt::format("packed: {} groups share a thread group", plan.mapping.packed));
  if (plan.mapping.past_caches) lines.emplace_back("stores: past the caches");
  if (plan.mapping.ahead) lines.emplace_back("ahead: a group fetches what the next one reads");
  return lines;
}

std::string to_json(const ir::Program& program, const Plan& plan) {
  json j = body(program, plan);
  j["hash"] = support::hash(j.dump());
  // What it was chosen by is told, and does not bind who replays it.
  j["cost_us"] = plan.candidates.empty() ? json() : cost_json(plan.candidates.front().cost);
  j["candidates"] = json::array();
  for (const Plan::Priced& c : plan.candidates) j["candidates"].push_back({{"knobs", c.knobs}, {"cost_us", cost_json(c.cost)}});
  j["not_tried"] = plan.left_out;
  j["prices"] = plan.prices;
  j["notes"] = streaming_lines(program);
  j["refusals"] = json::array();
  for (const Refusal& r : plan.refusals)
    j["refusals"].push_back({{"knobs", r.knobs},
                             {"reason", place::name(r.refused.reason)},
                             {"where", r.refused.where},
                             {"witness", r.refused.witness}});
  return j.dump(2);
}

std::string to_text(const ir::Program& program, const Plan& plan) {
  std::string text = fmt::format("plan of {} for {}\n", plan.program, plan.target);
  for (const auto& lines : {mapping_lines(program, plan), streaming_lines(program)})
    for (const std::string& line : lines) text += "  " + line + "\n";
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
    if (given[key] == made[key]) continue;
    // The domain begins with the type of each parameter, which the hash of the program depends on too.
    if (key == std::string_view("program_hash") && given.contains("domain") && given["domain"].is_array()) {
      const auto& ours = made["domain"];
      const auto& theirs = given["domain"];
      for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        if (ours[i] != theirs[i])
          refuse(fmt::format("the plan is for arguments where {}, but here {}", shown(theirs[i]), shown(ours[i])));
    }
    if (key == std::string_view("knobs"))
      throw Error(
          ErrorCode::bad_plan, {},
          fmt::format("the knobs of the plan are {}, and with those that are set here {}", shown(given[key]), shown(made[key])),
          "a plan has its own knobs: leave out --set, or leave out the plan");
    refuse(fmt::format("the plan's {} is {}, but these arguments give {}", key, shown(given[key]), shown(made[key])));
  }
}

}  // namespace cosmati::plan
