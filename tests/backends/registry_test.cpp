// The table of backends and its errors.
// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include <gtest/gtest.h>

#include <cosmati/error.h>

#include "backends/cpu/cpu.h"
#include "backends/native/native.h"

namespace cosmati::test {
namespace {

ErrorCode code_of(const std::string& name) {
  try {
    backends::require(name);
  } catch (const Error& e) {
    return e.code;
  }
  return ErrorCode::syntax;
}

TEST(registry, names_what_is_there_and_refuses_the_rest) {
  for (const backends::Backend& b : backends::list()) {
    EXPECT_FALSE(b.detail.empty());
    if (b.present)
      EXPECT_NO_THROW(backends::require(b.name));
    else
      EXPECT_EQ(code_of(b.name), ErrorCode::backend_absent);
  }
}

TEST(registry, the_cpu_says_what_it_is_or_why_it_is_absent) {
  if (!cpu::absent()) {
    EXPECT_NE(native::host_description().find("thread"), std::string::npos);
    return;
  }
  EXPECT_EQ(code_of("cpu"), ErrorCode::backend_absent);
  EXPECT_THROW(cpu::compile({}), Error);
  EXPECT_THROW(cpu::emit({}, "llvm"), Error);
}

}  // namespace
}  // namespace cosmati::test
