// The prover's answers to what a launch asks of a program.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/bind.h"

namespace cosmati::library {

runtime::Proofs proofs();

}  // namespace cosmati::library
