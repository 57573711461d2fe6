// The reference, printed from the tables: one Markdown page a table.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cosmati/runtime.h>

#include "library/shipped.h"
#include "ops/ops.h"

namespace cosmati {
namespace {

constexpr int commutative = 1, idempotent = 2, index = 4;
constexpr struct {
  std::string_view name, typing, documentation;
  int arguments, flags;
} reducer_rows[] = {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  {#name, #typing, documentation, arguments, flags},
#include <cosmati/reducers.def>
#undef REDUCER
};
constexpr struct {
  std::string_view name, values, documentation;
} knob_rows[] = {
#define KNOB(name, values, documentation) {#name, values, documentation},
#include <cosmati/knobs.def>
#undef KNOB
};
constexpr struct {
  std::string_view name, sentence, remedy;
} reason_rows[] = {
#define REASON(name, sentence, remedy) {#name, sentence, remedy},
#include "place/reasons.def"
#undef REASON
};
constexpr std::string_view error_names[] = {
#define ERROR(code, meaning) #code,
#include <cosmati/errors.def>
#undef ERROR
};

// A cell: bars are Markdown's own.
std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string ops_page() {
  static constexpr std::string_view typing[] = {"numbers", "floats",     "integers",       "comparison",
                                                "bool",    "float test", "bool and a join"};
  std::string page = "# Operations\n\n| operation | arguments | on | ulp | meaning |\n|---|---:|---|---:|---|\n";
  for (int i = 0; i < ops::op_count; ++i) {
    const ops::OpInfo& row = ops::info(static_cast<ops::Op>(i));
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, row.arity, typing[static_cast<int>(row.typing)], row.ulp,
                        cell(row.documentation));
  }
  return page + "\nulp is the bound for a normal f32 result: 0 is exact, 0.5 correctly rounded.\n";
}

std::string reducers_page() {
  std::string page = "# Reducers\n\n| reducer | values | on | properties | meaning |\n|---|---:|---|---|---|\n";
  for (const auto& row : reducer_rows) {
    int values = row.arguments - ((row.flags & index) ? 1 : 0);
    std::string properties = (row.flags & commutative) ? "commutative" : "";
    if (row.flags & idempotent) properties += properties.empty() ? "idempotent" : ", idempotent";
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, values, row.typing, properties, cell(row.documentation));
  }
  return page;
}

std::string dtypes_page() {
  std::string page =
      "# Element types\n\n| type | bytes | computes as | exponent bits | mantissa bits |\n|---|---:|---|---:|---:|\n";
  for (int i = 0; i < dtype_count; ++i) {
    const DTypeInfo& row = dtype_table[i];
    page += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", row.name, row.bytes, name(compute_type(static_cast<DType>(i))),
                        row.exponent_bits, row.mantissa_bits);
  }
  return page;
}

std::string errors_page() {
  std::string page = "# Error codes\n\n| code | meaning |\n|---|---|\n";
  for (std::size_t i = 0; i < std::size(error_names); ++i)
    page += fmt::format("| `{}` | {} |\n", error_names[i], cell(meaning(static_cast<ErrorCode>(i))));
  return page;
}

std::string knobs_page() {
  std::string page =
      "# Planner knobs\n\nA knob is set with `--set KNOB=VALUE` and is exact. NAME is a named value or an axis of the program; "
      "NAMES are axes "
      "with commas\nbetween, or `none`.\n\n| knob | values | meaning |\n|---|---|---|\n";
  for (const auto& row : knob_rows)
    page += fmt::format("| `{}{}` | {} | {} |\n", row.name, std::string_view(row.name).back() == '.' ? "NAME" : "",
                        cell(row.values), cell(row.documentation));
  return page;
}

std::string refusals_page() {
  std::string page =
      "# Refusals\n\nWhy a setting of the knobs is not legal, as `cosmati plan` counts them and `cosmati plan --json` lists them "
      "with where "
      "and a witness.\n\n| reason | meaning | what would be legal |\n|---|---|---|\n";
  for (const auto& row : reason_rows) page += fmt::format("| `{}` | {} | {} |\n", row.name, cell(row.sentence), cell(row.remedy));
  return page;
}

std::string programs_page() {
  std::string page = "# Shipped programs\n";
  for (const auto& [name, text] : library::shipped()) page += fmt::format("\n## {}\n\n```\n{}```\n", name, text);
  return page;
}

}  // namespace

std::map<std::string, std::string> reference_pages() {
  return {{"ops", ops_page()},     {"reducers", reducers_page()}, {"dtypes", dtypes_page()},    {"errors", errors_page()},
          {"knobs", knobs_page()}, {"programs", programs_page()}, {"refusals", refusals_page()}};
}

}  // namespace cosmati
