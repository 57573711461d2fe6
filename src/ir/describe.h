// Values as the user wrote them, shortened, for the messages of errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::ir {

// The name that a printer gives to a value without one: no name, as far as texts about programs are concerned, so that they
// stay the same when a program is printed and read back.
std::string automatic_name(int number);
bool is_automatic_name(const std::string& name);
const std::string* name_of(const Program& p, ValueId v);  // the user's, or null
bool is_leaf(const Node& node);                           // has a name of its own, or is a number: another name is not printed

std::string describe(const Program& p, ValueId v);                                     // its name if it has one
std::string describe_expression(const Program& p, ValueId v);                          // always the expression
std::string describe(const Program& p, ops::Op op, const std::vector<ValueId>& args);  // an operation not made yet
std::string describe(const Program& p, TensorId t, const std::vector<Index>& index);   // x[i, (g, r)]
std::string describe_dim(const Program& p, const Dim& dim);                            // row, i + 2, (g, r)
std::string describe_shape(const Program& p, TensorId t);                              // x[row, col]
std::string describe_axes(const Program& p, const AxisSet& axes);                      // row, col
// "c entered at line 9: x * g": the first operation inside v where c comes together with something that lacks it.
std::string describe_entry(const Program& p, ValueId v, AxisId axis);
// The reduction inside v that removed the program axis.
std::string describe_reduction(const Program& p, ValueId v, AxisId axis);

}  // namespace cosmati::ir
