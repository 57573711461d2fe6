// What the printer, the parser, the verifier and the builder share about the text form: names and infix operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "ops/ops.h"

namespace cosmati::kernel {

bool is_identifier(std::string_view name);  // [A-Za-z_][A-Za-z0-9_]*
bool is_reserved(std::string_view name);    // a word of the text form that a name may not be

// Infix operators, loosest first; all levels associate to the left. Everything else is written as a call.
struct Infix {
  ops::Op op;
  std::string_view spelling;
  int precedence;
};
inline constexpr Infix infix_table[] = {
    {ops::Op::logical_or, "or", 1},  {ops::Op::logical_and, "and", 2}, {ops::Op::eq, "==", 3},     {ops::Op::ne, "!=", 3},
    {ops::Op::lt, "<", 3},           {ops::Op::le, "<=", 3},           {ops::Op::gt, ">", 3},      {ops::Op::ge, ">=", 3},
    {ops::Op::bit_or, "|", 4},       {ops::Op::bit_xor, "^", 5},       {ops::Op::bit_and, "&", 6}, {ops::Op::shift_left, "<<", 7},
    {ops::Op::shift_right, ">>", 7}, {ops::Op::add, "+", 8},           {ops::Op::sub, "-", 8},     {ops::Op::mul, "*", 9},
    {ops::Op::div, "/", 9},          {ops::Op::floordiv, "//", 9},     {ops::Op::mod, "%", 9},
};
inline constexpr int precedence_guarded = 0;   // x[i] if g else o
inline constexpr int precedence_loosest = 1;   // any operator, no guarded load
inline constexpr int precedence_primary = 10;  // calls, names, constants, plain loads

}  // namespace cosmati::kernel
