// Plan: a choice that can be kept, read and replayed. The file holds what was decided (knobs, facts, target) and the derived
// Mapping as text; replaying derives the Mapping again and refuses when anything differs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "plan/cost.h"
#include "plan/facts.h"
#include "plan/knobs.h"

namespace cosmati::plan {

// A setting of the knobs that is not legal.
struct Refusal {
  Knobs knobs;
  place::Refused refused;
};

struct Plan {
  std::string program;       // its name
  std::string program_hash;  // of its printed text
  std::string target;
  Knobs knobs;
  Facts facts;
  Mapping mapping;
  // Of the shape it was chosen for; not part of what replays.
  struct Priced {
    Knobs knobs;
    Cost cost;
    bool chosen;
  };
  std::vector<Priced> candidates = {};  // this one, then the others, the cheapest first
  std::vector<Refusal> refusals = {};   // in the order in which they were tried
  int left_out = 0;                     // settings that were not tried: pricing more is not worth the time
  std::string prices = {};              // where the rates of the costs are from
};

// The mapping that the knobs give, with the rule where they are silent, or why there is none.
place::Result<Mapping> derive(const ir::Program& program, const Target& target, const Knobs& knobs, const Facts& facts);
// The same for several settings of one program: what few knobs decide is found once for each setting of those.
class Derivations {
 public:
  Derivations(const ir::Program& program, const Target& target, const Facts& facts)
      : program_(program), target_(target), facts_(facts) {}
  place::Result<Mapping> operator()(const Knobs& knobs);

 private:
  const ir::Program& program_;
  const Target& target_;
  const Facts& facts_;
  std::map<Knobs, place::Result<Mapping>> universal_;  // by the knobs of phases and homes
};
// `program` has its replaces inlined; `text` is the printed program (for the hash). Nothing is priced. Throws Error{bad_knob}.
Plan make_plan(const ir::Program& program, const std::string& text, const Target& target, const Knobs& knobs, const Facts& facts);

// What the arguments must satisfy for the plan to apply, one condition a string.
std::vector<std::string> domain(const ir::Program& program, const Plan& plan);
// The mapping for reading: one line a phase and a home.
std::vector<std::string> mapping_lines(const ir::Program& program, const Plan& plan);

std::string to_json(const ir::Program& program, const Plan& plan);
std::string to_text(const ir::Program& program, const Plan& plan);

// The knobs of a plan file. Throws Error{bad_plan} for text that is not one.
Knobs knobs_of(const std::string& json);
// Refuses, naming the first difference, when `json` is not the plan that was derived now.
void require_same(const ir::Program& program, const Plan& derived, const std::string& json);

}  // namespace cosmati::plan
