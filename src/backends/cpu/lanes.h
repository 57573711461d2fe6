// Values of a group of lanes: one scalar for all lanes, a scalar plus a constant times the lane (how addresses of neighbours are
// found), or a vector. A form is kept until an operation needs a wider one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "backends/cpu/scalar.h"

namespace cosmati::cpu {

struct Value {
  LLVMValueRef ref = nullptr;  // affine: of lane 0
  enum class Form : std::uint8_t { uniform, affine, vector } form = Form::uniform;
  std::int64_t step = 0;  // affine (i64 only): from one lane to the next
  bool varies() const { return form != Form::uniform; }
};

class Lanes {
 public:
  Lanes(const Place& scalar, unsigned lanes) : one_(scalar), all_(scalar) { all_.lanes = lanes; }

  Value lane() const;
  LLVMValueRef vector(const Value& v, DType t) const;
  LLVMTypeRef type(DType t, bool varies) const { return register_type(varies ? all_ : one_, t); }

  Value apply(ops::Op op, DType argument, DType result, const std::vector<Value>& args) const;
  Value swap(const Value& v, DType t, std::uint32_t mask) const;
  Value first(const Value& v, DType t) const;

  // Memory at base[offset], of elements of any alignment; the offset varies. Where the guard is false nothing is touched.
  Value load(DType t, LLVMValueRef base, const Value& offset, const Value* guard, const Value* otherwise) const;
  void store(DType t, LLVMValueRef base, const Value& offset, const Value& value, const Value* guard) const;

 private:
  LLVMValueRef count(std::int64_t first, std::int64_t step, DType t) const;  // first + step * lane
  LLVMValueRef splat(LLVMValueRef scalar) const;
  std::optional<Value> affine(ops::Op op, const std::vector<Value>& args) const;
  std::optional<LLVMValueRef> below(ops::Op op, const std::vector<Value>& args) const;
  LLVMValueRef pointers(LLVMTypeRef element, LLVMValueRef base, const Value& offset) const;

  Place one_, all_;
};

}  // namespace cosmati::cpu
