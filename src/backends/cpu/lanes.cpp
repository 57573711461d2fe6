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

LLVMValueRef Lanes::splat(LLVMValueRef scalar) const { return cpu::splat(all_, scalar); }

LLVMValueRef Lanes::vector(const Value& v, DType t) const {
  if (v.form == Form::vector) return v.ref;
  if (v.form == Form::uniform) return splat(v.ref);
  COSMATI_CHECK(t == DType::i64_, "an affine value of type {}", name(t));
  if (v.form == Form::strided)
    return LLVMBuildAdd(all_.builder, splat(v.ref), LLVMBuildMul(all_.builder, splat(v.stride), count(0, 1, t), ""), "");
  return LLVMBuildAdd(all_.builder, splat(v.ref), count(0, v.step, t), "");
}

LLVMValueRef Lanes::stride(const Value& v) const {
  return v.form == Form::strided ? v.stride : constant(one_, DType::i64_, {0, v.step});
}

// Sums and products that keep one distance from lane to lane, which only the launch knows.
std::optional<Value> Lanes::strided(Op op, const Value& a, const Value& b) const {
  const LLVMBuilderRef to = one_.builder;
  const bool stays = a.form != Form::strided && b.form != Form::strided;
  if (op == Op::mul && a.varies() != b.varies()) {
    const Value &scaled = a.varies() ? a : b, &by = a.varies() ? b : a;
    return Value{LLVMBuildMul(to, scaled.ref, by.ref, ""), Form::strided, 0, LLVMBuildMul(to, stride(scaled), by.ref, "")};
  }
  if (stays || (op != Op::add && op != Op::sub)) return std::nullopt;
  const auto apply = op == Op::add ? LLVMBuildAdd : LLVMBuildSub;
  return Value{apply(to, a.ref, b.ref, ""), Form::strided, 0, apply(to, stride(a), stride(b), "")};
}

