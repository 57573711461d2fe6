// Values as the user wrote them, shortened, for the messages of errors.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::ir {

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
