// One scalar of the oracle with its error bound, and how operations move values and bounds.
// Wide: `f` is the float64 value, `err` bounds |device - f|; integers and booleans are certain (0) or uncertain (> 0).
// Typed: `f` is a value of the declared type and `err` stays 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/ops.h"

namespace cosmati::oracle {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

struct Num {
  double f = 0;
  std::int64_t i = 0;
  double err = 0;
};

// What rounding to a float type can do.
struct Precision {
  double unit;     // half a unit in the last place, relative
  double tiny;     // the smallest subnormal
  double largest;  // the largest finite value
};
const Precision& precision(DType t);

// How far a device result of type `t` that is within `ulp` units may lie from the exact `r`. `exact`: the arguments are certain,
// so a correctly rounded operation whose result is representable has no error at all. (float64: the oracle itself rounds too.)
double rounding(DType t, double r, double ulp, bool exact);
// The bound `err` around r in type t, or infinity where the device may overflow instead.
double within_range(DType t, double r, double err);

Num apply_wide(ops::Op op, DType argument, DType result, const Num* args);
Num apply_typed(ops::Op op, DType argument, DType result, const Num* args);

// The rounding that a store to (or a cast between float types into) `to` adds.
double narrowing(DType from, DType to, double v, double err);

// Whether two results of one computation can be the same within their bounds. Uncertain integers agree with everything.
bool agree(DType t, const Num& a, const Num& b);

}  // namespace cosmati::oracle
