// Extents that no argument binds, given by the names of axes: outputs are shaped by them, and they are held against what
// arguments say. SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cosmati {
namespace {

using testing::ElementsAre, testing::HasSubstr;

const Program plain = parse("program plain(in x: f32[i], out y: f32[i, j]) { parallel i, j { y[i, j] = x } }")[0];

std::string refusal(const Arguments& arguments, const Extents& extents) {
  try {
    Function(plain, Device::oracle()).missing_outputs(arguments, extents);
  } catch (const Error& e) {
    return e.message;
  }
  return "";
}

TEST(GivenExtents, ShapeTheOutputsThatNothingElseShapes) {
  float x[3] = {1, 2, 3};
  const auto shapes = Function(plain, Device::oracle()).missing_outputs({{"x", TensorView{x, f32, {3}}}}, {{"j", 5}, {"i", 3}});
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_THAT(shapes[0].shape, ElementsAre(3, 5));
}

TEST(GivenExtents, AreHeldAgainstTheArguments) {
  float x[3] = {1, 2, 3}, y[6];
  const Arguments given{{"x", TensorView{x, f32, {3}}}};
  EXPECT_THAT(refusal(given, {}), HasSubstr("nothing gives the extent of axis j"));
  EXPECT_EQ(refusal(given, {{"j", 2}, {"i", 4}}), "axis i is 4 in the call but 3 in dimension 0 of x");
  EXPECT_EQ(refusal({given[0], {"y", TensorView{y, f32, {3, 2}}}}, {{"j", 3}}),
            "axis j is 3 in the call but 2 in dimension 1 of y");
  EXPECT_EQ(refusal(given, {{"j", -1}}), "axis j cannot have the extent -1");
  EXPECT_EQ(refusal(given, {{"k", 1}}), "plain has no parameter or axis `k`");
}

TEST(GivenExtents, TellTheFactorsOfADimension) {
  const Program p =
      parse("program halves(in x: f32[(g, r), n], out y: f32[g, n]) {\n parallel g, n { y[g, n] = sum(x, r) }\n}").front();
  const Function f(p, Device::oracle());
  float x[24] = {};
  const Arguments given{{"x", TensorView{x, f32, {6, 4}}}};
  EXPECT_THAT(f.missing_outputs(given, {{"g", 2}})[0].shape, ElementsAre(2, 4));
  try {
    f.missing_outputs(given);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.message, "dimension 0 of x is 6 = g * r, and nothing gives the extent of axis g");
    EXPECT_EQ(
        e.hint,
        "pass y too (C++: its view; Python: out= or g=EXTENT; command line: y=f32[...,...]:zeros), or declare `axis g = ...`");
  }
}

}  // namespace
}  // namespace cosmati
