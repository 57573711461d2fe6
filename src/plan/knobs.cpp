// Which knobs exist and what they accept, read from knobs.def.
// SPDX-License-Identifier: Apache-2.0
#include "plan/knobs.h"

#include <fmt/format.h>

#include <cosmati/error.h>
#include <charconv>
#include <optional>
#include <string_view>

namespace cosmati::plan {
namespace {

struct Row {
  std::string_view name, values;
};
constexpr Row rows[] = {
#define KNOB(name, values, documentation) {#name, values},
#include <cosmati/knobs.def>
#undef KNOB
};

// Whether `value` is what `form` (a word, LO..HI or NAMES) stands for.
bool matches(std::string_view form, std::string_view value) {
  if (form == "NAMES") return !value.empty();
  const std::size_t dots = form.find("..");
  if (dots == std::string_view::npos) return form == value;
  const auto number = [](std::string_view text) -> std::optional<std::int64_t> {
    std::int64_t n = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
    return code == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
  };
  const auto n = number(value);
  return n && *n >= *number(form.substr(0, dots)) && *n <= *number(form.substr(dots + 2));
}

bool accepts(std::string_view values, std::string_view value) {
  while (!values.empty()) {
    std::size_t bar = values.find(" | ");
    if (matches(values.substr(0, bar), value)) return true;
    if (bar == std::string_view::npos) return false;
    values.remove_prefix(bar + 3);
  }
  return false;
}

}  // namespace

place::Verdict values_fit(const Knobs& knobs) {
  for (const auto& [name, value] : knobs) {
    const Row* found = nullptr;
    std::string known, meant;
    for (const Row& row : rows) {
      bool prefix = row.name.back() == '.';
      if (prefix ? name.starts_with(row.name) && name.size() > row.name.size() : name == row.name) found = &row;
      if (prefix && row.name.substr(0, row.name.size() - 1) == name) meant = fmt::format("did you mean {}NAME? ", row.name);
      known += fmt::format("{}{}{}", known.empty() ? "" : ", ", row.name, prefix ? "NAME" : "");
    }
    if (!found)
      throw Error(ErrorCode::unknown_knob, {}, fmt::format("there is no knob `{}`", name),
                  fmt::format("{}the knobs are {}", meant, known));
    if (!accepts(found->values, value))
      return place::Refused{place::Reason::outside_values, name, fmt::format("`{}` is none of {}", value, found->values)};
  }
  return place::Legal{};
}

Error refusal(const place::Refused& refused) {
  return Error(ErrorCode::bad_knob, refused.at, place::message(refused), std::string(place::remedy(refused.reason)));
}

}  // namespace cosmati::plan
