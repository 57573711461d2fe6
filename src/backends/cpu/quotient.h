// Vectors of f32 divided by one number, without the divider: with the bits of a division (docs/design/0004-quotients.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backends/cpu/scalar.h"

namespace cosmati::cpu {

class Quotients {
 public:
  // Whether vectors of this many lanes gain by it.
  static bool pay(unsigned lanes) { return lanes == 16; }

  // `one` makes scalars, `all` vectors of 16; the divisor is a scalar.
  Quotients(const Place& one, const Place& all, LLVMValueRef divisor);
  // Whether `of` holds for every lane of the dividend; else only a division will do. One bit.
  LLVMValueRef hold(LLVMValueRef dividend) const;
  LLVMValueRef of(LLVMValueRef dividend) const;
  LLVMValueRef divided(LLVMValueRef dividend) const;

 private:
  Place one_, all_;
  LLVMValueRef divisor_, high_, low_, mask_;  // high + low: 1 / divisor to 47 bits
};

}  // namespace cosmati::cpu
