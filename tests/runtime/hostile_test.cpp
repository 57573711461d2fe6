// Launches with arguments nobody should pass: each is computed right or refused by an Error, before anything is written.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/runtime.h>

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

namespace cosmati {
namespace {

using testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max(), tiny = std::numeric_limits<std::int64_t>::min();

Program program(const std::string& text) { return parse(text).front(); }
const Program& copy() {
  static const Program p = program("program f(in x: f32[i, j], out y: f32[i, j]) {\n parallel i, j { y[i, j] = x * 2 }\n}");
  return p;
}

std::vector<Device> all_devices() {
  std::vector<Device> all;
  for (const DeviceInfo& d : devices())
    if (d.present) all.push_back(Device::named(d.name));
  return all;
}

// The message of the Error with which every device refuses; `written` must stay as it is.
std::string refusal(const Program& p, const Arguments& arguments, ErrorCode code, const std::vector<float>* written = nullptr) {
  std::string message;
  for (const Device& device : all_devices()) {
    const std::vector<float> before = written ? *written : std::vector<float>{};
    try {
      Function(p, device)(arguments);
      return "accepted by " + device.name();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, code) << e.what();
      message = e.what();
    }
    EXPECT_EQ(written ? *written : before, before) << device.name();
  }
  return message;
}

class Memory : public testing::Test {
 protected:
  std::vector<float> x_ = std::vector<float>(64), y_ = std::vector<float>(64, -1);
  void SetUp() override { std::iota(x_.begin(), x_.end(), 0.0f); }
  std::string refuse(const TensorView& x, const TensorView& y, ErrorCode code) {
    return refusal(copy(), {{"x", x}, {"y", y}}, code, &y_);
  }
};

TEST_F(Memory, InputsMayOverlapThemselvesAndRunBackwards) {
  for (const Device& device : all_devices()) {
    const Function f(copy(), device);
    const TensorView y(y_.data(), f32, {3, 4});
    f({{"x", TensorView(x_.data(), f32, {3, 4}, {0, 0})}, {"y", y}});
    EXPECT_EQ(y_[11], 0);
    f({{"x", TensorView(x_.data() + 1, f32, {3, 4}, {1, 1})}, {"y", y}});
    EXPECT_EQ(y_[11], 2 * 6);
    f({{"x", TensorView(x_.data() + 63, f32, {3, 4}, {-4, -1})}, {"y", y}});
    EXPECT_EQ(y_[0], 2 * 63);
    EXPECT_EQ(y_[11], 2 * (63 - 11));
    f({{"x", TensorView(x_.data(), f32, {3, 4})}, {"y", TensorView(y_.data() + 11, f32, {3, 4}, {-4, -1})}});
    EXPECT_EQ(y_[0], 2 * 11);
    EXPECT_EQ(y_[11], 0);
  }
}

TEST_F(Memory, OutputsThatOverlapThemselvesAreRefused) {
  const TensorView x(x_.data(), f32, {3, 4});
  EXPECT_THAT(refuse(x, TensorView(y_.data(), f32, {3, 4}, {0, 1}), ErrorCode::overlap), HasSubstr("share memory"));
  EXPECT_THAT(refuse(x, TensorView(y_.data(), f32, {3, 4}, {3, 1}), ErrorCode::overlap), HasSubstr("share memory"));
  EXPECT_THAT(refuse(x, TensorView(y_.data() + 20, f32, {3, 4}, {-1, 1}), ErrorCode::overlap), HasSubstr("share memory"));
}

TEST_F(Memory, ArgumentsThatMeetInPartAreRefused) {
  const TensorView y(y_.data(), f32, {3, 4});
  char* bytes = reinterpret_cast<char*>(y_.data());
  EXPECT_THAT(refuse(TensorView(y_.data() + 1, f32, {3, 4}), y, ErrorCode::overlap), HasSubstr("not exactly the same view"));
  EXPECT_THAT(refuse(TensorView(bytes + 2, f32, {3, 4}), y, ErrorCode::overlap), HasSubstr("not exactly the same view"));
  EXPECT_THAT(refuse(TensorView(y_.data() + 11, f32, {3, 4}, {-4, -1}), y, ErrorCode::overlap), HasSubstr("not exactly"));
}

TEST_F(Memory, StridesBeyondAnyMemoryAreRefused) {
  const TensorView y(y_.data(), f32, {3, 4}), x(x_.data(), f32, {3, 4});
  for (const std::int64_t stride : {huge, tiny, huge / 2, tiny / 2, std::int64_t{1} << 60}) {
    EXPECT_THAT(refuse(TensorView(x_.data(), f32, {3, 4}, {stride, 1}), y, ErrorCode::bad_argument),
                HasSubstr("beyond any memory"));
    EXPECT_THAT(refuse(x, TensorView(y_.data(), f32, {3, 4}, {stride, 1}), ErrorCode::bad_argument),
                HasSubstr("beyond any memory"));
  }
  EXPECT_THAT(refuse(TensorView(x_.data(), f32, {3, 4}, {1}), y, ErrorCode::bad_argument), HasSubstr("1 strides"));
}

TEST_F(Memory, ShapesThatOverflowAreRefused) {
  const TensorView y(y_.data(), f32, {3, 4});
  for (const Shape& shape :
       {Shape{-1, 4}, Shape{tiny, 1}, Shape{huge, 2}, Shape{huge, 0}, Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}})
    EXPECT_THAT(refuse(TensorView(x_.data(), f32, shape, {0, 0}), y, ErrorCode::bad_argument), HasSubstr("impossible shape"));
}

