// The hints for names of other languages: what each tells to write is accepted.
// SPDX-License-Identifier: Apache-2.0
#include "language/elsewhere.h"

#include <gtest/gtest.h>

#include "language/source.h"

namespace cosmati::language {
namespace {

std::string accepts(const std::string& expression) {
  const std::string text =
      "program p(in x: f32[row, col], in y: f32[row, col], in c: bool[row, col], lo: f32, hi: f32, out o: f32[row, col]) {\n"
      "  axis k = extent(col)\n  parallel row {\n    v = " +
      expression + "\n    o[row, col] = x\n  }\n}\n";
  try {
    parse(text, "t.tile").at(0)->instantiate({});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Elsewhere, WhatTheHintsWriteIsAccepted) {
  const std::string write = "write ";
  for (const char* name :
       {"relu",     "fmax", "fmin",   "clip",  "select",     "fabs",    "isnan", "isinf", "isfinite", "ln",  "log10", "tan",
        "logistic", "erfc", "square", "power", "reciprocal", "average", "prod",  "count", "norm",     "len", "pi"}) {
    const std::string function(function_elsewhere(name)), value(value_elsewhere(name)),
        hint = function.empty() ? value : function;
    ASSERT_EQ(hint.substr(0, write.size()), write) << name;
    const std::string expression = hint.substr(write.size(), hint.find(", of") - write.size());
    EXPECT_EQ(accepts(expression), "") << name;
  }
  for (const char* reducer : {"max", "min", "max_num", "min_num"})
    EXPECT_EQ(accepts(std::string(pair_of(reducer))), "") << reducer;
}

TEST(Elsewhere, NamesOfTheLanguageHaveNoRow) {
  for (const char* name : {"exp", "maximum", "sum", "mean_var", "contract", "extent", "f32", "gelu"})
    EXPECT_EQ(function_elsewhere(name), "") << name;
  for (const char* name : {"inf", "nan", "true", "e", "x"}) EXPECT_EQ(value_elsewhere(name), "") << name;
}

}  // namespace
}  // namespace cosmati::language
