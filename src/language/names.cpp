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

}  // namespace cosmati::language
