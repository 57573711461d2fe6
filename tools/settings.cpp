// Only operations whose results the standard fixes are used on the random numbers.
// SPDX-License-Identifier: Apache-2.0
#include "tools/settings.h"

#include <algorithm>

namespace cosmati::tools {

Settings::Settings(std::vector<Function::KnobChoices> space, Knobs fixed, std::uint64_t seed)
    : space_(std::move(space)), base_(std::move(fixed)), random_(seed) {
  std::erase_if(space_, [&](const auto& choice) { return base_.contains(choice.knob); });
  for (const auto& choice : space_) {
    if (choice.automatic) base_.emplace(choice.knob, *choice.automatic);
    for (const std::string& value : choice.values) singles_.emplace_back(choice.knob, value);
  }
  for (std::size_t i = singles_.size(); i > 1; --i) std::swap(singles_[i - 1], singles_[below(i)]);
  seen_.push_back(base_);
}

std::optional<Knobs> Settings::next() {
  constexpr int patience = 1000;
  for (int attempt = 0; attempt < patience && !space_.empty(); ++attempt) {
    Knobs knobs = base_;
    turn_ = !turn_;
    if (turn_ && !singles_.empty()) {
      knobs[singles_.back().first] = singles_.back().second;
      singles_.pop_back();
    } else {
      for (std::size_t count = 2 + below(3); count > 0; --count) {
        const auto& choice = space_[below(space_.size())];
        knobs[choice.knob] = choice.values[below(choice.values.size())];
      }
    }
    const auto at = std::lower_bound(seen_.begin(), seen_.end(), knobs);
    if (at != seen_.end() && *at == knobs) continue;
    seen_.insert(at, knobs);
    return knobs;
  }
  return std::nullopt;
}

std::string text_of(const Knobs& knobs) {
  std::string text;
  for (const auto& [knob, value] : knobs) text += (text.empty() ? "" : " ") + knob + "=" + value;
  return text;
}

}  // namespace cosmati::tools
