// planner: the legal candidates of one program under one set of facts, made once and priced for every shape.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plan/cost.h"
#include "plan/plan.h"

namespace cosmati::plan {

// From a mapping to kernel IR with its expansions written out: what is priced.
using Lower = std::function<kernel::Kernel(const Mapping&)>;

class Planner {
 public:
  // rule: the one mapping that the rule gives. all: whatever is legal, as far as pricing it is worth the time.
  enum class Search : std::uint8_t { rule, all };
  // `program` has its replaces inlined; `text` is the printed program. Knobs in `fixed` are exact. Throws Error{bad_knob}.
  Planner(const ir::Program& program, const std::string& text, const Target& target, const Knobs& fixed, const Facts& facts,
          const Lower& lower, Search search);

  // The number of the candidate for a shape: the cheapest; among about equals the first.
  std::size_t choose(const Shape& shape) const;
  // Whether the first candidate is so fast for this shape that no other can be worth looking for.
  bool first_will_do(const Shape& shape) const;
  // The chosen candidate's plan, with what it costs and what it was compared with.
  Plan plan(const Shape& shape) const;
  // The knobs of a candidate: they give the same mapping on every machine that allows it.
  const Knobs& knobs(std::size_t candidate) const { return candidates_[candidate].knobs; }
  std::size_t size() const { return candidates_.size(); }

 private:
  struct Candidate {
    Knobs knobs;
    Mapping mapping;
    std::shared_ptr<const kernel::Work> work;  // of a GPU's candidate, when it is first asked for
    Traffic traffic;
  };
  // Whether the extents of the axes that lanes hold whole are those that the mapping is for.
  bool may_hold(const Mapping& mapping, const Shape& shape) const;
  const kernel::Work* work(std::size_t candidate) const;
  // One for each candidate.
  std::vector<Cost> costs(const Shape& shape) const;
  std::size_t choose(const std::vector<Cost>& costs) const;
  void add_traffic(const Knobs& fixed);

  const std::string name_, hash_;
  const Target target_;
  const Facts facts_;
  const Lower lower_;
  mutable std::mutex mutex_;
  mutable std::vector<Candidate> candidates_;
  std::vector<Refusal> refusals_;
  int left_out_ = 0;
};

}  // namespace cosmati::plan
