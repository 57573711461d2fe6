// Values of a group of lanes: one scalar for all lanes, a scalar plus a constant times the lane (how addresses of neighbours are
// found), or a vector. A form is kept until an operation needs a wider one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "backends/cpu/scalar.h"

namespace cosmati::cpu {

struct Value {
  LLVMValueRef ref = nullptr;  // affine and strided: of lane 0
  enum class Form : std::uint8_t { uniform, affine, strided, vector } form = Form::uniform;
  std::int64_t step = 0;          // affine (i64 only): from one lane to the next
  LLVMValueRef stride = nullptr;  // strided (i64 only): the same, where only the launch knows it
  bool varies() const { return form != Form::uniform; }
  bool neighbours() const { return form == Form::affine && step == 1; }  // of an offset: the lanes lie next to each other
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
  // Neighbours at a multiple of `bytes`, to memory without a place in the caches, so many bytes at a time.
  void store_past_caches(DType t, LLVMValueRef base, const Value& offset, const Value& value, unsigned bytes) const;
  // As many vectors as there are lanes, one element after the other: in each lane neighbours that begin at its offset.
  std::vector<Value> load_tile(DType t, LLVMValueRef base, const Value& offset) const;
  // Gives every lane's neighbours as one vector, with where it goes: what store() takes.
  std::vector<std::pair<Value, Value>> rows_of_tile(DType t, const Value& offset, const std::vector<Value>& values) const;
  unsigned count() const { return all_.lanes; }

 private:
  LLVMValueRef count(std::int64_t first, std::int64_t step, DType t) const;  // first + step * lane
  LLVMValueRef splat(LLVMValueRef scalar) const;
  LLVMValueRef stride(const Value& v) const;
  std::optional<Value> strided(ops::Op op, const Value& a, const Value& b) const;
  std::optional<Value> affine(ops::Op op, const std::vector<Value>& args) const;
  std::optional<LLVMValueRef> below(ops::Op op, const std::vector<Value>& args) const;
  std::vector<LLVMValueRef> transposed(std::vector<LLVMValueRef> rows) const;
  LLVMValueRef pointer(LLVMTypeRef element, LLVMValueRef base, const Value& offset, unsigned lane) const;
  LLVMValueRef pointers(LLVMTypeRef element, LLVMValueRef base, const Value& offset) const;

  Place one_, all_;
};

}  // namespace cosmati::cpu