TEST(Elements, AreCountedInAnyShape) {
  const auto elements = [](Shape shape) { return TensorView(nullptr, f32, std::move(shape)).elements(); };
  constexpr std::int64_t large = std::int64_t{1} << 32;
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({3, 4}), 12);
  EXPECT_EQ(elements({large, large}), huge);
  EXPECT_EQ(elements({large, large, 2}), huge);
  EXPECT_EQ(elements({large, large, 0}), 0);
  EXPECT_EQ(elements({0, large, large}), 0);
}

TEST_F(Memory, EmptyArraysNeedNoMemoryAndAnyStrides) {
  for (const Device& device : all_devices()) {
    const Function f(copy(), device);
    f({{"x", TensorView(nullptr, f32, {0, 4})}, {"y", TensorView(nullptr, f32, {0, 4})}});
    f({{"x", TensorView(nullptr, f32, {4, 0}, {huge, tiny})}, {"y", TensorView(y_.data(), f32, {4, 0}, {tiny, huge})}});
  }
  EXPECT_THAT(refuse(TensorView(nullptr, f32, {1, 4}), TensorView(y_.data(), f32, {1, 4}), ErrorCode::bad_argument),
              HasSubstr("no memory"));
  EXPECT_EQ(y_, std::vector<float>(64, -1));
}

TEST_F(Memory, OutputsInReadOnlyMemoryAreRefused) {
  TensorView y(y_.data(), f32, {3, 4});
  y.read_only = true;
  EXPECT_THAT(refuse(TensorView(x_.data(), f32, {3, 4}), y, ErrorCode::bad_argument), HasSubstr("read-only"));
}

TEST(Extents, BeyondThirtyTwoBitsAreComputedIn64Bits) {
  const Program p = program(
      "program f(in x: f32[i], out y: f32[j]) {\n axis j = 4\n require extent(i) >= 4\n parallel j { y[j] = x[extent(i) - 1 - j] "
      "}\n}");
  float x = 5, y[4] = {};
  for (const Device& device : all_devices()) {
    std::fill(y, y + 4, 0.0f);
    Function(p, device)({{"x", TensorView(&x, f32, {std::int64_t{3} << 31}, {0})}, {"y", TensorView(y, f32, {4})}});
    EXPECT_EQ(y[3], 5) << device.name();
  }
}

TEST(Extents, BeyondThirtyTwoBitsAreRefusedWhereTheyBecomeNarrower) {
  float x = 5;
  std::vector<float> y(4);
  for (const char* index : {"i32(extent(i)) - i32(j) - 1", "extent(i) - 1 - i32(j)", "i32(extent(i) - 1 - j)"}) {
    const Program p =
        program("program f(in x: f32[i], out y: f32[j]) {\n axis j = 4\n require extent(i) >= 4\n parallel j { y[j] = x[" +
                std::string(index) + "] }\n}");
    const TensorView out(y.data(), f32, {4});
    for (const std::int64_t extent : {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 4, std::int64_t{1} << 40})
      EXPECT_THAT(refusal(p, {{"x", TensorView(&x, f32, {extent}, {0})}, {"y", out}}, ErrorCode::bad_argument, &y),
                  HasSubstr("extents up to 2147483647"))
          << index;
    for (const Device& device : all_devices()) {
      Function(p, device)({{"x", TensorView(&x, f32, {(std::int64_t{1} << 31) - 1}, {0})}, {"y", out}});
      EXPECT_EQ(y[3], 5) << index << " on " << device.name();
      std::fill(y.begin(), y.end(), 0.0f);
    }
  }
}

