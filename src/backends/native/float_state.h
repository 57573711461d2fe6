// The floating-point control state of a task: round to nearest, subnormals kept, exceptions masked. What the thread had before
// (flags included) comes back when the guard dies.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace cosmati::native {

class DefaultFloatState {
 public:
  DefaultFloatState(const DefaultFloatState&) = delete;
  DefaultFloatState& operator=(const DefaultFloatState&) = delete;
#if defined(__x86_64__)
  // Code and libm on x86-64 compute in SSE registers only, so the x87 control word does not matter.
  DefaultFloatState() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatState() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  DefaultFloatState() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatState() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace cosmati::native