std::optional<Value> Lanes::affine(Op op, const std::vector<Value>& args) const {
  if (args.size() != 2) return std::nullopt;
  const Value &a = args[0], &b = args[1];
  if (a.form == Form::vector || b.form == Form::vector) return std::nullopt;
  if (a.form == Form::strided || b.form == Form::strided) return strided(op, a, b);
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
  if (!by.varies() && !factor) return strided(op, a, b);
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

// Of one lane of an offset that is no vector.
LLVMValueRef Lanes::pointer(LLVMTypeRef element, LLVMValueRef base, const Value& offset, unsigned lane) const {
  const LLVMBuilderRef to = one_.builder;
  LLVMValueRef by = LLVMBuildMul(to, stride(offset), constant(one_, DType::i64_, {0, lane}), "");
  LLVMValueRef index = offset.ref;
  const LLVMValueRef first = LLVMBuildGEP2(to, element, base, &index, 1, "");
  return LLVMBuildGEP2(to, element, first, &by, 1, "");
}

Value Lanes::load(DType t, LLVMValueRef base, const Value& offset, const Value* guard, const Value* otherwise) const {
  const LLVMBuilderRef to = all_.builder;
  const LLVMTypeRef element = memory_type(one_, t), type = memory_type(all_, t);
  LLVMValueRef passed = LLVMGetPoison(type), loaded = nullptr;
  if (otherwise) passed = vector(*otherwise, t);
  if (otherwise && is_bool(t)) passed = LLVMBuildZExt(to, passed, type, "");
  if (offset.neighbours()) {
    LLVMValueRef index = offset.ref;
    const LLVMValueRef at = LLVMBuildGEP2(to, element, base, &index, 1, "");
    if (guard) {
      loaded =
          intrinsic(all_, "llvm.masked.load", {type, LLVMTypeOf(at)}, {at, int32(all_, 1), vector(*guard, DType::bool_), passed});
    } else {
      loaded = LLVMBuildLoad2(to, type, at, "");
      LLVMSetAlignment(loaded, 1);
    }
  } else if (offset.form != Form::vector && !guard) {
    // Loads of single elements are faster than a gather.
    loaded = LLVMGetPoison(type);
    for (unsigned l = 0; l < all_.lanes; ++l) {
      const LLVMValueRef one = LLVMBuildLoad2(to, element, pointer(element, base, offset, l), "");
      LLVMSetAlignment(one, 1);
      loaded = LLVMBuildInsertElement(to, loaded, one, int32(all_, l), "");
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
  if (offset.neighbours()) {
    LLVMValueRef index = offset.ref;
    const LLVMValueRef at = LLVMBuildGEP2(to, element, base, &index, 1, "");
    if (guard)
      intrinsic(all_, "llvm.masked.store", {type, LLVMTypeOf(at)}, {stored, at, int32(all_, 1), vector(*guard, DType::bool_)});
    else
      LLVMSetAlignment(LLVMBuildStore(to, stored, at), 1);
    return;
  }
  if (offset.form != Form::vector && !guard) {
    for (unsigned l = 0; l < all_.lanes; ++l)
      LLVMSetAlignment(
          LLVMBuildStore(to, LLVMBuildExtractElement(to, stored, int32(all_, l), ""), pointer(element, base, offset, l)), 1);
    return;
  }
  const LLVMValueRef at = pointers(element, base, offset);
  const LLVMValueRef mask = guard ? vector(*guard, DType::bool_) : constant(all_, DType::bool_, {0, 1});
  intrinsic(all_, "llvm.masked.scatter", {type, LLVMTypeOf(at)}, {stored, at, int32(all_, 1), mask});
}

// Blocks of 1, 2, 4, ... elements change places across the diagonal.
std::vector<LLVMValueRef> Lanes::transposed(std::vector<LLVMValueRef> rows) const {
  const unsigned n = all_.lanes;
  for (unsigned d = 1; d < n; d *= 2)
    for (unsigned r = 0; r < n; ++r) {
      if (r & d) continue;
      std::vector<LLVMValueRef> low, high;
      for (unsigned l = 0; l < n; ++l) {
        low.push_back(int32(all_, l & d ? n + l - d : l));
        high.push_back(int32(all_, l & d ? n + l : l + d));
      }
      const LLVMValueRef a = rows[r], b = rows[r + d];
      rows[r] = LLVMBuildShuffleVector(all_.builder, a, b, LLVMConstVector(low.data(), n), "");
      rows[r + d] = LLVMBuildShuffleVector(all_.builder, a, b, LLVMConstVector(high.data(), n), "");
    }
  return rows;
}

std::vector<Value> Lanes::load_tile(DType t, LLVMValueRef base, const Value& offset) const {
  const LLVMTypeRef type = memory_type(all_, t);
  std::vector<LLVMValueRef> rows;
  for (unsigned l = 0; l < all_.lanes; ++l) {
    rows.push_back(LLVMBuildLoad2(all_.builder, type, pointer(memory_type(one_, t), base, offset, l), ""));
    LLVMSetAlignment(rows.back(), 1);
  }
  std::vector<Value> values;
  for (LLVMValueRef v : transposed(std::move(rows))) {
    if (is_bool(t)) v = LLVMBuildICmp(all_.builder, LLVMIntNE, v, LLVMConstNull(type), "");
    values.push_back({v, Form::vector});
  }
  return values;
}

std::vector<std::pair<Value, Value>> Lanes::rows_of_tile(DType t, const Value& offset, const std::vector<Value>& values) const {
  std::vector<LLVMValueRef> columns;
  for (const Value& v : values) columns.push_back(vector(v, t));
  std::vector<std::pair<Value, Value>> rows;
  for (const LLVMValueRef row : transposed(std::move(columns))) {
    const LLVMValueRef by =
        LLVMBuildMul(one_.builder, stride(offset), constant(one_, DType::i64_, {0, static_cast<std::int64_t>(rows.size())}), "");
    rows.push_back({{LLVMBuildAdd(one_.builder, offset.ref, by, ""), Form::affine, 1}, {row, Form::vector}});
  }
  return rows;
}

void Lanes::store_past_caches(DType t, LLVMValueRef base, const Value& offset, const Value& value, unsigned bytes) const {
  const LLVMBuilderRef to = all_.builder;
  LLVMValueRef stored = vector(value, t);
  if (is_bool(t)) stored = LLVMBuildZExt(to, stored, memory_type(all_, t), "");
  const LLVMMetadataRef one = LLVMValueAsMetadata(int32(all_, 1));
  constexpr std::string_view name = "nontemporal";
  const unsigned kind = LLVMGetMDKindIDInContext(all_.context, name.data(), static_cast<unsigned>(name.size()));
  const LLVMValueRef past =
      LLVMMetadataAsValue(all_.context, LLVMMDNodeInContext2(all_.context, const_cast<LLVMMetadataRef*>(&one), 1));
  const unsigned size = static_cast<unsigned>(std::max(1, byte_size(t))), count = bytes / size;
  for (unsigned first = 0; first < all_.lanes; first += count) {
    std::vector<LLVMValueRef> from;
    for (unsigned l = first; l < first + count; ++l) from.push_back(int32(all_, l));
    const LLVMValueRef part =
        LLVMBuildShuffleVector(to, stored, LLVMGetPoison(LLVMTypeOf(stored)), LLVMConstVector(from.data(), count), "");
    const LLVMValueRef store = LLVMBuildStore(to, part, pointer(memory_type(one_, t), base, offset, first));
    LLVMSetAlignment(store, bytes);
    LLVMSetMetadata(store, kind, past);
  }
}

}  // namespace cosmati::cpu
