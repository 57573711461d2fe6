// Operations by class of type: every float operation is exact or rounded once, every integer operation wraps and never traps.
// No fast-math flag is ever set, so LLVM keeps NaN, signed zeros, subnormals and roundings.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/scalar.h"

#include <cmath>

#include "support/check.h"

namespace cosmati::cpu {
namespace {

using ops::Op;

LLVMTypeRef of_lanes(const Place& at, LLVMTypeRef element) { return at.lanes ? LLVMVectorType(element, at.lanes) : element; }

LLVMTypeRef integer_of(const Place& at, DType t) { return of_lanes(at, LLVMIntTypeInContext(at.context, 8 * byte_size(t))); }

bool hardware_float(DType t) { return t == DType::f32_ || t == DType::f64_; }

LLVMValueRef select(const Place& at, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildSelect(at.builder, c, x, y, "");
}

// ---- floats ----------------------------------------------------------------------------------------------------------

LLVMValueRef is_nan(const Place& at, LLVMValueRef a) { return LLVMBuildFCmp(at.builder, LLVMRealUNO, a, a, ""); }

// The smaller or larger with -0 below +0; a NaN wins.
LLVMValueRef extreme(const Place& at, DType t, bool smaller, LLVMValueRef a, LLVMValueRef b) {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  if (major >= 17) return intrinsic(at, smaller ? "llvm.minimum" : "llvm.maximum", {register_type(at, t)}, {a, b});
  // Before, this processor had no code for these. Equal numbers differ in the sign of a zero only, so `or` is the smaller and
  // `and` the larger.
  const LLVMTypeRef bits = integer_of(at, t), type = register_type(at, t);
  const LLVMValueRef ai = LLVMBuildBitCast(at.builder, a, bits, ""), bi = LLVMBuildBitCast(at.builder, b, bits, "");
  const LLVMValueRef mixed = smaller ? LLVMBuildOr(at.builder, ai, bi, "") : LLVMBuildAnd(at.builder, ai, bi, "");
  const LLVMValueRef equal = LLVMBuildBitCast(at.builder, mixed, type, "");
  const LLVMValueRef below = LLVMBuildFCmp(at.builder, LLVMRealOLT, a, b, "");
  const LLVMValueRef above = LLVMBuildFCmp(at.builder, LLVMRealOGT, a, b, "");
  const LLVMValueRef number = select(at, smaller ? below : above, a, select(at, smaller ? above : below, b, equal));
  return select(at, is_nan(at, a), a, select(at, is_nan(at, b), b, number));
}

// Lane by lane: the functions take scalars.
LLVMValueRef call(const Place& at, const LibraryFunction& row, const std::vector<LLVMValueRef>& args) {
  const LLVMTypeRef real = LLVMDoubleTypeInContext(at.context);
  std::vector<LLVMTypeRef> types(args.size(), real);
  const LLVMTypeRef signature = LLVMFunctionType(real, types.data(), types.size(), false);
  LLVMValueRef f = LLVMGetNamedFunction(at.module, row.symbol);
  if (!f) {
    f = LLVMAddFunction(at.module, row.symbol, signature);
    for (const std::string_view name : {"nounwind", "willreturn"})
      LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                              LLVMCreateEnumAttribute(at.context, LLVMGetEnumAttributeKindForName(name.data(), name.size()), 0));
  }
  const auto one = [&](std::vector<LLVMValueRef> scalars) {
    return LLVMBuildCall2(at.builder, signature, f, scalars.data(), scalars.size(), "");
  };
  if (!at.lanes) return one(args);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(real, at.lanes));
  for (unsigned lane = 0; lane < at.lanes; ++lane) {
    const LLVMValueRef index = LLVMConstInt(LLVMInt32TypeInContext(at.context), lane, false);
    std::vector<LLVMValueRef> scalars;
    for (const LLVMValueRef arg : args) scalars.push_back(LLVMBuildExtractElement(at.builder, arg, index, ""));
    all = LLVMBuildInsertElement(at.builder, all, one(std::move(scalars)), index, "");
  }
  return all;
}

