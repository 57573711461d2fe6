// The operators of the language: spelling and precedence, read by the parser and the printer. An operation with a row here is
// written as an operator only; every other row of ops.def is called by its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "ops/ops.h"

namespace cosmati::language {

// Loosest first. All binary levels associate to the left; comparisons do not chain.
enum Level : int {
  level_or = 1,
  level_and,
  level_compare,
  level_bits,
  level_shift,
  level_sum,
  level_product,
  level_unary,
  level_postfix
};

struct Operator {
  ops::Op op;
  std::string_view text;
  Level level;
};
inline constexpr Operator operator_table[] = {
    {ops::Op::logical_or, "or", level_or},
    {ops::Op::logical_and, "and", level_and},
    {ops::Op::eq, "==", level_compare},
    {ops::Op::ne, "!=", level_compare},
    {ops::Op::lt, "<", level_compare},
    {ops::Op::le, "<=", level_compare},
    {ops::Op::gt, ">", level_compare},
    {ops::Op::ge, ">=", level_compare},
    {ops::Op::bit_or, "|", level_bits},
    {ops::Op::bit_xor, "^", level_bits},
    {ops::Op::bit_and, "&", level_bits},
    {ops::Op::shift_left, "<<", level_shift},
    {ops::Op::shift_right, ">>", level_shift},
    {ops::Op::add, "+", level_sum},
    {ops::Op::sub, "-", level_sum},
    {ops::Op::mul, "*", level_product},
    {ops::Op::div, "/", level_product},
    {ops::Op::floordiv, "//", level_product},
    {ops::Op::mod, "%", level_product},
    {ops::Op::neg, "-", level_unary},
    {ops::Op::logical_not, "not", level_unary},
};

constexpr const Operator* find_operator(ops::Op op) {
  for (const Operator& row : operator_table)
    if (row.op == op) return &row;
  return nullptr;
}
constexpr const Operator* find_binary(std::string_view text) {
  for (const Operator& row : operator_table)
    if (row.text == text && row.level < level_unary) return &row;
  return nullptr;
}
constexpr const Operator* find_unary(std::string_view text) {
  for (const Operator& row : operator_table)
    if (row.text == text && row.level == level_unary) return &row;
  return nullptr;
}

}  // namespace cosmati::language
