// Arrays as embedders have them: transposed, strided, padded, expanded and unaligned views; outputs that alias or overlap.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cosmati/runtime.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

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

// Softmax of a view into a view equals that of dense copies, bit for bit.
void expect_as_dense(const TensorView& x, const TensorView& y) {
  const std::int64_t rows = x.shape[0], cols = x.shape[1];
  std::vector<float> dense(static_cast<std::size_t>(rows * cols)), wanted(dense.size());
  TensorView d(dense.data(), DType::f32_, {rows, cols}), w(wanted.data(), DType::f32_, {rows, cols});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) at(d, i, j) = at(x, i, j);
  for (const Device& device : present_devices()) {
    SCOPED_TRACE(device.name());
    Function f(load("softmax"), device);
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

TEST(Views, ExpandedInputsAreReadAsIfMaterialised) {
  std::vector<float> x = noise(128), y(512);
  expect_as_dense({x.data(), DType::f32_, {2, 128}, {1, 0}}, {y.data(), DType::f32_, {2, 128}});
  expect_as_dense({x.data(), DType::f32_, {3, 5}, {0, 1}}, {y.data(), DType::f32_, {3, 5}});
  expect_as_dense({x.data(), DType::f32_, {4, 4}, {0, 0}}, {y.data(), DType::f32_, {4, 4}});
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

TEST(Views, AProductMayNotOverwriteItsOperands) {
  for (const Device& device : present_devices()) {
    std::vector<float> a = noise(16), b = noise(16, 2);
    const TensorView va(a.data(), DType::f32_, {4, 4}), vb(b.data(), DType::f32_, {4, 4});
    EXPECT_EQ(refused(device, "matmul", {{"a", va}, {"b", vb}, {"c", va}}), ErrorCode::overlap);
    EXPECT_EQ(refused(device, "matmul", {{"a", va}, {"b", vb}, {"c", vb}}), ErrorCode::overlap);
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

TEST(Compile, LongRowsAndChainedDivisionsCompileQuickly) {
  const Program chained = parse(
                              "program f(in x: f32[row, col], in s: f32[row], out z: f32[row]) {\n"
                              "  parallel row {\n    y = x / s\n    w = y / s\n    z[row] = sum(w, col)\n  }\n}\n")
                              .front();
  for (const DeviceInfo& info : devices()) {
    if (!info.present || info.name == "oracle") continue;
    SCOPED_TRACE(info.name);
    std::size_t length = 0;
    for (std::int64_t cols : {100, 65536, 262144}) {
      std::vector<float> x(static_cast<std::size_t>(cols), 1.f);
      std::vector<float> s{2.f}, z(1);
      const Arguments arguments = {{"x", TensorView(x.data(), DType::f32_, {1, cols})},
                                   {"s", TensorView(s.data(), DType::f32_, {1})},
                                   {"z", TensorView(z.data(), DType::f32_, {1})}};
      const auto start = std::chrono::steady_clock::now();
      Function f(chained, Device::named(info.name));
      const std::size_t now = f.emit(arguments, "kernel").size();
      f(arguments);
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
      EXPECT_EQ(z[0], static_cast<float>(cols) / 4);
      if (length != 0) {
        EXPECT_EQ(now, length) << "the kernel grows with its extents";
      }
      length = now;
    }
  }
}

}  // namespace
}  // namespace cosmati
