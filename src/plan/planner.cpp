// Candidates that give one mapping are one. What the knobs make of a program is legal or refused by the rules that also hold for
// a user's own settings.
// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <algorithm>

#include "plan/candidates.h"
#include "plan/choose.h"
#include "support/hash.h"

namespace cosmati::plan {
namespace {

constexpr std::size_t most_candidates = 48;
constexpr std::size_t most_nodes = 20'000;  // of kernel IR in all: what pricing a new program may cost
constexpr double about_equal = 1.1;         // the model is not better than that, and fewer plans are fewer compilations
constexpr double short_us = 2;              // about the launch itself

}  // namespace

Planner::Planner(const ir::Program& program, const std::string& text, const Target& target, const Knobs& fixed,
                 const Facts& facts, const Lower& lower, Search search)
    : name_(program.name), hash_(support::hash(text)), target_(target), facts_(facts) {
  std::size_t nodes = 0;
  const auto add = [&](const Knobs& knobs) {
    place::Result<Mapping> made = derive(program, target, knobs, facts);
    if (!made) {
      refusals_.push_back({knobs, made.refused()});
      return;
    }
    Mapping mapping = *std::move(made);
    if (std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.mapping == mapping; })) return;
    kernel::Kernel k = target.priced ? lower(mapping) : kernel::Kernel{};
    nodes += k.exprs.size();
    candidates_.push_back({knobs, std::move(mapping), kernel::Work(std::move(k), target.rates)});
  };
  add(fixed);
  if (candidates_.empty()) throw refusal(refusals_.front().refused);
  if (!target.priced || search == Search::rule) return;
  const Mapping first = candidates_.front().mapping;
  for (const Knobs& knobs : candidate_knobs(program, first, *choose_lanes(program, first, facts, target, fixed), facts, fixed)) {
    if (candidates_.size() >= most_candidates || nodes >= most_nodes)
      ++left_out_;
    else
      add(knobs);
  }
}

bool Planner::first_will_do(const Shape& shape) const {
  return !target_.priced || cost(candidates_.front().work, shape, target_).total_us <= short_us;
}

std::size_t Planner::choose(const Shape& shape) const {
  if (candidates_.size() == 1) return 0;
  std::vector<double> costs;
  for (const Candidate& c : candidates_) costs.push_back(cost(c.work, shape, target_).total_us);
  const double least = *std::min_element(costs.begin(), costs.end());
  return static_cast<std::size_t>(std::find_if(costs.begin(), costs.end(), [&](double us) { return us <= least * about_equal; }) -
                                  costs.begin());
}

Plan Planner::plan(const Shape& shape) const {
  const std::size_t chosen = choose(shape);
  const Candidate& c = candidates_[chosen];
  Plan plan{name_, hash_, target_.name, c.knobs, facts_, c.mapping, {}, refusals_, left_out_};
  if (!target_.priced) return plan;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    plan.candidates.push_back({candidates_[i].knobs, cost(candidates_[i].work, shape, target_), i == chosen});
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(), [](const Plan::Priced& a, const Plan::Priced& b) {
    return std::pair(!a.chosen, a.cost.total_us) < std::pair(!b.chosen, b.cost.total_us);
  });
  return plan;
}

}  // namespace cosmati::plan
