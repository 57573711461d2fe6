// Arrays as embedders have them: transposed, strided, padded, expanded and unaligned views; outputs that alias or overlap.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cosmati/runtime.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace cosmati {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<Device> present_devices() {
  std::vector<Device> all;
  for (const DeviceInfo& info : devices())
    if (info.present) all.push_back(Device::named(info.name));
  return all;
}

std::vector<float> noise(std::size_t n, std::uint32_t seed = 1) {
  std::vector<float> v(n);
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) / 16777216.f - 0.5f;
  }
  return v;
}

float& at(const TensorView& v, std::int64_t i, std::int64_t j) {
  const std::int64_t s0 = v.strides.empty() ? v.shape[1] : v.strides[0], s1 = v.strides.empty() ? 1 : v.strides[1];
  return static_cast<float*>(v.data)[i * s0 + j * s1];
}

// Under one plan, softmax of a view into a view equals that of dense copies, bit for bit.
void expect_as_dense(const TensorView& x, const TensorView& y) {
  const std::int64_t rows = x.shape[0], cols = x.shape[1];
  std::vector<float> dense(static_cast<std::size_t>(rows * cols)), wanted(dense.size());
  TensorView d(dense.data(), DType::f32_, {rows, cols}), w(wanted.data(), DType::f32_, {rows, cols});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) at(d, i, j) = at(x, i, j);
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    Options one_plan;
    one_plan.knobs = {{"lane_axes", "col"}, {"tile.col", "2"}, {"tile.row", "1"}, {"split.col", "1"}, {"home.e", "worker"}};
    Function f(load("softmax"), device, one_plan);
    f({{"x", d}, {"y", w}});
    f({{"x", x}, {"y", y}});
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) ASSERT_EQ(at(y, i, j), at(w, i, j)) << i << ", " << j;
  }
}

ErrorCode refused(const Device& device, const std::string& program, const Arguments& arguments, std::string* text = nullptr) {
  try {
    Function(load(program), device)(arguments);
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.code;
  }
  ADD_FAILURE() << "accepted on " << device.name();
  return ErrorCode::syntax;
}

TEST(Views, TransposedSlicedPaddedAndReversedInputs) {
  std::vector<float> x = noise(64 * 64), y(32 * 32);
  expect_as_dense({x.data(), DType::f32_, {32, 32}, {1, 32}}, {y.data(), DType::f32_, {32, 32}});
  expect_as_dense({x.data(), DType::f32_, {32, 16}, {64, 2}}, {y.data(), DType::f32_, {32, 16}});
  expect_as_dense({x.data(), DType::f32_, {2, 4}, {32, 1}}, {y.data(), DType::f32_, {2, 4}});
  expect_as_dense({x.data() + 31, DType::f32_, {5, 32}, {64, -1}}, {y.data(), DType::f32_, {5, 32}});
  expect_as_dense({x.data() + 64 * 4, DType::f32_, {5, 32}, {-64, 1}}, {y.data(), DType::f32_, {5, 32}});
}

TEST(Views, BatchesWithPaddedStrides) {
  // x[2, 3, 40] in rows of 48 and batches of 200 elements, into y in rows of 41; the rest is full of NaN.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x(2 * 200, nan), y(6 * 41 + 100, 7.f), w = noise(40, 2), dense(240), wanted(240);
  const std::vector<float> values = noise(240);
  for (std::size_t i = 0; i < 240; ++i) {
    x[i / 120 * 200 + i / 40 % 3 * 48 + i % 40] = values[i];
    dense[i] = values[i];
  }
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    const Function f(load("rms_norm"), device);
    const TensorView weights(w.data(), DType::f32_, {40});
    f({{"x", TensorView(dense.data(), DType::f32_, {2, 3, 40})},
       {"w", weights},
       {"y", TensorView(wanted.data(), DType::f32_, {2, 3, 40})}});
    f({{"x", TensorView(x.data(), DType::f32_, {2, 3, 40}, {200, 48, 1})},
       {"w", weights},
       {"y", TensorView(y.data(), DType::f32_, {2, 3, 40}, {3 * 41, 41, 1})}});
    for (std::size_t i = 0; i < 240; ++i) ASSERT_EQ(y[i / 40 * 41 + i % 40], wanted[i]) << i;
    for (std::size_t row = 0; row < 6; ++row) EXPECT_EQ(y[row * 41 + 40], 7.f);
  }
}

