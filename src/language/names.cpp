// Built-in names are read from the tables of operations, reducers and types.
// SPDX-License-Identifier: Apache-2.0
#include "language/names.h"

#include <algorithm>

#include <cosmati/dtype.h>

#include "language/operators.h"

namespace cosmati::language {
namespace {

constexpr std::string_view special_names[] = {"contract", "extent", "bits_f32", "bits_u32"};
constexpr std::string_view reducer_names[] = {
#define REDUCER(name, ...) #name,
#include <cosmati/reducers.def>
#undef REDUCER
};

// The number of insertions, deletions, changes and swaps of neighbours from a to b.
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

std::optional<ops::Op> function_op(std::string_view name) {
  const std::optional<ops::Op> op = ops::op_from_name(name);
  if (!op || *op == ops::Op::cast || *op == ops::Op::bits || find_operator(*op)) return std::nullopt;
  return op;
}

const std::vector<std::string>& builtin_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result(std::begin(special_names), std::end(special_names));
    result.insert(result.end(), std::begin(reducer_names), std::end(reducer_names));
    for (const DTypeInfo& row : dtype_table) result.emplace_back(row.name);
    for (int i = 0; i < ops::op_count; ++i)
      if (std::string_view name = ops::name(static_cast<ops::Op>(i)); function_op(name)) result.emplace_back(name);
    std::sort(result.begin(), result.end());
    return result;
  }();
  return names;
}

bool is_builtin(std::string_view name) { return std::binary_search(builtin_names().begin(), builtin_names().end(), name); }

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

}  // namespace cosmati::language
