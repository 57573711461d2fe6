// Affine values stay scalars through sums and products with constants; comparing neighbours with a uniform bound becomes a
// comparison of lane numbers. Neighbouring elements are one access, all others a gather or a scatter.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lanes.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace cosmati::cpu {

using Form = Value::Form;
using ops::Op;

namespace {

LLVMValueRef int32(const Place& at, std::int64_t value) {
  return LLVMConstInt(LLVMInt32TypeInContext(at.context), static_cast<unsigned long long>(value), true);
}

std::optional<std::int64_t> constant_of(LLVMValueRef v) {
  if (!LLVMIsAConstantInt(v)) return std::nullopt;
  return LLVMConstIntGetSExtValue(v);
}

}  // namespace

Value Lanes::lane() const { return {constant(one_, DType::i64_, {0, 0}), Form::affine, 1}; }

LLVMValueRef Lanes::count(std::int64_t first, std::int64_t step, DType t) const {
  std::vector<LLVMValueRef> numbers;
  for (unsigned l = 0; l < all_.lanes; ++l)
    numbers.push_back(constant(one_, t,
                               {0, ops::wrap_to(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                                                             static_cast<std::uint64_t>(step) * l))}));
  return LLVMConstVector(numbers.data(), all_.lanes);
}

LLVMValueRef Lanes::splat(LLVMValueRef scalar) const {
  const LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), all_.lanes);
  const LLVMValueRef one = LLVMBuildInsertElement(all_.builder, LLVMGetPoison(type), scalar, int32(all_, 0), "");
  std::vector<LLVMValueRef> zeros(all_.lanes, int32(all_, 0));
  return LLVMBuildShuffleVector(all_.builder, one, LLVMGetPoison(type), LLVMConstVector(zeros.data(), all_.lanes), "");
}

LLVMValueRef Lanes::vector(const Value& v, DType t) const {
  if (v.form == Form::vector) return v.ref;
  if (v.form == Form::uniform) return splat(v.ref);
  COSMATI_CHECK(t == DType::i64_, "an affine value of type {}", name(t));
  return LLVMBuildAdd(all_.builder, splat(v.ref), count(0, v.step, t), "");
}

std::optional<Value> Lanes::affine(Op op, const std::vector<Value>& args) const {
  if (args.size() != 2) return std::nullopt;
  const Value &a = args[0], &b = args[1];
  if (a.form == Form::vector || b.form == Form::vector) return std::nullopt;
  const auto with = [&](LLVMValueRef ref, std::int64_t step) -> Value {
    return {ref, step == 0 ? Form::uniform : Form::affine, step};
  };
  std::int64_t step = 0;
  if (op == Op::add && !__builtin_add_overflow(a.step, b.step, &step))
    return with(LLVMBuildAdd(one_.builder, a.ref, b.ref, ""), step);
  if (op == Op::sub && !__builtin_sub_overflow(a.step, b.step, &step))
    return with(LLVMBuildSub(one_.builder, a.ref, b.ref, ""), step);
  if (op != Op::mul) return std::nullopt;
  const Value& scaled = a.varies() ? a : b;
  const Value& by = a.varies() ? b : a;
  const auto factor = constant_of(by.ref);
  if (by.varies() || !factor || __builtin_mul_overflow(scaled.step, *factor, &step)) return std::nullopt;
  return with(LLVMBuildMul(one_.builder, scaled.ref, by.ref, ""), step);
}

// base + lane compared with a uniform bound: the number of lanes before the bound, from 0 to all, compared with the lane.
std::optional<LLVMValueRef> Lanes::below(Op op, const std::vector<Value>& args) const {
  if (op != Op::lt || args[0].form != Form::affine || args[0].step != 1 || args[1].varies()) return std::nullopt;
  const LLVMBuilderRef to = one_.builder;
  const LLVMValueRef zero = constant(one_, DType::i64_, {0, 0}), all = constant(one_, DType::i64_, {0, all_.lanes});
  const LLVMValueRef left = LLVMBuildSub(to, args[1].ref, args[0].ref, "");
  const LLVMValueRef some = LLVMBuildSelect(to, LLVMBuildICmp(to, LLVMIntSLT, args[0].ref, args[1].ref, ""), left, zero, "");
  // As unsigned: what is left of an extreme bound may not fit into i64.
  const LLVMValueRef few = LLVMBuildSelect(to, LLVMBuildICmp(to, LLVMIntULT, some, all, ""), some, all, "");
  const LLVMValueRef narrow = LLVMBuildTrunc(to, few, register_type(one_, DType::i32_), "");
  const LLVMValueRef counted = LLVMBuildICmp(to, LLVMIntULT, count(0, 1, DType::i32_), splat(narrow), "");
  // Integers wrap: where the last lane's is beyond the largest, the numbers themselves are compared.
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() - all_.lanes;
  const LLVMValueRef wraps = LLVMBuildICmp(to, LLVMIntSGT, args[0].ref, constant(one_, DType::i64_, {0, largest}), "");
  const LLVMValueRef compared = LLVMBuildICmp(to, LLVMIntSLT, vector(args[0], DType::i64_), splat(args[1].ref), "");
  return LLVMBuildSelect(to, wraps, compared, counted, "");
}

