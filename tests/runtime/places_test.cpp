// What a launch refuses, and the line and column of the parameter, axis or access in the program's text that it is refused for.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

namespace cosmati {
namespace {

using testing::HasSubstr;

struct Place {
  int line, column;
};

const Program& scaled() {
  static const Program p = parse(R"(program scaled<T: float>(
    in x: T[row, col],
    in z: T[row],
    in label: i32[row] in 0 .. extent(col) distinct,
    in q: f32[(g, r)],
    in h: f32[g],
    factor: i32,
    out y: T[row],
    out w: f32[(g, r)],
    inout s: f32[rows..., 2]) {
  axis row = extent(col) - 1
  require factor > 1
  parallel {
    y[row] = x[row, label[row]] * z[extent(row) - 1 - row] * f32(factor)
    w[(g, r)] = q[(g, r)] + h[g]
    s[rows..., 0] = s[rows..., 0] + 1
  }
}
)",
                                 "scaled.tile")
                               .front();
  return p;
}

class Places : public testing::Test {
 protected:
  std::vector<float> x_ = std::vector<float>(64, 1), z_ = x_, q_ = x_, h_ = x_, y_ = x_, w_ = x_, s_ = x_;
  std::vector<std::int32_t> label_{0, 1, 2};

  static TensorView of(std::vector<float>& memory, std::vector<std::int64_t> shape) {
    return {memory.data(), f32, std::move(shape)};
  }
  std::map<std::string, Argument> good() {
    return {{"x", of(x_, {3, 4})}, {"z", of(z_, {3})},     {"label", TensorView(label_.data(), i32, {3})},
            {"q", of(q_, {6})},    {"h", of(h_, {2})},     {"factor", std::int64_t{2}},
            {"y", of(y_, {3})},    {"w", of(w_, {2 * 3})}, {"s", of(s_, {5, 2})}};
  }
  static Arguments list(const std::map<std::string, Argument>& arguments) { return {arguments.begin(), arguments.end()}; }
  static void refused(const Program& p, const Arguments& arguments, ErrorCode code, Place place, const std::string& text) {
    SCOPED_TRACE(text);
    try {
      Function(p, Device::sim())(arguments);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(name(e.code), name(code)) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(text));
      EXPECT_EQ(e.where.file, "scaled.tile");
      EXPECT_EQ(e.where.line, place.line) << e.what();
      EXPECT_EQ(e.where.column, place.column) << e.what();
    }
  }
  void refused(const std::string& name, const Argument& argument, ErrorCode code, Place place, const std::string& text) {
    auto arguments = good();
    arguments[name] = argument;
    refused(scaled(), list(arguments), code, place, text);
  }
};

TEST_F(Places, TheArgumentsOfTheOtherTestsAreRight) { Function(scaled(), Device::sim())(list(good())); }

TEST_F(Places, RanksAndTypes) {
  const ErrorCode wrong = ErrorCode::bad_argument;
  refused("z", of(z_, {3, 1}), wrong, {3, 8}, "z has 2 dimensions [3, 1], but scaled declares [row]. Hint: pass 1 dimension");
  refused("z", TensorView(z_.data(), f16, {3}), wrong, {3, 8}, "x is f32 but z is f16, and both are T");
  refused("q", TensorView(q_.data(), f64, {6}), wrong, {5, 8}, "q is f64, but scaled takes f32");
  refused("s", of(s_, {}), wrong, {10, 11}, "s has 0 dimensions []");
  refused("z", 3.0, wrong, {3, 8}, "z is a tensor parameter of scaled, but a scalar is given");
  refused("factor", of(z_, {}), wrong, {7, 5}, "factor is a scalar parameter of scaled, but a tensor is given");
  refused("factor", 1.5, wrong, {7, 5}, "factor is i32, but 1.5 is given. Hint: pass an integer from -2147483648 to 2147483647");
  refused("label", of(z_, {3}), wrong, {4, 8}, "label is f32, but scaled takes i32");
  auto integers = good();
  integers["x"] = TensorView(x_.data(), i32, {3, 4});
  integers["z"] = TensorView(z_.data(), i32, {3});
  integers["y"] = TensorView(y_.data(), i32, {3});
  refused(scaled(), list(integers), ErrorCode::type_mismatch, {2, 8}, "x is i32, but scaled takes float types for T");
}