// The instruction takes vectors of 4, 8 or 16 f32; others go as parts of one, or as several.
LLVMValueRef scaled(const Place& at, LLVMValueRef x, LLVMValueRef n) {
  const auto number = [&](unsigned bits, unsigned value) {
    return LLVMConstInt(LLVMIntTypeInContext(at.context, bits), value, false);
  };
  const auto shuffled = [&](LLVMValueRef a, LLVMValueRef b, unsigned first, unsigned count) {
    std::vector<LLVMValueRef> from;
    for (unsigned l = 0; l < count; ++l) from.push_back(number(32, first + l));
    return LLVMBuildShuffleVector(at.builder, a, b, LLVMConstVector(from.data(), count), "");
  };
  const LLVMTypeRef f32 = LLVMFloatTypeInContext(at.context);
  if (at.lanes <= 2) {
    const LLVMTypeRef four = LLVMVectorType(f32, 4);
    const Place wide{at.context, at.module, at.builder, 4};
    if (at.lanes > 0) {
      const auto padded = [&](LLVMValueRef v) {
        LLVMValueRef from[] = {number(32, 0), number(32, at.lanes - 1), number(32, 0), number(32, 0)};
        return LLVMBuildShuffleVector(at.builder, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(from, 4), "");
      };
      return shuffled(scaled(wide, padded(x), padded(n)), LLVMGetPoison(four), 0, at.lanes);
    }
    const auto put = [&](LLVMValueRef v) {
      return LLVMBuildInsertElement(at.builder, LLVMConstNull(four), v, number(32, 0), "");
    };
    return LLVMBuildExtractElement(at.builder, scaled(wide, put(x), put(n)), number(32, 0), "");
  }
  if (at.lanes > 16) {
    const unsigned half = at.lanes / 2;
    const Place narrow{at.context, at.module, at.builder, half};
    const auto part = [&](LLVMValueRef v, unsigned first) { return shuffled(v, LLVMGetPoison(LLVMTypeOf(v)), first, half); };
    return shuffled(scaled(narrow, part(x, 0), part(n, 0)), scaled(narrow, part(x, half), part(n, half)), 0, at.lanes);
  }
  const LLVMTypeRef type = LLVMVectorType(f32, at.lanes);
  std::vector<LLVMValueRef> args = {x, n, LLVMConstNull(type), number(std::max(8u, at.lanes), (1u << at.lanes) - 1)};
  if (at.lanes == 16) args.push_back(number(32, 4));  // rounds as everything else does
  return intrinsic(at, fmt::format("llvm.x86.avx512.mask.scalef.ps.{}", at.lanes * 32), {}, args);
}