TEST(Views, WhatLiesBehindARowIsNotRead) {
  for (std::int64_t cols : {38, 39, 70}) {
    const std::vector<float> values = noise(static_cast<std::size_t>(4 * cols));
    for (const Device& device : present_devices()) {
      SCOPED_TRACE(device.name());
      std::vector<std::vector<float>> results;
      for (float poison : {std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
        std::vector<float> x(4 * 96, poison), y(x.size(), poison);
        for (std::int64_t i = 0; i < 4 * cols; ++i) x[i / cols * 96 + i % cols] = values[i];
        Function(load("softmax"), device)({{"x", TensorView(x.data(), DType::f32_, {4, cols}, {96, 1})},
                                           {"y", TensorView(y.data(), DType::f32_, {4, cols}, {96, 1})}});
        std::vector<float> got;
        for (std::size_t i = 0; i < y.size(); ++i) {
          const bool inside = static_cast<std::int64_t>(i % 96) < cols;
          if (inside) got.push_back(y[i]);
          ASSERT_TRUE(inside || std::memcmp(&y[i], &poison, 4) == 0) << "written behind a row";
        }
        results.push_back(std::move(got));
      }
      EXPECT_EQ(results[0], results[1]) << cols;
      for (float v : results[0]) EXPECT_TRUE(std::isfinite(v));
    }
  }
}

TEST(Views, ExpandedInputsAreReadAsIfMaterialised) {
  std::vector<float> x = noise(128), y(512);
  expect_as_dense({x.data(), DType::f32_, {2, 128}, {1, 0}}, {y.data(), DType::f32_, {2, 128}});
  expect_as_dense({x.data(), DType::f32_, {3, 5}, {0, 1}}, {y.data(), DType::f32_, {3, 5}});
  expect_as_dense({x.data(), DType::f32_, {3, 5}, {1, 0}}, {y.data(), DType::f32_, {3, 5}});
  expect_as_dense({x.data(), DType::f32_, {4, 4}, {0, 0}}, {y.data(), DType::f32_, {4, 4}});
}

TEST(Views, ExpandedWeightsAreReadAsIfMaterialised) {
  std::vector<float> x = noise(6 * 33), one{1.5f}, two{-0.25f}, gamma(33, one[0]), beta(33, two[0]), wanted(x.size()),
                     y(x.size());
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    const Function f(load("layer_norm"), device);
    const TensorView in(x.data(), DType::f32_, {6, 33});
    f({{"x", in},
       {"gamma", TensorView(gamma.data(), DType::f32_, {33})},
       {"beta", TensorView(beta.data(), DType::f32_, {33})},
       {"y", TensorView(wanted.data(), DType::f32_, {6, 33})}});
    f({{"x", in},
       {"gamma", TensorView(one.data(), DType::f32_, {33}, {0})},
       {"beta", TensorView(two.data(), DType::f32_, {33}, {0})},
       {"y", TensorView(y.data(), DType::f32_, {6, 33})}});
    EXPECT_EQ(y, wanted);
  }
}

TEST(Views, StridedOutputsLeaveTheRestAlone) {
  std::vector<float> x = noise(6), big(24, 7.f);
  expect_as_dense({x.data(), DType::f32_, {2, 3}}, {big.data(), DType::f32_, {2, 3}, {12, 2}});
  int sevens = 0;
  for (float v : big) sevens += v == 7.f;
  EXPECT_EQ(sevens, 18);
  std::vector<float> reversed(6);
  expect_as_dense({x.data(), DType::f32_, {2, 3}}, {reversed.data() + 5, DType::f32_, {2, 3}, {-3, -1}});
}

TEST(Views, UnalignedViewsOfAnyOffset) {
  std::vector<float> x = noise(4 * 37 + 16), y(4 * 37 + 16);
  for (std::ptrdiff_t k = 0; k < 8; ++k)
    expect_as_dense({x.data() + k, DType::f32_, {4, 37}}, {y.data() + (7 - k), DType::f32_, {4, 37}});
  // Not even on an element's boundary.
  std::vector<char> bytes(5 * 40 * 4 + 1), out(5 * 40 * 4 + 3);
  const std::vector<float> values = noise(200);
  std::memcpy(bytes.data() + 1, values.data(), 800);
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    std::vector<float> wanted(200), got(200);
    Function f(load("softmax"), device);
    f({{"x", TensorView(const_cast<float*>(values.data()), DType::f32_, {5, 40})},
       {"y", TensorView(wanted.data(), DType::f32_, {5, 40})}});
    f({{"x", TensorView(bytes.data() + 1, DType::f32_, {5, 40})}, {"y", TensorView(out.data() + 3, DType::f32_, {5, 40})}});
    std::memcpy(got.data(), out.data() + 3, 800);
    EXPECT_EQ(got, wanted);
  }
}