TEST_F(Places, Extents) {
  const ErrorCode wrong = ErrorCode::extent_mismatch;
  refused("z", of(z_, {5}), wrong, {3, 8},
          "axis row is 3 in dimension 0 of x but 5 in dimension 0 of z. Hint: pass z with extent 3");
  refused("x", of(x_, {3, 5}), wrong, {2, 13}, "axis row is 3 in dimension 0 of x but 4 by its declaration");
  refused(
      "q", of(q_, {7}), wrong, {5, 8},
      "dimension 0 of q: extent 7 is not 6 = g * r. g is 2 in dimension 0 of h, r is 3 in dimension 0 of w. Hint: pass q with");
  refused("w", of(w_, {7}), wrong, {9, 9},
          "dimension 0 of w: extent 7 is not a multiple of 2 = g. g is 2 in dimension 0 of h. Hint: pass a multiple of 2");
  refused("s", of(s_, {5, 3}), wrong, {10, 11}, "dimension 1 of s: extent 3 is not 2");
  auto empty = good();
  empty["h"] = of(h_, {0});
  refused(scaled(), list(empty), wrong, {9, 9},
          "dimension 0 of w: extent 6 is not a multiple of 0 = g. g is 0 in dimension 0 of h. Hint: pass an empty array");
}

TEST_F(Places, Contracts) {
  label_[1] = 4;
  refused("x", of(x_, {3, 4}), ErrorCode::contract_broken, {4, 8}, "label[1] = 4 is outside 0 .. 4 (extent of col in x)");
  label_[1] = 2;
  refused("x", of(x_, {3, 4}), ErrorCode::contract_broken, {4, 8}, "label[2] = 2 is also label[1], but label is distinct");
  label_[1] = 1;
  refused("factor", std::int64_t{1}, ErrorCode::contract_broken, {12, 18},
          "require factor > 1 does not hold: factor is 1. Hint: pass arguments with factor > 1");
}

TEST_F(Places, Memory) {
  const ErrorCode wrong = ErrorCode::overlap;
  refused("y", of(z_, {3}), wrong, {14, 35}, "y is exactly z, and scaled may not be computed in place");
  refused("y", TensorView(z_.data() + 1, f32, {3}), wrong, {8, 9}, "shares memory with z, but is not exactly the same view");
  refused("y", TensorView(y_.data(), f32, {3}, {0}), wrong, {8, 9}, "its strides make different elements share memory");
  refused("s", of(w_, {3, 2}), wrong, {9, 9}, "w and s are both written and share memory");
  refused("y", TensorView(nullptr, f32, {3}), ErrorCode::bad_argument, {8, 9},
          "y has no memory. Hint: pass the address of its elements");
  TensorView constant = of(y_, {3});
  constant.read_only = true;
  refused("y", constant, ErrorCode::bad_argument, {8, 9},
          "y is written, but its memory is read-only. Hint: pass memory that may be written");
  refused("x", TensorView(x_.data(), f32, {3, 4}, {std::int64_t{1} << 61, 1}), ErrorCode::bad_argument, {2, 8},
          "stride 2305843009213693952 of x in dimension 0 reaches beyond any memory");
}

TEST_F(Places, Names) {
  const ErrorCode wrong = ErrorCode::bad_argument;
  auto less = good();
  less.erase("z");
  refused(scaled(), list(less), wrong, {3, 8}, "scaled needs an argument `z`. Hint: pass z: T[row]");
  Arguments more = list(good());
  more.emplace_back("z", of(z_, {3}));
  refused(scaled(), more, wrong, {3, 8}, "z is given twice");
  refused("v", of(z_, {3}), wrong, {1, 9}, "scaled has no parameter `v`. Hint: its parameters are x, z, label");
}

TEST_F(Places, OfTheSourceInCpp) {
  int line = 0;
  const Program p = program("captured", [&] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col});
    line = __LINE__ + 1;
    auto z = input<f32>("z", {row});
    auto y = output<f32>("y", {row});
    parallel(row, [&] { y(row) = sum(x, col) * z; });
  });
  const Function f(p, Device::sim());
  for (const TensorView& z : {of(z_, {4}), of(z_, {3, 1}), TensorView(z_.data(), f64, {3})}) {
    try {
      f({{"x", of(x_, {3, 4})}, {"z", z}, {"y", of(y_, {3})}});
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(std::filesystem::path(e.where.file).filename(), "places_test.cpp") << e.what();
      EXPECT_EQ(e.where.line, line) << e.what();
      EXPECT_GT(e.where.column, 0) << e.what();
    }
  }
}

}  // namespace
}  // namespace cosmati