LLVMValueRef float_operation(const Place& at, Op op, DType t, const std::vector<LLVMValueRef>& args) {
  const LLVMBuilderRef to = at.builder;
  const LLVMTypeRef type = register_type(at, t);
  const LLVMValueRef a = args[0], b = args.size() > 1 ? args[1] : nullptr, c = args.size() > 2 ? args[2] : nullptr;
  const auto real = [&](double value) { return constant(at, t, {value, 0}); };
  const auto compare = [&](LLVMRealPredicate p) { return LLVMBuildFCmp(to, p, a, b, ""); };
  switch (op) {
    case Op::neg:
      return LLVMBuildFNeg(to, a, "");
    case Op::ldexp:
      if (t == DType::f32_) return scaled(at, a, b);
      break;
    case Op::add:
      return LLVMBuildFAdd(to, a, b, "");
    case Op::sub:
      return LLVMBuildFSub(to, a, b, "");
    case Op::mul:
      return LLVMBuildFMul(to, a, b, "");
    case Op::div:
      return LLVMBuildFDiv(to, a, b, "");
    case Op::fma:
      return intrinsic(at, "llvm.fma", {type}, {a, b, c});
    case Op::abs:
      return intrinsic(at, "llvm.fabs", {type}, {a});
    case Op::sign: {
      const LLVMValueRef zero = real(0);
      return select(at, LLVMBuildFCmp(to, LLVMRealOGT, a, zero, ""), real(1),
                    select(at, LLVMBuildFCmp(to, LLVMRealOLT, a, zero, ""), real(-1), a));
    }
    case Op::minimum:
    case Op::maximum:
      return extreme(at, t, op == Op::minimum, a, b);
    case Op::minimum_num:
    case Op::maximum_num:
      return select(at, is_nan(at, a), b, select(at, is_nan(at, b), a, extreme(at, t, op == Op::minimum_num, a, b)));
    case Op::floor:
      return intrinsic(at, "llvm.floor", {type}, {a});
    case Op::ceil:
      return intrinsic(at, "llvm.ceil", {type}, {a});
    case Op::trunc:
      return intrinsic(at, "llvm.trunc", {type}, {a});
    case Op::round:
      return intrinsic(at, "llvm.nearbyint", {type}, {a});
    case Op::sqrt:
      return intrinsic(at, "llvm.sqrt", {type}, {a});
    case Op::eq:
      return compare(LLVMRealOEQ);
    case Op::ne:
      return compare(LLVMRealUNE);
    case Op::lt:
      return compare(LLVMRealOLT);
    case Op::le:
      return compare(LLVMRealOLE);
    case Op::gt:
      return compare(LLVMRealOGT);
    case Op::ge:
      return compare(LLVMRealOGE);
    case Op::is_nan:
      return is_nan(at, a);
    case Op::is_inf:
      return LLVMBuildFCmp(to, LLVMRealOEQ, intrinsic(at, "llvm.fabs", {type}, {a}), real(INFINITY), "");
    default:
      break;
  }
  for (const LibraryFunction& row : library_functions())
    if (row.op == op && t == DType::f64_) return call(at, row, args);
  throw InternalError(fmt::format("cpu: {} on {} is not expanded", ops::name(op), name(t)));
}

// ---- integers and bool ------------------------------------------------------------------------------------------------

// Rounded down; by zero the quotient and the remainder are 0; the quotient by -1 wraps.
LLVMValueRef divide(const Place& at, Op op, DType t, LLVMValueRef a, LLVMValueRef b) {
  const LLVMBuilderRef to = at.builder;
  const bool quotient = op == Op::floordiv;
  const LLVMValueRef zero = constant(at, t, {0, 0}), one = constant(at, t, {0, 1});
  const LLVMValueRef by_zero = LLVMBuildICmp(to, LLVMIntEQ, b, zero, "");
  if (!is_signed(t)) {
    const LLVMValueRef safe = select(at, by_zero, one, b);
    return select(at, by_zero, zero, quotient ? LLVMBuildUDiv(to, a, safe, "") : LLVMBuildURem(to, a, safe, ""));
  }
  const LLVMValueRef minus_one = constant(at, t, {0, -1});
  const LLVMValueRef by_minus_one = LLVMBuildICmp(to, LLVMIntEQ, b, minus_one, "");
  const LLVMValueRef safe = select(at, LLVMBuildOr(to, by_zero, by_minus_one, ""), one, b);
  const LLVMValueRef q = LLVMBuildSDiv(to, a, safe, "");
  const LLVMValueRef r = LLVMBuildSub(to, a, LLVMBuildMul(to, q, safe, ""), "");
  const LLVMValueRef inexact = LLVMBuildICmp(to, LLVMIntNE, r, zero, "");
  const LLVMValueRef opposite = LLVMBuildICmp(to, LLVMIntSLT, LLVMBuildXor(to, r, safe, ""), zero, "");
  const LLVMValueRef down = LLVMBuildAnd(to, inexact, opposite, "");
  if (quotient) {
    const LLVMValueRef floor = select(at, down, LLVMBuildAdd(to, q, minus_one, ""), q);
    return select(at, by_zero, zero, select(at, by_minus_one, LLVMBuildNeg(to, a, ""), floor));
  }
  // With the divisor replaced by 1 the remainder is 0 already.
  return select(at, down, LLVMBuildAdd(to, r, safe, ""), r);
}

