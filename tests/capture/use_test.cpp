// The C++ form used: objects at namespace scope, stores that must store, shapes without dimensions, and many threads at once.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cosmati {
namespace {

using testing::ElementsAre, testing::HasSubstr;

// Nothing here may throw before main, and none of the programs may be captured.
std::atomic<int> captures = 0;
const Axis global{"global"};
const Axis ranged{"ranged", 0, global.extent() + 1};
const Tile computed = exp(global * 2.0 + 1);
const Axes pack{"pack"};
const Program uses_an_axis = program("uses_an_axis", [] {
  ++captures;
  input<f32>("x", {global});
});
const Program uses_a_value = program("uses_a_value", [] { require(computed > 0); });
const Program uses_a_pack = program("uses_a_pack", [] { input<f32>("x", {pack}); });
const Program throws = program("throws", []() -> void { throw std::logic_error("of the user"); });

std::string refusal(const Program& p) {
  try {
    print(p, {});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(NamespaceScope, IsHarmlessUntilUsed) {
  EXPECT_EQ(captures, 0);
  EXPECT_THAT(refusal(uses_an_axis), HasSubstr("this axis was made outside of any program"));
  EXPECT_GT(captures, 0);
  EXPECT_THAT(refusal(uses_a_value), HasSubstr("this value was made outside of any program"));
  EXPECT_THAT(refusal(uses_a_pack), HasSubstr("this pack of axes was made outside of any program"));
}

TEST(NamespaceScope, WhatTheBodyThrowsComesThroughAndTheNextCaptureIsFine) {
  EXPECT_THROW(print(throws, {}), std::logic_error);
  EXPECT_THAT(print(program("p",
                            [] {
                              Axis i{"i"};
                              auto y = output<f32>("y", {i});
                              parallel(i, [&] { y(i) = 1; });
                            }),
                    {}),
              HasSubstr("program p(out y: f32[i])"));
}

TEST(Use, AProgramCanBeUsedInsideAnother) {
  const Program inner = program("inner", [] {
    Axis i{"i"};
    auto y = output<f32>("y", {i});
    parallel(i, [&] { y(i) = 1; });
  });
  const Program outer = program("outer", [&] {
    Axis i{"i"};
    auto y = output<f32>("y", {i});
    print(inner, {});
    parallel(i, [&] { y(i) = cast<f32>(i); });
  });
  EXPECT_THAT(print(outer, {}), HasSubstr("y[i] = f32(i)"));
}

std::vector<float> run(const Program& p, std::vector<float> x, std::vector<float> y, std::vector<std::int64_t> shape) {
  Function f{p, Device::oracle()};
  f({{"x", TensorView{x.data(), f32, shape}}, {"y", TensorView{y.data(), f32, shape}}});
  return y;
}

TEST(Use, AccessesOfTwoInoutsStore) {
  const Program copy = program("copy", [] {
    Axis i{"i"};
    auto x = inout<f32>("x", {i}), y = inout<f32>("y", {i});
    parallel(i, [&] { y(i) = x(i); });
  });
  EXPECT_THAT(run(copy, {1, 2, 3}, {0, 0, 0}, {3}), ElementsAre(1, 2, 3));
}

TEST(Use, ATileVariableIsRebound) {
  const Program p = program("p", [] {
    Axis i{"i"};
    auto x = input<f32>("x", {i});
    auto y = output<f32>("y", {i});
    parallel(i, [&] {
      Tile a = x(i);
      a = a * 2;
      a = a + i.extent();
      y(i) = a;
    });
  });
  EXPECT_THAT(run(p, {1, 2, 3}, {0, 0, 0}, {3}), ElementsAre(5, 7, 9));
}

TEST(Use, TensorsWithoutDimensionsAndRegionsWithoutAxes) {
  const Program p = program("p", [] {
    auto x = input<f32>("x", {});
    auto y = output<f32>("y", {});
    parallel([&] { y() = x() + x * 2; });
  });
  EXPECT_THAT(run(p, {7}, {0}, {}), ElementsAre(21));
}

TEST(Use, ReplacementsChainAndShift) {
  const Program p = program("p", [] {
    Axis i{"i"}, j{"j"};
    auto x = input<f32>("x", {i, j});
    auto y = output<f32>("y", {i, j});
    parallel(i, j, [&] { y(i, j) = x.at(i, i - 1).at(j, j - 1).otherwise(10) + (x * 1).at(i, 0, j, 0); });
  });
  EXPECT_ANY_THROW(run(p, {1, 2, 3, 4}, {0, 0, 0, 0}, {2, 2}));  // the first replacement may leave
  const Program q = program("q", [] {
    Axis i{"i"}, j{"j"};
    auto x = input<f32>("x", {i, j});
    auto y = output<f32>("y", {i, j});
    parallel(i, j, [&] { y(i, j) = x.at(i, i - 1, j, j - 1).otherwise(10); });
  });
  EXPECT_THAT(run(q, {1, 2, 3, 4}, {0, 0, 0, 0}, {2, 2}), ElementsAre(10, 10, 10, 1));
}

// Each with a program of its own but the same name, and one program shared by all.
TEST(Use, ThreadsCaptureAndRunProgramsOfOneName) {
  const Program shared = program("same", [] {
    Axis i{"i"};
    auto x = input("x", any_float, {i});
    auto y = output("y", like(x), {i});
    parallel(i, [&] { y(i) = x + 100; });
  });
  constexpr int threads = 16;
  std::vector<std::thread> team;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      try {
        for (int round = 0; round < 10; ++round) {
          const Program own = program("same", [t] {
            Axis i{"i"};
            auto x = input("x", any_float, {i});
            auto y = output("y", like(x), {i});
            parallel(i, [&] { y(i) = x * t; });
          });
          const float f = static_cast<float>(t);
          wrong += run(own, {1, 2}, {0, 0}, {2}) != std::vector<float>{f, 2 * f};
          wrong += run(shared, {f, 2}, {0, 0}, {2}) != std::vector<float>{f + 100, 102};
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
        ++wrong;
      }
    });
  for (std::thread& member : team) member.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cosmati
