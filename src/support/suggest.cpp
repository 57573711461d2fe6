// Nearness is the number of insertions, deletions, changes and swaps of neighbours.
// SPDX-License-Identifier: Apache-2.0
#include "support/suggest.h"

#include <algorithm>
#include <utility>

#include <cosmati/dtype.h>

namespace cosmati::support {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string suggest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 40;  // longer names are not compared
  if (name.size() > longest) return {};
  std::string best;
  std::size_t distance = name.size() <= 4 ? 2 : 3;  // one more than the largest accepted
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest || candidate == name) continue;
    if (const std::size_t d = edit_distance(name, candidate); d < distance && d < name.size()) {
      distance = d;
      best = candidate;
    }
  }
  return best.empty() ? "" : "did you mean " + best;
}

std::string suggest_dtype(std::string_view name, const std::vector<std::string>& others) {
  constexpr std::pair<std::string_view, std::string_view> elsewhere[] = {
      {"float", "f32"}, {"double", "f64"}, {"half", "f16"}, {"bfloat16", "bf16"}, {"int", "i32"},
      {"long", "i64"},  {"short", "i16"},  {"uint", "u32"}, {"byte", "u8"},       {"boolean", "bool"}};
  for (const auto& [theirs, ours] : elsewhere)
    if (name == theirs) return "did you mean " + std::string(ours);
  std::vector<std::string> candidates = others;
  for (const DTypeInfo& row : dtype_table) candidates.emplace_back(row.name);
  const std::string near = suggest(name, candidates);
  const std::size_t digit = name.find_first_of("0123456789");
  if (!near.empty() || digit == std::string_view::npos || digit == 0) return near;
  std::string brief(1, name[0]);  // float32, int64_t
  for (std::size_t i = digit; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i) brief += name[i];
  return dtype_from_name(brief) ? "did you mean " + brief : "";
}

}  // namespace cosmati::support