LLVMValueRef integer_operation(const Place& at, Op op, DType t, const std::vector<LLVMValueRef>& args) {
  const LLVMBuilderRef to = at.builder;
  const bool sign = is_signed(t);
  const LLVMValueRef a = args[0], b = args.size() > 1 ? args[1] : nullptr;
  const LLVMValueRef zero = constant(at, t, {0, 0});
  const auto compare = [&](LLVMIntPredicate with_sign, LLVMIntPredicate without) {
    return LLVMBuildICmp(to, sign ? with_sign : without, a, b, "");
  };
  const auto amount = [&] { return LLVMBuildAnd(to, b, constant(at, t, {0, 8 * byte_size(t) - 1}), ""); };
  switch (op) {
    case Op::neg:
      return LLVMBuildNeg(to, a, "");
    case Op::add:
      return LLVMBuildAdd(to, a, b, "");
    case Op::sub:
      return LLVMBuildSub(to, a, b, "");
    case Op::mul:
      return LLVMBuildMul(to, a, b, "");
    case Op::floordiv:
    case Op::mod:
      return divide(at, op, t, a, b);
    case Op::abs:
      return sign ? select(at, LLVMBuildICmp(to, LLVMIntSLT, a, zero, ""), LLVMBuildNeg(to, a, ""), a) : a;
    case Op::sign: {
      const LLVMValueRef nonzero = LLVMBuildZExt(to, LLVMBuildICmp(to, LLVMIntNE, a, zero, ""), LLVMTypeOf(a), "");
      if (!sign) return nonzero;
      return select(at, LLVMBuildICmp(to, LLVMIntSLT, a, zero, ""), constant(at, t, {0, -1}), nonzero);
    }
    case Op::minimum:
    case Op::minimum_num:
      return select(at, compare(LLVMIntSLT, LLVMIntULT), a, b);
    case Op::maximum:
    case Op::maximum_num:
      return select(at, compare(LLVMIntSGT, LLVMIntUGT), a, b);
    case Op::eq:
      return compare(LLVMIntEQ, LLVMIntEQ);
    case Op::ne:
      return compare(LLVMIntNE, LLVMIntNE);
    case Op::lt:
      return compare(LLVMIntSLT, LLVMIntULT);
    case Op::le:
      return compare(LLVMIntSLE, LLVMIntULE);
    case Op::gt:
      return compare(LLVMIntSGT, LLVMIntUGT);
    case Op::ge:
      return compare(LLVMIntSGE, LLVMIntUGE);
    case Op::bit_and:
      return LLVMBuildAnd(to, a, b, "");
    case Op::bit_or:
      return LLVMBuildOr(to, a, b, "");
    case Op::bit_xor:
      return LLVMBuildXor(to, a, b, "");
    case Op::shift_left:
      return LLVMBuildShl(to, a, amount(), "");
    case Op::shift_right:
      return sign ? LLVMBuildAShr(to, a, amount(), "") : LLVMBuildLShr(to, a, amount(), "");
    case Op::logical_not:
      return LLVMBuildNot(to, a, "");
    case Op::logical_and:
      return LLVMBuildAnd(to, a, b, "");
    case Op::logical_or:
      return LLVMBuildOr(to, a, b, "");
    default:
      break;
  }
  throw InternalError(fmt::format("cpu: {} on {} is not expanded", ops::name(op), name(t)));
}

// ---- conversions ------------------------------------------------------------------------------------------------------

