// Settings of knobs to try, drawn one after the other from a seed: the same seed gives the same settings on every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/runtime.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cosmati::tools {

using Knobs = std::map<std::string, std::string>;

class Settings {
 public:
  // Knobs in `fixed` stay as they are; the others begin with what an absent knob means, where that is known.
  Settings(std::vector<Function::KnobChoices> space, Knobs fixed, std::uint64_t seed);

  const Knobs& automatic() const { return base_; }
  // In turns: one knob changed, until all values have been; several at random values. Never one twice; nothing when none is new.
  std::optional<Knobs> next();

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::vector<Function::KnobChoices> space_;
  Knobs base_;
  std::mt19937_64 random_;
  std::vector<std::pair<std::string, std::string>> singles_;  // what is left, the next one last
  std::vector<Knobs> seen_;                                   // sorted
  bool turn_ = false;
};

// "lanes=8 tile.col=4".
std::string text_of(const Knobs& knobs);

}  // namespace cosmati::tools
