// The scalar operations: facts and reference values, read from ops.def.
// `reference_*` define what an operation means; every backend and every oracle is held to them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include <cosmati/dtype.h>

namespace cosmati::ops {

enum class Op : std::uint8_t {
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) name,
#include <cosmati/ops.def>
#undef OP
  cast,  // to the dtype of the result: a float rounds to nearest even, float to integer truncates, saturates and maps NaN to 0,
         // integer to integer wraps, to bool is != 0
  bits,  // the same bits under another type of the same size
};

enum class Typing : std::uint8_t { numeric, floating, integral, comparison, logical, test, select };
enum class Kind : std::uint8_t { primitive, expanded };
enum class ErrorRule : std::uint8_t { corners, lipschitz, discrete, select };

struct OpInfo {
  std::string_view name;
  int arity;
  Typing typing;
  Kind kind;
  double ulp;
  ErrorRule error;
  bool on_floats;
  bool on_integers;
  std::string_view documentation;
};

// Rows in the order of ops.def; Op::cast and Op::bits have rows too (arity 1).
const OpInfo& info(Op op);
constexpr int op_count = static_cast<int>(Op::bits) + 1;
std::string_view name(Op op);
std::optional<Op> op_from_name(std::string_view text);

// A scalar of any type: floats in `f`, everything else in `i` (bool as 0 or 1, unsigned values non-negative).
struct Scalar {
  double f = 0;
  std::int64_t i = 0;
};

// The value of `op` on arguments of type `argument` (the joined compute type; for `where` the type of the branches, whose
// condition is args[0].i), each float result rounded once to that type. `result` is the result's type.
Scalar reference(Op op, DType argument, DType result, const Scalar* args);
// The same in float64 without rounding to a narrower type.
double reference_wide(Op op, const double* args);

// Rounds to the nearest value of a float type (even on ties; overflow to inf, or NaN for f8e4m3) and wraps integers.
double round_to(DType t, double value);
std::int64_t wrap_to(DType t, std::int64_t value);
// Op::cast and Op::bits on one scalar.
Scalar cast(DType from, DType to, Scalar value);
Scalar reinterpret(DType from, DType to, Scalar value);

// One element in memory. load widens exactly; store expects a value already of type `t`.
Scalar load(DType t, const void* element);
void store(DType t, void* element, Scalar value);

}  // namespace cosmati::ops
