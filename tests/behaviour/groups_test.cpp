// Any number of lanes, parts and instances: trees of no power of two, rows narrower than a group, counts of instances at the
// limits of narrow types, and arrays whose last element is farther than 32 bits reach. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include <cosmati/runtime.h>

#include <fmt/format.h>

namespace cosmati {
namespace {

std::vector<Device> computing_devices() {
  std::vector<Device> all;
  for (const DeviceInfo& info : devices())
    if (info.present && info.name != "oracle") all.push_back(Device::named(info.name));
  return all;
}
Device fastest_device() {
  for (const DeviceInfo& info : devices())
    if (info.present && info.name == "cpu") return Device::cpu();
  return Device::sim();
}

// What every worker needs is what all of them reduced, in sums and products that are exact in any order.
const std::string reduced = R"(program reduced(in x: f32[row, col], out y: f32[row, col], out s: f32[row], out i: i32[row]) {
  parallel row {
    y[row, col] = x * 1000 + sum(x, col) - max(x, col)
    s[row] = sum(x, col)
    i[row] = argmax(x, col)
  }
})";

void expect_exact(const Function& f, std::int64_t rows, std::int64_t cols) {
  std::vector<float> x(static_cast<std::size_t>(rows * cols)), y(x.size(), NAN), s(static_cast<std::size_t>(rows), NAN);
  std::vector<std::int32_t> at(s.size(), -1);
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = static_cast<float>(e * 2654435761u % 97);
  f({{"x", view(x, {rows, cols})}, {"y", view(y, {rows, cols})}, {"s", view(s, {rows})}, {"i", view(at, {rows})}});
  for (std::int64_t r = 0; r < rows; ++r) {
    float sum = 0, most = -1;
    std::int32_t first = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      const float e = x[static_cast<std::size_t>(r * cols + c)];
      sum += e;
      if (e > most) most = e, first = static_cast<std::int32_t>(c);
    }
    const auto row = static_cast<std::size_t>(r);
    ASSERT_EQ(s[row], sum) << rows << "x" << cols;
    ASSERT_EQ(at[row], first) << rows << "x" << cols;
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto e = static_cast<std::size_t>(r * cols + c);
      ASSERT_EQ(y[e], x[e] * 1000 + sum - most) << rows << "x" << cols << " at " << r << ", " << c;
    }
  }
}

Function function(const Device& device, std::map<std::string, std::string> knobs) {
  Options options;
  options.cache = "";
  options.knobs = std::move(knobs);
  return Function(parse(reduced).front(), device, options);
}

TEST(Groups, EveryWidthUpToOneMoreThanTheLanes) {
  for (const Device& device : computing_devices())
    for (const int lanes : {1, 2, 4, 8, 16, 32})
      for (const char* tile : {"1", "3"}) {
        const Function f =
            function(device, {{"lanes", std::to_string(lanes)}, {"lane_axes", "col"}, {"tile.col", tile}, {"split.col", "1"}});
        for (std::int64_t cols = 1; cols <= lanes + 1; ++cols) expect_exact(f, 3, cols);
        for (const std::int64_t cols : {3 * lanes - 1, 3 * lanes, 3 * lanes + 1}) expect_exact(f, 3, cols);
      }
}

TEST(Groups, EveryNumberOfParts) {
  for (const Device& device : computing_devices())
    for (int parts = 1; parts <= 32; ++parts) {
      const Function f = function(device, {{"lanes", "8"}, {"split.col", std::to_string(parts)}, {"tile.col", "1"}});
      for (const std::int64_t cols : {1, parts - 1, parts, parts + 1, 8 * parts - 1, 8 * parts + 1})
        if (cols > 0) expect_exact(f, 2, cols);
    }
}

TEST(Groups, CountsOfInstancesAroundNarrowTypes) {
  const Device device = fastest_device();
  for (const char* axis : {"row", "col"}) {
    const Function f = function(device, {{"lane_axes", axis}});
    for (const std::int64_t rows : {65535, 65536, 65537}) expect_exact(f, rows, 8);
  }
  if (device.name() == "cpu") expect_exact(function(device, {}), std::int64_t{1} << 24, 1);
}

