// Writing expansions: Code appends kernel IR to a block, Value spells its expressions with operators.
// Every Value that is not a leaf is used once; let() makes a leaf of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "kernel/kernel.h"

namespace cosmati::kernel {

class Code;

struct Value {
  Code* code = nullptr;
  ExprId id;
  DType dtype() const;
};

class Code {
 public:
  Code(Builder& builder, Block& block, Native native) : native(native), builder_(builder), block_(block) {}
  const Native native;
  Value number(DType dtype, double value);
  Value integer(DType dtype, std::int64_t value);
  Value let(const char* name, Value v) { return {this, builder_.let(block_, name, v.id)}; }
  Value apply(ops::Op op, std::initializer_list<Value> args);
  Value cast(DType to, Value v) { return {this, builder_.cast(to, v.id)}; }
  Value bits(DType to, Value v) { return {this, builder_.bits(to, v.id)}; }
  const Kernel& kernel() const { return builder_.kernel(); }

 private:
  Builder& builder_;
  Block& block_;
};

// A number next to a Value takes its type; doubles hold every constant of 32-bit integers and of f32 and f64.
Value operator-(Value a);
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator<<(Value a, int n);
Value operator>>(Value a, int n);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator&(Value a, std::int64_t b);
Value operator|(Value a, std::int64_t b);
Value operator<(Value a, double b);
Value operator>(Value a, double b);
Value operator>=(Value a, double b);
Value operator==(Value a, double b);
Value fma(Value a, Value b, Value c);
Value fma(Value a, double b, Value c);
Value fma(Value a, double b, double c);
Value fma(Value a, Value b, double c);
Value abs(Value a);
Value where(Value c, Value a, Value b);
Value where(Value c, double a, Value b);
Value where(Value c, Value a, double b);
// c[0] + x c[1] + x^2 c[2] + ...; x is a leaf
Value polynomial(Value x, std::initializer_list<double> c);
// The value of f32 `magnitude` (>= 0 or NaN) with the sign of the leaf x.
Value with_sign_of(Value x, Value magnitude);

// One expansion for each expanded row of ops.def; arguments are leaves of one type. The f32 forms keep the bounds of the row; f64
// comes only to those that the C library does not have.
using Expansion = Value (*)(Code&, const Value* args);
#define COSMATI_primitive(name)
#define COSMATI_expanded(name) Value expand_##name(Code&, const Value* args);
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) COSMATI_##kind(name)
#include <cosmati/ops.def>
#undef OP
#undef COSMATI_primitive
#undef COSMATI_expanded

// exp by itself, for who writes it out: of the f32 element of buffer x, stored into y, by one group. near: with fewer operations,
// of what is at most exp_near from 0.
constexpr double exp_near = 86;
Kernel exp_alone(bool near);

// f16, bf16, f8e4m3 and f8e5m2: converted by integer operations on their bits.
bool is_narrow_float(DType t);
Value expand_cast(Code&, Native, DType to, Value x);  // x is a leaf; one of the types is a narrow float

}  // namespace cosmati::kernel
