// The operators that expansions are written in.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernel/expand.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

Value like(Value a, double number) {
  return is_float(a.dtype()) ? a.code->number(a.dtype(), number) : a.code->integer(a.dtype(), static_cast<std::int64_t>(number));
}

Value two(Op op, Value a, Value b) { return a.code->apply(op, {a, b}); }

}  // namespace

DType Value::dtype() const { return code->kernel()[id].dtype; }

Value Code::number(DType dtype, double value) { return {this, builder_.constant(dtype, value)}; }
Value Code::integer(DType dtype, std::int64_t value) { return {this, builder_.integer(value, dtype)}; }

Value Code::apply(Op op, std::initializer_list<Value> args) {
  std::vector<ExprId> ids;
  for (const Value& v : args) ids.push_back(v.id);
  return {this, builder_.apply(op, std::move(ids))};
}

Value operator-(Value a) { return a.code->apply(Op::neg, {a}); }
Value operator+(Value a, Value b) { return two(Op::add, a, b); }
Value operator-(Value a, Value b) { return two(Op::sub, a, b); }
Value operator*(Value a, Value b) { return two(Op::mul, a, b); }
Value operator/(Value a, Value b) { return two(Op::div, a, b); }
Value operator&(Value a, Value b) { return two(Op::bit_and, a, b); }
Value operator|(Value a, Value b) { return two(Op::bit_or, a, b); }
Value operator^(Value a, Value b) { return two(Op::bit_xor, a, b); }
Value operator<<(Value a, int n) { return two(Op::shift_left, a, like(a, n)); }
Value operator>>(Value a, int n) { return two(Op::shift_right, a, like(a, n)); }
Value operator+(Value a, double b) { return two(Op::add, a, like(a, b)); }
Value operator-(Value a, double b) { return two(Op::sub, a, like(a, b)); }
Value operator*(Value a, double b) { return two(Op::mul, a, like(a, b)); }
Value operator&(Value a, std::int64_t b) { return two(Op::bit_and, a, a.code->integer(a.dtype(), b)); }
Value operator|(Value a, std::int64_t b) { return two(Op::bit_or, a, a.code->integer(a.dtype(), b)); }
Value operator<(Value a, double b) { return two(Op::lt, a, like(a, b)); }
Value operator>(Value a, double b) { return two(Op::gt, a, like(a, b)); }
Value operator>=(Value a, double b) { return two(Op::ge, a, like(a, b)); }
Value operator==(Value a, double b) { return two(Op::eq, a, like(a, b)); }
Value fma(Value a, Value b, Value c) { return a.code->apply(Op::fma, {a, b, c}); }
Value fma(Value a, double b, Value c) { return a.code->apply(Op::fma, {a, like(a, b), c}); }
Value fma(Value a, double b, double c) { return a.code->apply(Op::fma, {a, like(a, b), like(a, c)}); }
Value fma(Value a, Value b, double c) { return a.code->apply(Op::fma, {a, b, like(a, c)}); }
Value abs(Value a) { return a.code->apply(Op::abs, {a}); }
Value where(Value c, Value a, Value b) { return c.code->apply(Op::where, {c, a, b}); }
Value where(Value c, double a, Value b) { return where(c, like(b, a), b); }
Value where(Value c, Value a, double b) { return where(c, a, like(a, b)); }

Value polynomial(Value x, std::initializer_list<double> c) {
  const double* next = c.end();
  Value sum = like(x, *--next);
  while (next != c.begin()) sum = fma(sum, x, *--next);
  return sum;
}

Value with_sign_of(Value x, Value magnitude) {
  Code& c = *x.code;
  const Value sign = c.bits(DType::i32_, x) & INT32_MIN;
  return c.bits(DType::f32_, c.bits(DType::i32_, magnitude) | sign);
}

Value expand_clamp(Code& c, const Value* x) { return c.apply(Op::minimum, {c.apply(Op::maximum, {x[0], x[1]}), x[2]}); }

}  // namespace cosmati::kernel