TEST(Views, OutputsThatOverlapThemselvesAreRefused) {
  std::vector<float> x = noise(64), y(64);
  for (const Device& device : present_devices()) {
    const TensorView in(x.data(), DType::f32_, {4, 4});
    std::string text;
    EXPECT_EQ(refused(device, "softmax", {{"x", in}, {"y", TensorView(y.data(), DType::f32_, {4, 4}, {0, 1})}}, &text),
              ErrorCode::overlap);
    EXPECT_THAT(text, HasSubstr("y"));
    EXPECT_EQ(refused(device, "softmax", {{"x", in}, {"y", TensorView(y.data(), DType::f32_, {4, 4}, {2, 1})}}),
              ErrorCode::overlap);
    EXPECT_THAT(y, Each(0.f)) << "something was written";
  }
}

TEST(Views, AnExactAliasGivesTheSameBitsAndAPartialOneIsRefused) {
  for (std::int64_t cols : {7, 64, 5000}) {
    const std::size_t n = static_cast<std::size_t>(4 * cols);
    const std::vector<float> values = noise(n);
    for (const Device& device : present_devices()) {
      SCOPED_TRACE(device.name());
      std::vector<float> x = values, y(n);
      x.resize(n + static_cast<std::size_t>(cols));
      const TensorView in(x.data(), DType::f32_, {4, cols});
      Function f(load("softmax"), device);
      f({{"x", in}, {"y", TensorView(y.data(), DType::f32_, {4, cols})}});
      std::string text;
      EXPECT_EQ(refused(device, "softmax", {{"x", in}, {"y", TensorView(x.data() + cols, DType::f32_, {4, cols})}}, &text),
                ErrorCode::overlap);
      EXPECT_THAT(text, HasSubstr("x"));
      EXPECT_TRUE(std::equal(values.begin(), values.end(), x.begin())) << "something was written";
      // An alias is used when it is proven, else refused by name; never something else.
      try {
        f({{"x", in}, {"y", in}});
        EXPECT_TRUE(std::equal(y.begin(), y.end(), x.begin()));
      } catch (const Error& e) {
        EXPECT_EQ(e.code, ErrorCode::overlap);
        EXPECT_TRUE(std::equal(values.begin(), values.end(), x.begin()));
      }
    }
  }
}

// Runs `program` into separate memory, then with `out` in the memory of `in`: the same bits, or a refusal that wrote nothing.
// Returns whether it was accepted.
bool in_place(const Device& device, const std::string& program, std::map<std::string, TensorView> arguments,
              const std::string& in, const std::string& out) {
  const Function f(load(program), device);
  auto run = [&] { f(Arguments(arguments.begin(), arguments.end())); };
  const TensorView source = arguments.at(in);
  float* data = static_cast<float*>(source.data);
  const std::vector<float> before(data, data + source.elements());
  run();
  const float* separate = static_cast<const float*>(arguments.at(out).data);
  const std::vector<float> wanted(separate, separate + source.elements());
  arguments.at(out) = source;
  bool accepted = true;
  try {
    run();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::overlap) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(in));
    accepted = false;
  }
  const std::vector<float> after(data, data + source.elements());
  EXPECT_EQ(after, accepted ? wanted : before) << program << ": " << out << " over " << in;
  return accepted;
}

TEST(Views, NormsInPlaceGiveTheSameBits) {
  // Also rows wider than any cache.
  for (std::int64_t cols : {5, 70, 300000}) {
    for (const Device& device : present_devices()) {
      if (device.name() != "cpu" && cols > 1000) continue;
      SCOPED_TRACE(fmt::format("{} columns on {}", cols, device.name()));
      const auto n = static_cast<std::size_t>(2 * cols);
      const std::vector<float> values = noise(n), more = noise(n, 3);
      std::vector<float> x, r, w = noise(static_cast<std::size_t>(cols), 2), y(n), z(n);
      auto view = [&](std::vector<float>& memory) { return TensorView(memory.data(), DType::f32_, {2, cols}); };
      auto fresh = [&] { x = values, r = more; };
      const TensorView weights(w.data(), DType::f32_, {cols});
      fresh();
      EXPECT_TRUE(in_place(device, "softmax", {{"x", view(x)}, {"y", view(y)}}, "x", "y"));
      fresh();
      EXPECT_TRUE(in_place(device, "rms_norm", {{"x", view(x)}, {"w", weights}, {"y", view(y)}}, "x", "y"));
      for (const char* in : {"x", "res"})
        for (const char* out : {"h", "y"}) {
          fresh();
          const bool accepted =
              in_place(device, "add_rms_norm", {{"x", view(x)}, {"res", view(r)}, {"w", weights}, {"h", view(z)}, {"y", view(y)}},
                       in, out);
          // y is stored last; what h overwrites would be read again for y.
          EXPECT_EQ(accepted, std::string_view(out) == "y") << out << " over " << in;
        }
    }
  }
}