// The upper half of the bits, to nearest even; of a NaN its sign.
LLVMValueRef to_bf16(const Place& at, LLVMValueRef a) {
  const LLVMBuilderRef b = at.builder;
  const auto word = [&](std::int64_t value) { return constant(at, DType::u32_, {0, value}); };
  const LLVMValueRef bits = LLVMBuildBitCast(b, a, register_type(at, DType::u32_), ""),
                     upper = LLVMBuildLShr(b, bits, word(16), "");
  const LLVMValueRef half = LLVMBuildAdd(b, LLVMBuildAnd(b, upper, word(1), ""), word(0x7fff), "");
  const LLVMValueRef rounded = LLVMBuildLShr(b, LLVMBuildAdd(b, bits, half, ""), word(16), "");
  const LLVMValueRef nan = LLVMBuildOr(b, LLVMBuildAnd(b, upper, word(0x8000), ""), word(0x7fc0), "");
  const LLVMValueRef all = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealUNO, a, a, ""), nan, rounded, "");
  return LLVMBuildTrunc(b, all, register_type(at, DType::bf16_), "");
}

LLVMValueRef cast(const Place& at, DType from, DType to, LLVMValueRef a) {
  const LLVMBuilderRef b = at.builder;
  const LLVMTypeRef type = register_type(at, to);
  if (from == to) return a;
  const LLVMTypeRef half = of_lanes(at, LLVMHalfTypeInContext(at.context));
  if (from == DType::f16_ && to == DType::f32_) return LLVMBuildFPExt(b, LLVMBuildBitCast(b, a, half, ""), type, "");
  if (from == DType::f32_ && to == DType::f16_) return LLVMBuildBitCast(b, LLVMBuildFPTrunc(b, a, half, ""), type, "");
  if (from == DType::f32_ && to == DType::bf16_) return to_bf16(at, a);
  COSMATI_CHECK((!is_float(from) || hardware_float(from)) && (!is_float(to) || hardware_float(to)),
                "cpu: the cast from {} to {} is not expanded", name(from), name(to));
  if (is_float(from)) {
    if (to == DType::f64_) return LLVMBuildFPExt(b, a, type, "");
    if (to == DType::f32_) return LLVMBuildFPTrunc(b, a, type, "");
    if (is_bool(to)) return LLVMBuildFCmp(b, LLVMRealUNE, a, constant(at, from, {0, 0}), "");
    return intrinsic(at, is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", {type, register_type(at, from)}, {a});
  }
  if (is_float(to)) return is_signed(from) ? LLVMBuildSIToFP(b, a, type, "") : LLVMBuildUIToFP(b, a, type, "");
  if (is_bool(to)) return LLVMBuildICmp(b, LLVMIntNE, a, constant(at, from, {0, 0}), "");
  return LLVMBuildIntCast2(b, a, type, is_signed(from), "");
}

LLVMValueRef reinterpret(const Place& at, DType from, DType to, LLVMValueRef a) {
  COSMATI_CHECK(byte_size(from) == byte_size(to) && !is_bool(from) && !is_bool(to), "cpu: bits of {} as {}", name(from),
                name(to));
  return LLVMBuildBitCast(at.builder, a, register_type(at, to), "");
}

}  // namespace

LLVMValueRef intrinsic(const Place& at, std::string_view name, std::vector<LLVMTypeRef> types, std::vector<LLVMValueRef> args) {
  const unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
  COSMATI_CHECK(id != 0, "LLVM has no intrinsic {}", name);
  const LLVMValueRef f = LLVMGetIntrinsicDeclaration(at.module, id, types.data(), types.size());
  return LLVMBuildCall2(at.builder, LLVMGlobalGetValueType(f), f, args.data(), args.size(), "");
}

LLVMValueRef splat(const Place& at, LLVMValueRef scalar) {
  const LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), at.lanes);
  const LLVMTypeRef word = LLVMInt32TypeInContext(at.context);
  const LLVMValueRef one = LLVMBuildInsertElement(at.builder, LLVMGetPoison(type), scalar, LLVMConstNull(word), "");
  return LLVMBuildShuffleVector(at.builder, one, LLVMGetPoison(type), LLVMConstNull(LLVMVectorType(word, at.lanes)), "");
}

