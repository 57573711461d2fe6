// One operation of ops.def as LLVM instructions, with the bits of ops::reference, on scalars or on vectors with one element a
// lane. Values in registers: bool is i1, f32 and f64 are floats, everything else (f16, bf16 and f8 as raw bits) an integer of its
// size.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include <llvm-c/Core.h>

#include "ops/ops.h"

namespace cosmati::cpu {

struct Place {  // where instructions go
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  unsigned lanes = 0;  // 0: scalars; else types and constants are vectors of this many
};

LLVMValueRef intrinsic(const Place& at, std::string_view name, std::vector<LLVMTypeRef> types, std::vector<LLVMValueRef> args);
LLVMTypeRef register_type(const Place& at, DType t);
LLVMTypeRef memory_type(const Place& at, DType t);  // bool is a byte
LLVMValueRef constant(const Place& at, DType t, ops::Scalar value);
LLVMValueRef splat(const Place& at, LLVMValueRef scalar);  // in every lane

// Vectors of 16 f32 to bf16 where the processor has that, and whether it does what a conversion means for all of these: it takes
// subnormal numbers for zeros, and keeps what a NaN carries.
LLVMValueRef bf16_by_instruction(const Place& at, LLVMValueRef a);
LLVMValueRef bf16_instruction_holds(const Place& at, LLVMValueRef a);

// `argument` is the type of the arguments (of the branches for `where`).
LLVMValueRef apply(const Place& at, ops::Op op, DType argument, DType result, const std::vector<LLVMValueRef>& args);

// The functions of libm that code calls on f64, under names that LLVM does not know (it would rewrite calls of pow or exp2).
struct LibraryFunction {
  ops::Op op;
  const char* symbol;
  void* address;
};
const std::vector<LibraryFunction>& library_functions();

}  // namespace cosmati::cpu