TEST(Views, AnElementwiseProgramWorksInPlace) {
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    std::vector<float> x = noise(6 * 9), b = noise(9, 2), y(54);
    Function f(load("bias_gelu"), device);
    const TensorView in(x.data(), DType::f32_, {6, 9}), bias(b.data(), DType::f32_, {9});
    f({{"x", in}, {"b", bias}, {"y", TensorView(y.data(), DType::f32_, {6, 9})}});
    f({{"x", in}, {"b", bias}, {"y", in}});
    EXPECT_EQ(x, y);
  }
}

TEST(Views, AStreamWorksInPlaceWithWhatWasReducedBefore) {
  const Program program = parse(R"(program shares(in x: f32[b, t], out y: f32[b, t]) {
    parallel b {
      s = sum(x, t)
      stream t carry h = 0.0 {
        h2 = h + x / s
        y[b, t] = h2
        next h = h2
      }
    }
  })")[0];
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    std::vector<float> x(18 * 41), y(x.size());
    for (std::size_t e = 0; e < x.size(); ++e) x[e] = static_cast<float>(1 + e * 2654435761u % 7);
    Function f(program, device);
    const TensorView in(x.data(), DType::f32_, {18, 41});
    f({{"x", in}, {"y", TensorView(y.data(), DType::f32_, {18, 41})}});
    f({{"x", in}, {"y", in}});
    EXPECT_EQ(x, y);
  }
}

TEST(Views, AProductMayNotOverwriteItsOperands) {
  for (const Device& device : present_devices()) {
    std::vector<float> a = noise(16), b = noise(16, 2);
    const TensorView va(a.data(), DType::f32_, {4, 4}), vb(b.data(), DType::f32_, {4, 4});
    EXPECT_EQ(refused(device, "matmul", {{"a", va}, {"b", vb}, {"c", va}}), ErrorCode::overlap);
    EXPECT_EQ(refused(device, "matmul", {{"a", va}, {"b", vb}, {"c", vb}}), ErrorCode::overlap);
  }
}

TEST(Views, ProductsOfOddSizesWithPitches) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size& s : {Size{1, 105, 107}, Size{2, 4, 3}, Size{1, 1, 1}, Size{17, 33, 65}, Size{3, 5, 1}}) {
    const std::int64_t lda = s.k + 5, ldb = s.n + 3, ldc = s.n + 1;
    std::vector<float> a = noise(static_cast<std::size_t>(s.m * lda)), b = noise(static_cast<std::size_t>(s.k * ldb), 2);
    for (const Device& device : present_devices()) {
      SCOPED_TRACE(fmt::format("{} x {} x {} on {}", s.m, s.n, s.k, device.name()));
      std::vector<float> c(static_cast<std::size_t>(s.m * ldc), 7.f);
      Function(load("matmul"), device)({{"a", TensorView(a.data(), DType::f32_, {s.m, s.k}, {lda, 1})},
                                        {"b", TensorView(b.data(), DType::f32_, {s.k, s.n}, {ldb, 1})},
                                        {"c", TensorView(c.data(), DType::f32_, {s.m, s.n}, {ldc, 1})}});
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          double wanted = 0;
          for (std::int64_t k = 0; k < s.k; ++k) wanted += static_cast<double>(a[i * lda + k]) * b[k * ldb + j];
          ASSERT_NEAR(c[i * ldc + j], wanted, 1e-5);
        }
        ASSERT_EQ(c[i * ldc + s.n], 7.f);
      }
    }
  }
}

TEST(Views, MatricesWithPitches) {
  std::vector<float> a = noise(8 * 20), b = noise(9 * 30, 2), c(8 * 40, 7.f);
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    Function f(load("matmul"), device);
    f({{"a", TensorView(a.data(), DType::f32_, {8, 9}, {20, 2})},
       {"b", TensorView(b.data(), DType::f32_, {9, 5}, {30, 3})},
       {"c", TensorView(c.data(), DType::f32_, {8, 5}, {40, 4})}});
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 5; ++j) {
        double wanted = 0;
        for (int k = 0; k < 9; ++k) wanted += static_cast<double>(a[i * 20 + k * 2]) * b[k * 30 + j * 3];
        EXPECT_NEAR(c[i * 40 + j * 4], wanted, 1e-5);
      }
    EXPECT_EQ(c[1], 7.f);
  }
}

}  // namespace
}  // namespace cosmati
