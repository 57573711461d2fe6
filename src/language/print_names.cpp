// Names and literals of printed text.
// SPDX-License-Identifier: Apache-2.0
#include "language/print_names.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ir/describe.h"
#include "language/lexer.h"

namespace cosmati::language {
namespace {

// Made of letters, digits and _, not starting with a digit.
std::string as_name(const std::string& wanted) {
  std::string name;
  for (char c : wanted) name += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "_");
  return name;
}

}  // namespace

std::string NamePool::claim(const std::string& wanted) {
  const std::string stem = as_name(wanted);
  std::string name = stem;
  for (int k = 2; is_reserved(name) || taken_.count(name) || (k > 2 && wanted_.count(name)); ++k)
    name = fmt::format("{}_{}", stem, k);
  taken_.insert(name);
  return name;
}

std::string NamePool::fresh() {
  std::string name;
  do name = ir::automatic_name(next_++);
  while (taken_.count(name) || wanted_.count(name));
  taken_.insert(name);
  return name;
}

std::string literal_text(DType dtype, double f, std::int64_t i) {
  if (is_bool(dtype)) return i != 0 ? "true" : "false";
  if (is_int(dtype)) return i == std::numeric_limits<std::int64_t>::min() ? "-9223372036854775807 - 1" : std::to_string(i);
  if (std::isnan(f)) return "nan";
  if (std::isinf(f)) return f < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", f);  // the shortest digits that read back as f
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace cosmati::language