LLVMValueRef bf16_by_instruction(const Place& at, LLVMValueRef a) {
  return LLVMBuildBitCast(at.builder, intrinsic(at, "llvm.x86.avx512bf16.cvtneps2bf16.512", {}, {a}),
                          register_type(at, DType::bf16_), "");
}

LLVMValueRef bf16_instruction_holds(const Place& at, LLVMValueRef a) {
  constexpr unsigned long long quiet_nan = 1, subnormal = 32, signaling_nan = 128;
  const LLVMTypeRef word = LLVMInt32TypeInContext(at.context), bits = LLVMIntTypeInContext(at.context, at.lanes);
  const LLVMValueRef classes = LLVMConstInt(word, quiet_nan | subnormal | signaling_nan, false);
  const LLVMValueRef others = intrinsic(at, "llvm.x86.avx512.fpclass.ps.512", {}, {a, classes});
  return LLVMBuildICmp(at.builder, LLVMIntEQ, LLVMBuildBitCast(at.builder, others, bits, ""), LLVMConstNull(bits), "");
}

LLVMTypeRef register_type(const Place& at, DType t) {
  if (is_bool(t)) return of_lanes(at, LLVMInt1TypeInContext(at.context));
  if (t == DType::f32_) return of_lanes(at, LLVMFloatTypeInContext(at.context));
  if (t == DType::f64_) return of_lanes(at, LLVMDoubleTypeInContext(at.context));
  return integer_of(at, t);
}

LLVMTypeRef memory_type(const Place& at, DType t) { return is_bool(t) ? integer_of(at, t) : register_type(at, t); }

LLVMValueRef constant(const Place& at, DType t, ops::Scalar value) {
  if (at.lanes) {
    std::vector<LLVMValueRef> all(at.lanes, constant({at.context, at.module, at.builder}, t, value));
    return LLVMConstVector(all.data(), at.lanes);
  }
  if (!is_float(t)) return LLVMConstInt(register_type(at, t), static_cast<unsigned long long>(value.i), is_signed(t));
  std::uint64_t bits = 0;
  ops::store(t, &bits, value);  // little-endian, as every processor LLVM's native target is used on here
  return LLVMConstBitCast(LLVMConstInt(integer_of(at, t), bits, false), register_type(at, t));
}

LLVMValueRef apply(const Place& at, Op op, DType argument, DType result, const std::vector<LLVMValueRef>& args) {
  switch (op) {
    case Op::cast:
      return cast(at, argument, result, args[0]);
    case Op::bits:
      return reinterpret(at, argument, result, args[0]);
    case Op::where:
      return select(at, args[0], args[1], args[2]);
    default:
      break;
  }
  if (!is_float(argument)) return integer_operation(at, op, argument, args);
  COSMATI_CHECK(hardware_float(argument), "cpu: {} on {} is not expanded", ops::name(op), name(argument));
  return float_operation(at, op, argument, args);
}

namespace {
double ldexp(double x, double n) {
  const ops::Scalar args[] = {{.f = x}, {.f = n}};
  return ops::reference(Op::ldexp, DType::f64_, DType::f64_, args).f;
}
}  // namespace

const std::vector<LibraryFunction>& library_functions() {
  using One = double (*)(double);
  using Two = double (*)(double, double);
  static const std::vector<LibraryFunction> rows = {
#define ROW(f) {Op::f, "cosmati_" #f, reinterpret_cast<void*>(static_cast<One>(std::f))}
      ROW(exp),
      ROW(exp2),
      ROW(expm1),
      ROW(log),
      ROW(log2),
      ROW(log1p),
      ROW(sin),
      ROW(cos),
      ROW(tanh),
      ROW(erf),
#undef ROW
      {Op::pow, "cosmati_pow", reinterpret_cast<void*>(static_cast<Two>(std::pow))},
      {Op::ldexp, "cosmati_ldexp", reinterpret_cast<void*>(static_cast<Two>(ldexp))},
  };
  return rows;
}

}  // namespace cosmati::cpu