TEST(Groups, AttentionOf65536Instances) {
  const Device device = fastest_device();
  if (device.name() != "cpu") GTEST_SKIP() << "the simulator takes minutes";
  constexpr std::int64_t batch = 16, heads = 64, queries = 64, keys = 64, width = 2;
  std::vector<float> q(batch * heads * queries * width, 0), k(batch * heads * keys * width, 0), v(k.size()), o(q.size(), NAN),
      lse(static_cast<std::size_t>(batch * heads * queries), NAN);
  const auto head_of = [](std::size_t e, std::int64_t elements) {
    const std::size_t head = e / static_cast<std::size_t>(elements);
    return static_cast<double>(head);
  };
  for (std::size_t e = 0; e < v.size(); ++e) v[e] = static_cast<float>(head_of(e, keys * width));  // of one head all alike
  Function(load("attention"), device)({{"q", view(q, {batch, heads, queries, width})},
                                       {"k", view(k, {batch, heads, keys, width})},
                                       {"v", view(v, {batch, heads, keys, width})},
                                       {"o", view(o, {batch, heads, queries, width})},
                                       {"lse", view(lse, {batch, heads, queries})}});
  for (std::size_t e = 0; e < o.size(); ++e)
    ASSERT_NEAR(o[e], head_of(e, queries * width), 1e-3 * (1 + head_of(e, queries * width))) << e;
  for (std::size_t e = 0; e < lse.size(); ++e) ASSERT_NEAR(lse[e], std::log(static_cast<double>(e % queries + 1)), 1e-5) << e;
}

// Memory that exists where it is touched.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Sparse() {
    if (*this) ::munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  explicit operator bool() const { return data_ != MAP_FAILED; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

// Rows whose first elements are 131072 apart: the last of them is past the 2^31st element, whichever way the rows go.
TEST(Groups, RowsFarApart) {
  constexpr std::int64_t rows = 16386, pitch = 131072, cols = 37;
  const Sparse memory(static_cast<std::size_t>(rows * pitch) * 2);
  if (!memory) GTEST_SKIP() << "this machine does not map so much";
  auto* x = memory.as<std::uint16_t>();
  const auto bf16_of = [](float f) {
    std::uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return static_cast<std::uint16_t>(bits >> 16);
  };
  const auto element = [](std::int64_t r, std::int64_t c) { return static_cast<float>((r * 7 + c * 3) % 61); };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) x[r * pitch + c] = bf16_of(element(r, c));
  const Device device = fastest_device();
  const std::string text =
      "program sums<T: float>(in x: T[row, col], out s: f32[row]) {\n  parallel row { s[row] = sum(x, col) }\n}\n";
  for (const char* axis : {"row", "col", "none"})
    for (const bool reversed : {false, true}) {
      Options options;
      options.cache = "";
      options.knobs = {{"lane_axes", axis}};
      std::vector<float> s(rows, NAN);
      TensorView v(reversed ? x + (rows - 1) * pitch : x, DType::bf16_, {rows, cols}, {reversed ? -pitch : pitch, 1});
      Function(parse(text).front(), device, options)({{"x", v}, {"s", view(s, {rows})}});
      for (const std::int64_t r : {std::int64_t{0}, std::int64_t{1}, rows / 2, rows - 3, rows - 2, rows - 1}) {
        float sum = 0;
        for (std::int64_t c = 0; c < cols; ++c) sum += element(reversed ? rows - 1 - r : r, c);
        ASSERT_EQ(s[static_cast<std::size_t>(r)], sum) << axis << " row " << r << (reversed ? " reversed" : "");
      }
      // And stored there.
      std::vector<float> plus(static_cast<std::size_t>(rows * cols));
      for (std::size_t e = 0; e < plus.size(); ++e) plus[e] = static_cast<float>(e % 251);
      const char* copy =
          "program copy(in x: f32[row, col], out y: bf16[row, col]) {\n  parallel row { y[row, col] = bf16(x) }\n}\n";
      Function(parse(copy).front(), device, options)({{"x", view(plus, {rows, cols})}, {"y", v}});
      for (const std::int64_t r : {std::int64_t{0}, rows - 2, rows - 1})
        for (std::int64_t c = 0; c < cols; ++c)
          ASSERT_EQ(x[(reversed ? rows - 1 - r : r) * pitch + c], bf16_of(static_cast<float>((r * cols + c) % 251))) << axis;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) x[r * pitch + c] = bf16_of(element(r, c));
    }
}

