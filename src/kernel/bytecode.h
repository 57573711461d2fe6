// The simulator's form of a kernel: one flat list of instructions a phase over 64-bit slots. A slot holds integers as i64, bool
// as 0 or 1, and floats of every type as their raw bits. Slot 0 is the group, slot 1 the worker, then the numbers of the lanes,
// params, vars, expressions. A value that varies has one slot a lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

// Operations of ops.def with instructions of their own. They are held to ops::reference by a test; every other operation calls
// it. a, b, c are the arguments in the type of the column; larger and smaller order -0 below +0 and let a NaN win.
// clang-format off
#define COSMATI_FLOAT_OPS(X, type)                                                                                  \
  X(type, neg, -a) X(type, add, a + b) X(type, sub, a - b) X(type, mul, a * b) X(type, div, a / b)                    \
  X(type, fma, std::fma(a, b, c)) X(type, abs, std::fabs(a)) X(type, sqrt, std::sqrt(a)) X(type, floor, std::floor(a)) \
  X(type, round, std::nearbyint(a)) X(type, maximum, larger(a, b)) X(type, minimum, smaller(a, b))
#define COSMATI_COMPARISONS(X, type) \
  X(type, eq, a == b) X(type, ne, a != b) X(type, lt, a < b) X(type, le, a <= b) X(type, gt, a > b) X(type, ge, a >= b)
#define COSMATI_INT_OPS(X, type)                                                                                     \
  X(type, neg, 0 - u(a)) X(type, add, u(a) + u(b)) X(type, sub, u(a) - u(b)) X(type, mul, u(a) * u(b))                  \
  X(type, bit_and, a & b) X(type, bit_or, a | b) X(type, bit_xor, a ^ b) X(type, minimum, a < b ? a : b)                \
  X(type, maximum, a > b ? a : b) X(type, shift_left, u(a) << (u(b) % (8 * sizeof(a))))                                \
  X(type, shift_right, a >> (u(b) % (8 * sizeof(a))))
// Every row of the fast operations: F(type, op, formula) on floats, I on integers, C gives a bool.
#define COSMATI_FAST_OPS(F, I, C)                                                                    \
  COSMATI_FLOAT_OPS(F, f32) COSMATI_FLOAT_OPS(F, f64) COSMATI_INT_OPS(I, i64) COSMATI_INT_OPS(I, i32)  \
  COSMATI_INT_OPS(I, u32) COSMATI_COMPARISONS(C, f32) COSMATI_COMPARISONS(C, f64) COSMATI_COMPARISONS(C, i64) \
  COSMATI_COMPARISONS(C, i32) COSMATI_COMPARISONS(C, u32)
// clang-format on

enum class Code : std::uint8_t {
  copy,               // dst = a
  jump,               // to target
  jump_unless,        // to target unless a
  jump_unless_below,  // to target unless a < b
  increment,          // dst + 1
  load,               // dst = buffer[a]
  load_guarded,       // dst = b ? buffer[a] : c
  store,              // buffer[a] = b
  store_guarded,      // buffer[a] = b if c
  fence,              //
  swap,               // dst = a of the lane whose number is this one's xor target
  first,              // dst = a of lane 0; all lanes hold the same
  select,             // dst = a ? b : c
  both,               // dst = a & b of bools
  either,             // dst = a | b of bools
  convert,            // dst = a cast from `from` to `to`
  reinterpret,        // dst = the bits of a as `to`
  reference,          // dst = op(a, b, c) by ops::reference on `from`
  library,            // the same by the C library in f64
#define COSMATI_CODE(type, op, formula) type##_##op,
  COSMATI_FAST_OPS(COSMATI_CODE, COSMATI_CODE, COSMATI_CODE)
#undef COSMATI_CODE
};

struct Instruction {
  Code code;
  ops::Op op = ops::Op::neg;
  DType from = DType::bool_, to = DType::bool_;
  std::uint32_t buffer_or_target = 0;
  std::uint32_t dst = 0, a = 0, b = 0, c = 0;
  // It is executed for lanes 0 .. lanes - 1, lane l on slots dst + l and a + (l & a_lanes): masks of ones where an argument
  // varies.
  std::uint32_t lanes = 1, a_lanes = 0, b_lanes = 0, c_lanes = 0;
};

using Instructions = std::vector<Instruction>;
struct Bytecode {
  std::uint32_t slots = 0, first_param = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> constants;  // slot and value
  std::vector<Instructions> phases;
};
inline constexpr std::uint32_t group_slot = 0, worker_slot = 1, lane_slot = 2;

// Throws InternalError where an operation that has to be expanded was not.
Bytecode assemble(const Kernel& k);

// The slot of a value of type t from its bits in memory: integers extended, bool made 0 or 1.
inline std::uint64_t slot_of_bits(DType t, std::uint64_t bits) {
  const int unused = 64 - 8 * byte_size(t);
  if (is_bool(t)) return (bits & 0xff) != 0;
  if (is_signed(t)) return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

ops::Scalar scalar_of_slot(DType t, std::uint64_t slot);
std::uint64_t slot_of_scalar(DType t, ops::Scalar value);

}  // namespace cosmati::kernel