TEST(Extents, ArithmeticOnThemThatOverflowsIsRefused) {
  float x = 5;
  std::vector<float> y(4);
  const Program product = program(
      "program f(in x: f32[a], in z: f32[b], out y: f32[j], k: i64 = 0) {\n axis n = extent(a) * extent(b)\n axis j = 4\n"
      " parallel j { y[j] = f32(extent(n)) }\n}");
  const std::int64_t large = std::int64_t{1} << 40;
  const TensorView wide(&x, f32, {large}, {0}), out(y.data(), f32, {4});
  EXPECT_THAT(refusal(product, {{"x", wide}, {"z", wide}, {"y", out}}, ErrorCode::bad_argument, &y), HasSubstr("beyond 64 bits"));
  const Program range = program(
      "program f(in x: f32[i], out y: f32[i], lo: i64, hi: i64) {\n axis t in lo .. hi\n parallel i { y[i] = x * f32(extent(t)) "
      "}\n}");
  const TensorView in(&x, f32, {4}, {0});
  EXPECT_THAT(refusal(range, {{"x", in}, {"y", out}, {"lo", tiny}, {"hi", huge}}, ErrorCode::bad_argument, &y),
              HasSubstr("beyond 64 bits"));
  const Program parts = program(
      "program f(in x: f32[(a, b, c)], in u: f32[a], in v: f32[b], out y: f32[j]) {\n axis j = 4\n"
      " parallel j { y[j] = f32(extent(c)) }\n}");
  EXPECT_THAT(refusal(parts, {{"x", in}, {"u", wide}, {"v", wide}, {"y", out}}, ErrorCode::bad_argument, &y),
              HasSubstr("more elements than memory"));
}

TEST(Sizes, ThatMemoryCannotHoldAreRefused) {
  const Program p = program(
      "program f(in x: f32[i], out y: f32[j]) {\n axis j = 2\n parallel j {\n  e = exp(x * f32(j))\n"
      "  y[j] = sum(e - max(e, i), i)\n }\n}");
  float x = 5;
  std::vector<float> y(2, -1);
  for (const std::int64_t extent : {std::int64_t{1} << 42, std::int64_t{1} << 57, std::int64_t{1} << 60}) {
    const Arguments arguments = {{"x", TensorView(&x, f32, {extent}, {0})}, {"y", TensorView(y.data(), f32, {2})}};
    for (const Device& device : all_devices())
      EXPECT_THROW(Function(p, device, {.knobs = {{"home.e", "worker"}}})(arguments), Error) << device.name();
    EXPECT_THROW(probe(p, arguments, "e"), Error);
    EXPECT_THROW(judge(p, arguments, arguments), Error);
  }
  EXPECT_EQ(y, std::vector<float>(2, -1));
}

TEST(Scalars, OutOfRangeAreRefused) {
  for (const char* type : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "bool"}) {
    const Program p = program(std::string("program f(k: ") + type + ", out y: f32[i]) {\n parallel i { y[i] = f32(k) }\n}");
    std::vector<float> y(2);
    for (const Argument& k : {Argument(0.5), Argument(std::numeric_limits<double>::quiet_NaN()),
                              Argument(std::numeric_limits<double>::infinity()), Argument(9.3e18), Argument(-1e300)})
      EXPECT_THAT(refusal(p, {{"k", k}, {"y", TensorView(y.data(), f32, {2})}}, ErrorCode::bad_argument, &y),
                  HasSubstr("is given"))
          << type;
  }
}

TEST(Scalars, ThatAFloatTypeCannotHoldAreRefused) {
  const double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    const char* type;
    Argument k;
    const char* rounds_to;
  };
  for (const Case& c :
       {Case{"f32", 1e99, "rounds to inf"}, Case{"f32", -1e39, "rounds to -inf"}, Case{"f32", 1e-50, "rounds to 0"},
        Case{"f16", std::int64_t{1000000}, "rounds to inf"}, Case{"f16", 1e-9, "rounds to 0"},
        Case{"bf16", 3.4e38 * 1.1, "rounds to inf"}, Case{"f8e4m3", 1000.0, "rounds to nan"}}) {
    const Program p = program(std::string("program f(k: ") + c.type + ", out y: f32[i]) {\n parallel i { y[i] = k }\n}");
    std::vector<float> y(2);
    EXPECT_THAT(refusal(p, {{"k", c.k}, {"y", TensorView(y.data(), f32, {2})}}, ErrorCode::bad_argument, &y),
                HasSubstr(c.rounds_to))
        << c.type;
  }
  // A prepared launch, a second call and the limits themselves.
  const Program p = program("program f(k: f32, out y: f32[i]) {\n parallel i { y[i] = k }\n}");
  const Function f(p, Device::sim());
  std::vector<float> y(2);
  for (const double k : {infinity, -infinity, 3.4028234e38, 1e-45, 0.0}) {
    f({{"k", k}, {"y", TensorView(y.data(), f32, {2})}});
    EXPECT_EQ(y[1], static_cast<float>(k));
  }
  EXPECT_THROW(f({{"k", 1e99}, {"y", TensorView(y.data(), f32, {2})}}), Error);
}

}  // namespace
}  // namespace cosmati
