// Extents that shapes leave open: a launch and made-up arguments find the same ones.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/extents.h"

#include <cosmati/runtime.h>
#include <gtest/gtest.h>

#include "library/proofs.h"
#include "library/random_inputs.h"
#include "runtime/bind.h"

namespace cosmati::runtime {
namespace {

// The arguments of a case as a caller would pass them.
Arguments arguments_of(const ir::Program& p, const oracle::Inputs& inputs) {
  Arguments arguments;
  for (std::size_t t = 0; t < p.tensors.size(); ++t) arguments.emplace_back(p.tensors[t].name, inputs.tensors[t]);
  for (std::size_t s = 0; s < p.scalars.size(); ++s)
    if (!p.scalars[s].fallback) arguments.emplace_back(p.scalars[s].name, inputs.scalars[s].i);
  return arguments;
}

TEST(Extents, MadeUpArgumentsHaveTheExtentsOfALaunch) {
  const char* const texts[] = {
      "program p(in x: f32[(a, b)], in z: f32[a], out y: i64[]) {\n  parallel { y[] = extent(b) }\n}",
      "program p(in x: f32[(a, b, c)], in z: f32[a, c], out y: i64[]) {\n  parallel { y[] = extent(b) }\n}",
      "program p(in x: f32[(a, b)], in u: f32[(b, c)], in z: f32[a], out y: i64[]) {\n  parallel { y[] = extent(c) }\n}",
      "program p(in x: f32[(a, b)], in z: f32[a], k: i64 = extent(b) + 1, out y: i64[]) {\n  parallel { y[] = k }\n}",
      "program p(in x: f32[(a, b)], in z: f32[a], out y: i64[]) {\n  axis b = extent(a) + 1\n  parallel { y[] = extent(b) }\n}",
      "program p(in x: f32[(a, b)], n: i32, out y: i64[]) {\n  axis a = n - 1\n  parallel { y[] = extent(b) }\n}",
      "program p(in x: i32[a + 1] in 0 .. extent(b) + 1, in u: f32[(a, b)], out y: i64[]) {\n  parallel { y[] = extent(b) }\n}"};
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    const Program program = parse(text).front();
    const ir::Program p = program.source().instantiate({});
    const Instances instances(program, library::proofs());
    int cases = 0, open = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const auto owned = library::random_inputs(p, seed);
      if (!owned) continue;
      ++cases;
      const Arguments arguments = arguments_of(p, owned->inputs);
      const Bound bound = bind(instances, arguments, {});
      EXPECT_EQ(bound.inputs.extents, owned->inputs.extents);
      for (std::size_t s = 0; s < p.scalars.size(); ++s) EXPECT_EQ(bound.inputs.scalars[s].i, owned->inputs.scalars[s].i);
      for (const TensorView& view : owned->inputs.tensors) open += view.elements() == 0 ? 1 : 0;
      // What the program makes of them is judged at the same extents.
      std::int64_t y = -1;
      Arguments run = arguments;
      for (auto& [name, argument] : run)
        if (name == "y") argument = TensorView(&y, i64, {});
      Function(program, Device::sim())(run);
      EXPECT_EQ(y, oracle::run(p, owned->inputs).outputs.at(0).values.at(0).i);
    }
    EXPECT_GE(cases, 100);
    EXPECT_GE(open, 10);
  }
}

TEST(Extents, AFactorBesideAnEmptyOneIsEmptyUnlessSomethingElseGivesIt) {
  auto extent_of_b = [](const std::string& more, const std::string& declarations, const Arguments& arguments) {
    const Program program = parse("program p(in x: f32[(a, b)], in z: f32[a]" + more + ", out y: i64[]) {\n" + declarations +
                                  "  parallel { y[] = extent(b) }\n}")
                                .front();
    std::int64_t y = -1;
    Arguments all = arguments;
    all.emplace_back("x", TensorView(nullptr, f32, {0}));
    all.emplace_back("z", TensorView(nullptr, f32, {0}));
    all.emplace_back("y", TensorView(&y, i64, {}));
    Function(program, Device::sim())(all);
    return y;
  };
  float w[4] = {};
  EXPECT_EQ(extent_of_b("", "", {}), 0);
  EXPECT_EQ(extent_of_b("", "  axis b = 7\n", {}), 7);
  EXPECT_EQ(extent_of_b(", in w: f32[b]", "", {{"w", TensorView(w, f32, {4})}}), 4);
}

}  // namespace
}  // namespace cosmati::runtime
