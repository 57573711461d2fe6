// q = RN(a h + RN(a l)) is one of the two neighbours of a / b, since h + l is 1 / b to 47 bits; r = a - q b is exact, and q + r h
// rounded is the quotient rounded (Markstein), because h is 1 / b rounded. True where nothing leaves the normal numbers: for
// |b| between 2^-30 and 2^30 and |a| from 2^-63 up to 2^65, which are the numbers whose exponent has other leading bits than 00
// and 11.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/quotient.h"

namespace cosmati::cpu {
namespace {

LLVMValueRef f32(const Place& at, double value) { return constant(at, DType::f32_, {value, 0}); }
LLVMValueRef i32(const Place& at, std::int64_t value) { return constant(at, DType::i32_, {0, value}); }

LLVMValueRef fma(const Place& at, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
  return intrinsic(at, "llvm.fma", {register_type(at, DType::f32_)}, {x, y, z});
}

LLVMValueRef negated(const Place& at, LLVMValueRef x) { return LLVMBuildFNeg(at.builder, x, ""); }

}  // namespace

Quotients::Quotients(const Place& one, const Place& all, LLVMValueRef divisor) : one_(one), all_(all) {
  const LLVMValueRef h = LLVMBuildFDiv(one.builder, f32(one, 1), divisor, "");
  const LLVMValueRef l = LLVMBuildFMul(one.builder, fma(one, negated(one, divisor), h, f32(one, 1)), h, "");
  const LLVMValueRef size = intrinsic(one, "llvm.fabs", {register_type(one, DType::f32_)}, {divisor});
  const LLVMValueRef large = LLVMBuildFCmp(one.builder, LLVMRealOGT, size, f32(one, 0x1p-30), "");
  const LLVMValueRef small = LLVMBuildFCmp(one.builder, LLVMRealOLT, size, f32(one, 0x1p30), "");
  const LLVMValueRef both = LLVMBuildAnd(one.builder, large, small, "");
  // No bit to look at: no lane passes.
  mask_ = splat(all, LLVMBuildSelect(one.builder, both, i32(one, 0x40000000), i32(one, 0), ""));
  divisor_ = splat(all, divisor);
  high_ = splat(all, h);
  low_ = splat(all, l);
}

LLVMValueRef Quotients::hold(LLVMValueRef dividend) const {
  const LLVMValueRef bits = LLVMBuildBitCast(all_.builder, dividend, register_type(all_, DType::i32_), "");
  const LLVMValueRef other = LLVMBuildAnd(all_.builder, LLVMBuildAdd(all_.builder, bits, i32(all_, 0x20000000), ""), mask_, "");
  const LLVMValueRef fails = LLVMBuildICmp(all_.builder, LLVMIntEQ, other, i32(all_, 0), "");
  const LLVMTypeRef word = LLVMIntTypeInContext(all_.context, all_.lanes);
  return LLVMBuildICmp(one_.builder, LLVMIntEQ, LLVMBuildBitCast(one_.builder, fails, word, ""), LLVMConstNull(word), "");
}

LLVMValueRef Quotients::of(LLVMValueRef dividend) const {
  const LLVMValueRef q = fma(all_, dividend, high_, LLVMBuildFMul(all_.builder, dividend, low_, ""));
  return fma(all_, fma(all_, negated(all_, q), divisor_, dividend), high_, q);
}

LLVMValueRef Quotients::divided(LLVMValueRef dividend) const { return LLVMBuildFDiv(all_.builder, dividend, divisor_, ""); }

}  // namespace cosmati::cpu
