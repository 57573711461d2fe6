// Candidates that give one mapping are one. What the knobs make of a program is legal or refused by the rules that also hold for
// a user's own settings.
// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/ahead.h"
#include "plan/candidates.h"
#include "plan/choose.h"
#include "support/hash.h"

namespace cosmati::plan {
namespace {

constexpr std::size_t most_candidates = 48;
constexpr std::size_t most_nodes = 15'000;  // of kernel IR in all: what pricing a new program may cost
constexpr double same_work_equal = 1.04;    // of one work under several uses of the caches it is
constexpr double short_us = 2;              // about the launch itself

}  // namespace

Planner::Planner(const ir::Program& program, const std::string& text, const Target& target, const Knobs& fixed,
                 const Facts& facts, const Lower& lower, Search search)
    : name_(program.name), hash_(support::hash(text)), target_(target), facts_(facts), lower_(lower) {
  std::size_t nodes = 0;
  Derivations derived(program, target, facts);
  const auto add = [&](const Knobs& knobs) {
    place::Result<Mapping> made = derived(knobs);
    if (!made) {
      refusals_.push_back({knobs, made.refused()});
      return;
    }
    Mapping mapping = *std::move(made);
    if (std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.mapping == mapping; })) return;
    if (target.subgroup > 0) {
      candidates_.push_back({knobs, std::move(mapping), nullptr, {}});
      return;
    }
    kernel::Kernel k = target.priced ? lower(mapping) : kernel::Kernel{};
    nodes += k.exprs.size();
    const Traffic traffic{mapping.past_caches, kernel::fetches_ahead(k), mapping.ahead};
    auto work = std::make_shared<const kernel::Work>(std::move(k), target.rates);
    candidates_.push_back({knobs, std::move(mapping), std::move(work), traffic});
  };
  add(fixed);
  if (candidates_.empty()) throw refusal(refusals_.front().refused);
  if (!target.priced || search == Search::rule) return;
  const Mapping first = candidates_.front().mapping;
  for (const Knobs& knobs :
       candidate_knobs(program, first, *choose_lanes(program, first, facts, target, fixed), facts, target, fixed)) {
    if (target.subgroup == 0 && (candidates_.size() >= most_candidates || nodes >= most_nodes))
      ++left_out_;
    else
      add(knobs);
  }
  if (target.subgroup == 0) add_traffic(fixed);
}

// The same work with another use of the caches costs no lowering.
void Planner::add_traffic(const Knobs& fixed) {
  const std::size_t plain = candidates_.size();
  for (const bool past_caches : {false, true})
    for (std::size_t i = 0; i < plain; ++i) {
      Candidate c = candidates_[i];
      const bool ahead = c.traffic.turns && !fixed.contains("ahead");
      if (!(past_caches ? !fixed.contains("stores") : ahead)) continue;
      if (past_caches) c.knobs["stores"] = "past_caches", c.mapping.past_caches = c.traffic.past_caches = true;
      if (ahead) c.knobs["ahead"] = "group", c.mapping.ahead = c.traffic.ahead = true;
      candidates_.push_back(std::move(c));
    }
}

bool Planner::may_hold(const Mapping& mapping, const Shape& shape) const {
  // Where every worker of a GPU has a group, none is left for parts.
  if (target_.subgroup > 0 && !mapping.splits.empty()) {
    double groups = 1;
    for (const place::AxisMap& map : mapping.phases.front().placement.axes)
      for (const place::Digit& d : map.digits) {
        if (d.res != place::Res::grid || mapping.splits.contains(map.axis)) continue;
        groups *= static_cast<double>(d.size.factor);
        for (const place::Part& part : d.size.parts)
          groups *= std::ceil(static_cast<double>(shape.extents[part.axis.index]) / static_cast<double>(part.over));
      }
    if (groups >= target_.workers) return false;
  }
  for (const Phase& phase : mapping.phases)
    for (const place::AxisMap& map : phase.placement.axes)
      if (const auto whole = held_whole(phase, map.axis)) {
        const std::int64_t extent = shape.extents[map.axis.index];
        const auto full = mapping.full.find(map.axis);
        if (extent > *whole || extent % place::side_by_side(map) != 0) return false;
        if (full != mapping.full.end() && extent < full->second * place::group_lanes(map)) return false;
      }
  return true;
}

const kernel::Work* Planner::work(std::size_t candidate) const {
  const std::lock_guard lock(mutex_);
  Candidate& c = candidates_[candidate];
  if (!c.work) c.work = std::make_shared<const kernel::Work>(lower_(c.mapping), target_.rates);
  return c.work.get();
}

std::vector<Cost> Planner::costs(const Shape& shape) const {
  std::map<const kernel::Work*, std::vector<kernel::Work::Phase>> phases;
  std::vector<Cost> all;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& c = candidates_[i];
    if (!may_hold(c.mapping, shape)) {
      all.push_back(impossible);
      continue;
    }
    const kernel::Work& of = *work(i);
    const auto [known, is_new] = phases.try_emplace(&of);
    const std::vector<std::int64_t> params = kernel::params_of(of.kernel(), shape);
    if (!kernel::meets_conditions(of.kernel(), params)) {
      all.push_back(impossible);
      continue;
    }
    if (is_new) known->second = of(params, caches_of(of.kernel(), target_));
    all.push_back(cost(of.kernel(), known->second, target_, c.traffic));
  }
  return all;
}

bool Planner::first_will_do(const Shape& shape) const {
  return !target_.priced || cost(*work(0), shape, target_).total_us <= short_us;
}

std::size_t Planner::choose(const Shape& shape) const {
  if (candidates_.size() == 1) return 0;
  return choose(costs(shape));
}

// First the work, then its use of the caches: the first about as good as the best.
std::size_t Planner::choose(const std::vector<Cost>& costs) const {
  const auto least = [&](const auto& holds) {
    double us = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < costs.size(); ++i)
      if (holds(i)) us = std::min(us, costs[i].total_us);
    return us;
  };
  const auto same_work = [&](std::size_t i) {
    return [&, i](std::size_t k) { return k == i || (candidates_[i].work && candidates_[k].work == candidates_[i].work); };
  };
  const double enough = least([](std::size_t) { return true; }) * target_.about_equal;
  std::size_t work = 0;
  while (least(same_work(work)) > enough) ++work;
  const double best = least(same_work(work));
  std::size_t chosen = work;
  while (!same_work(work)(chosen) || costs[chosen].total_us > best * same_work_equal) ++chosen;
  return chosen;
}

Plan Planner::plan(const Shape& shape) const {
  const std::vector<Cost> prices = target_.priced ? costs(shape) : std::vector<Cost>(1);
  const std::size_t chosen = choose(prices);
  const Candidate& c = candidates_[chosen];
  Plan plan{name_,     hash_, target_.name, c.knobs,   facts_,
            c.mapping, {},    refusals_,    left_out_, target_.priced ? target_.prices : ""};
  if (!target_.priced) return plan;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (std::isfinite(prices[i].total_us)) plan.candidates.push_back({candidates_[i].knobs, prices[i], i == chosen});
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(), [](const Plan::Priced& a, const Plan::Priced& b) {
    return std::pair(!a.chosen, a.cost.total_us) < std::pair(!b.chosen, b.cost.total_us);
  });
  return plan;
}

}  // namespace cosmati::plan
