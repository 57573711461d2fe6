// picture: a plan as an SVG: of every phase, which worker owns which element of what it stores, keeps or reduces in parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kernel/launch.h"
#include "plan/plan.h"

namespace cosmati::plan {

// Large arrays are cut: the first elements of each are drawn, and how many there are is written.
std::string to_svg(const ir::Program& program, const Plan& plan, const kernel::Shape& shape);

}  // namespace cosmati::plan
