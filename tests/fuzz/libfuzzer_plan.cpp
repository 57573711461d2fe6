// libFuzzer: any bytes as a plan file. They are refused with Error, or are the plan that is derived.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "ir/inline_replaces.h"
#include "language/source.h"
#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cosmati;
  static const ir::Program program = ir::inline_replaces(
      language::parse(
          "program softmax(in x: f32[row, col], out y: f32[row, col]) {\n  parallel row {\n    e = exp(x - max(x, col))\n"
          "    y[row, col] = e / sum(e, col)\n  }\n}\n",
          "softmax.tile")
          .back()
          ->instantiate({}));
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const plan::Facts facts{{{false, true}, {false, true}}, {}};
    const plan::Plan derived = plan::make_plan(program, "softmax", plan::target_named("sim"), plan::knobs_of(text), facts);
    plan::require_same(program, derived, text);
  } catch (const Error&) {
  }
  return 0;
}