// One row of about 2^31 elements: an index of i32 reaches the last one, or the launch is refused; it never wraps.
TEST(Groups, OneRowOfTwoToThe31Elements) {
  const Device device = fastest_device();
  if (device.name() != "cpu") GTEST_SKIP() << "the simulator takes hours";
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  const Sparse memory(static_cast<std::size_t>(limit + 64));
  if (!memory) GTEST_SKIP() << "this machine does not map so much";
  auto* x = memory.as<std::int8_t>();
  Options options;
  options.cache = "";
  const std::string text =
      "program last(in x: i8[col], out m: i32[], out s: i32[]) {\n  parallel {\n    m[] = max(x, col)\n    s[] = sum(i32(x), "
      "col)\n  }\n}\n";
  const Function f(parse(text).front(), device, options);
  for (const std::int64_t n : {limit - 1, limit, limit + 1}) {
    x[0] = 3, x[n - 1] = 5;
    std::int32_t m = 0, s = 0;
    f({{"x", TensorView(x, DType::i8_, {n})}, {"m", TensorView(&m, DType::i32_, {})}, {"s", TensorView(&s, DType::i32_, {})}});
    EXPECT_EQ(m, 5) << n;
    EXPECT_EQ(s, 8) << n;
    x[n - 1] = 0;
  }
}

// Narrow integers compute as i32, so no sum of them wraps where the type would; extremes and counts are exact.
TEST(Groups, ReductionsOfNarrowIntegersAreExact) {
  const auto run = [](auto type, DType t, const std::string& name, const Device& device, std::int64_t cols) {
    using T = decltype(type);
    constexpr std::int64_t rows = 5;
    const std::string text = fmt::format(
        "program narrow(in x: {0}[row, col], out s: i32[row], out m: {0}[row], out n: {0}[row], out i: i32[row], out a: "
        "f32[row]) {{\n"
        "  parallel row {{\n    s[row] = sum(x, col)\n    m[row] = max(x, col)\n    n[row] = min(x, col)\n"
        "    i[row] = argmin(x, col)\n    a[row] = mean(x, col)\n  }}\n}}\n",
        name);
    std::vector<T> x(rows * static_cast<std::size_t>(cols)), m(rows), n(rows);
    std::vector<std::int32_t> s(rows), i(rows);
    std::vector<float> a(rows);
    for (std::size_t e = 0; e < x.size(); ++e) {
      const auto low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      x[e] = e < static_cast<std::size_t>(cols)       ? high
             : e < 2 * static_cast<std::size_t>(cols) ? low
                                                      : static_cast<T>(e * 2654435761u);
    }
    for (const char* axis : {"row", "col", "none"}) {
      Options options;
      options.cache = "";
      options.knobs = {{"lane_axes", axis}};
      Function(parse(text).front(), device, options)({{"x", TensorView(x.data(), t, {rows, cols})},
                                                      {"s", view(s, {rows})},
                                                      {"m", TensorView(m.data(), t, {rows})},
                                                      {"n", TensorView(n.data(), t, {rows})},
                                                      {"i", view(i, {rows})},
                                                      {"a", view(a, {rows})}});
      for (std::size_t r = 0; r < rows; ++r) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(cols)), end = begin + cols;
        std::int64_t sum = 0;
        for (auto e = begin; e != end; ++e) sum += *e;
        EXPECT_EQ(s[r], static_cast<std::int32_t>(sum)) << name << " " << axis << " " << cols << " row " << r;
        EXPECT_EQ(m[r], *std::max_element(begin, end)) << name << " " << axis << " " << cols;
        EXPECT_EQ(n[r], *std::min_element(begin, end)) << name << " " << axis << " " << cols;
        EXPECT_EQ(i[r], std::min_element(begin, end) - begin) << name << " " << axis << " " << cols;
        EXPECT_NEAR(a[r], static_cast<double>(sum) / static_cast<double>(cols),
                    1e-6 * std::abs(static_cast<double>(sum) / static_cast<double>(cols)) + 1e-6);
      }
    }
  };
  for (const Device& device : computing_devices())
    for (const std::int64_t cols : {8, 64, 100}) {
      run(std::int8_t{}, DType::i8_, "i8", device, cols);
      run(std::uint8_t{}, DType::u8_, "u8", device, cols);
      run(std::int16_t{}, DType::i16_, "i16", device, cols);
      run(std::uint16_t{}, DType::u16_, "u16", device, cols);
    }
}

}  // namespace
}  // namespace cosmati