Value Lanes::apply(Op op, DType argument, DType result, const std::vector<Value>& args) const {
  if (std::none_of(args.begin(), args.end(), [](const Value& v) { return v.varies(); })) {
    std::vector<LLVMValueRef> scalars;
    for (const Value& v : args) scalars.push_back(v.ref);
    return {cpu::apply(one_, op, argument, result, scalars)};
  }
  if (argument == DType::i64_) {
    if (const auto sum = affine(op, args)) return *sum;
    if (args.size() == 2)
      if (const auto mask = below(op, args)) return {*mask, Form::vector};
    if (op == Op::cast && is_int(result) && args[0].form == Form::affine) {
      const LLVMValueRef base = cpu::apply(one_, op, argument, result, {args[0].ref});
      return {LLVMBuildAdd(all_.builder, splat(base), count(0, args[0].step, result), ""), Form::vector};
    }
  }
  std::vector<LLVMValueRef> vectors;
  for (std::size_t i = 0; i < args.size(); ++i)
    vectors.push_back(vector(args[i], op == Op::where && i == 0 ? DType::bool_ : argument));
  return {cpu::apply(all_, op, argument, result, vectors), Form::vector};
}

Value Lanes::swap(const Value& v, DType t, std::uint32_t mask) const {
  std::vector<LLVMValueRef> from;
  for (unsigned l = 0; l < all_.lanes; ++l) from.push_back(int32(all_, l ^ mask));
  const LLVMValueRef all = vector(v, t);
  return {LLVMBuildShuffleVector(all_.builder, all, LLVMGetPoison(LLVMTypeOf(all)), LLVMConstVector(from.data(), all_.lanes), ""),
          Form::vector};
}

Value Lanes::first(const Value& v, DType t) const {
  if (!v.varies()) return v;
  return {LLVMBuildExtractElement(all_.builder, vector(v, t), int32(all_, 0), "")};
}

LLVMValueRef Lanes::pointers(LLVMTypeRef element, LLVMValueRef base, const Value& offset) const {
  LLVMValueRef index = vector(offset, DType::i64_);
  return LLVMBuildGEP2(all_.builder, element, base, &index, 1, "");
}

Value Lanes::load(DType t, LLVMValueRef base, const Value& offset, const Value* guard, const Value* otherwise) const {
  const LLVMBuilderRef to = all_.builder;
  const LLVMTypeRef element = memory_type(one_, t), type = memory_type(all_, t);
  const bool neighbours = offset.form == Form::affine && offset.step == 1;
  LLVMValueRef passed = LLVMGetPoison(type), loaded = nullptr;
  if (otherwise) passed = vector(*otherwise, t);
  if (otherwise && is_bool(t)) passed = LLVMBuildZExt(to, passed, type, "");
  if (neighbours) {
    LLVMValueRef index = offset.ref;
    const LLVMValueRef at = LLVMBuildGEP2(to, element, base, &index, 1, "");
    if (guard) {
      loaded =
          intrinsic(all_, "llvm.masked.load", {type, LLVMTypeOf(at)}, {at, int32(all_, 1), vector(*guard, DType::bool_), passed});
    } else {
      loaded = LLVMBuildLoad2(to, type, at, "");
      LLVMSetAlignment(loaded, 1);
    }
  } else {
    const LLVMValueRef at = pointers(element, base, offset);
    const LLVMValueRef mask = guard ? vector(*guard, DType::bool_) : constant(all_, DType::bool_, {0, 1});
    loaded = intrinsic(all_, "llvm.masked.gather", {type, LLVMTypeOf(at)}, {at, int32(all_, 1), mask, passed});
  }
  if (is_bool(t)) loaded = LLVMBuildICmp(to, LLVMIntNE, loaded, LLVMConstNull(type), "");
  return {loaded, Form::vector};
}

void Lanes::store(DType t, LLVMValueRef base, const Value& offset, const Value& value, const Value* guard) const {
  const LLVMBuilderRef to = all_.builder;
  const LLVMTypeRef element = memory_type(one_, t), type = memory_type(all_, t);
  LLVMValueRef stored = vector(value, t);
  if (is_bool(t)) stored = LLVMBuildZExt(to, stored, type, "");
  if (offset.form == Form::affine && offset.step == 1) {
    LLVMValueRef index = offset.ref;
    const LLVMValueRef at = LLVMBuildGEP2(to, element, base, &index, 1, "");
    if (guard)
      intrinsic(all_, "llvm.masked.store", {type, LLVMTypeOf(at)}, {stored, at, int32(all_, 1), vector(*guard, DType::bool_)});
    else
      LLVMSetAlignment(LLVMBuildStore(to, stored, at), 1);
    return;
  }
  const LLVMValueRef at = pointers(element, base, offset);
  const LLVMValueRef mask = guard ? vector(*guard, DType::bool_) : constant(all_, DType::bool_, {0, 1});
  intrinsic(all_, "llvm.masked.scatter", {type, LLVMTypeOf(at)}, {stored, at, int32(all_, 1), mask});
}

}  // namespace cosmati::cpu
