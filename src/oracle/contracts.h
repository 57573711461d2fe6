// What the caller promised about the data, checked element by element.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "oracle/interpreter.h"

namespace cosmati::oracle {

// Throws Error{contract_broken} naming the first element that breaks a bound, an order or distinctness, or the require that
// fails.
void check_contracts(Interpreter& interpreter, const Inputs& inputs);

}  // namespace cosmati::oracle
