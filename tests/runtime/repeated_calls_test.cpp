// A function remembers the forms of arguments it has seen. What it remembers never stands for what a call must still check.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>

#include "runtime/fixture.h"

namespace cosmati::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(repeated, overlaps_are_checked_at_every_call) {
  for (const Device& device : all_devices()) {
    std::vector<float> a = counted(12), b(12, -1);
    const Function f(doubled(), device, uncached());
    const auto run = [&](float* x, float* y) { f(view(x, {2, 3}), view(y, {2, 3})); };
    run(a.data(), b.data());
    EXPECT_THAT(refusal(ErrorCode::overlap, [&] { run(a.data(), a.data() + 1); }), HasSubstr("not exactly the same view"));
    EXPECT_EQ(a, counted(12));
    run(a.data() + 6, b.data() + 6);
    EXPECT_THAT(b, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22)) << device.name();
    run(a.data(), a.data());
    run(b.data(), b.data());
    EXPECT_THAT(a, ElementsAre(0, 2, 4, 6, 8, 10, 6, 7, 8, 9, 10, 11)) << "in place, " << device.name();
    run(b.data(), a.data());
    EXPECT_EQ(a[5], 40);
    EXPECT_LE(f.compiles(), 2u) << "apart, and in place";
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(nullptr, a.data()); }), HasSubstr("x has no memory"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(a.data(), nullptr); }), HasSubstr("y has no memory"));
  }
}

TEST(repeated, interleaved_arrays_that_share_no_element_are_accepted) {
  for (const Device& device : all_devices()) {
    std::vector<float> a = counted(12);
    const Function f(doubled(), device, uncached());
    for (int round = 0; round < 3; ++round)
      f(TensorView(a.data(), f32, {2, 3}, {6, 2}), TensorView(a.data() + 1, f32, {2, 3}, {6, 2}));
    EXPECT_THAT(a, ElementsAre(0, 0, 2, 4, 4, 8, 6, 12, 8, 16, 10, 20)) << device.name();
    EXPECT_LE(f.compiles(), 1u);
  }
}

TEST(repeated, contracts_are_checked_at_every_call) {
  const Program p = program(
      "program pick(in table: f32[w], in id: i32[t] in 0 .. n, out y: f32[t], n: i64) {\n"
      " require n <= extent(w)\n parallel t { y[t] = table[id] }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> table = counted(5), y(2, -1);
    std::vector<std::int32_t> id = {1, 3};
    const Function f(p, device, uncached());
    const auto run = [&](std::int64_t n) { f(view(table, {5}), view(id, {2}), view(y, {2}), n); };
    run(4);
    id[1] = 4;
    EXPECT_THAT(refusal(ErrorCode::contract_broken, [&] { run(4); }), HasSubstr("id[1] = 4 is outside 0 .. 4"));
    EXPECT_THAT(y, ElementsAre(1, 3));
    run(5);
    EXPECT_THAT(y, ElementsAre(1, 4)) << device.name();
    EXPECT_THAT(refusal(ErrorCode::contract_broken, [&] { run(6); }), HasSubstr("require"));
    EXPECT_LE(f.compiles(), 1u);
  }
}

TEST(repeated, scalars_are_converted_at_every_call) {
  const Program p = program("program f(in x: f32[i], out y: f32[i], k: i8) {\n parallel i { y[i] = x * f32(k) }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> x = {1, 2}, y(2);
    const Function f(p, device, uncached());
    const auto run = [&](const Argument& k) { f(view(x, {2}), view(y, {2}), k); };
    run(3);
    run(4.0);
    EXPECT_THAT(y, ElementsAre(4, 8));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(300); }), HasSubstr("k is i8, but 300 is given"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(0.5); }), HasSubstr("0.5 is given"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(true); }), HasSubstr("true is given"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { run(view(x, {2})); }), HasSubstr("scalar parameter"));
    run(-1);
    EXPECT_THAT(y, ElementsAre(-1, -2)) << device.name();
  }
}

TEST(repeated, a_read_only_output_is_refused_after_a_writable_one) {
  std::vector<float> x(6), y(6, 5);
  const Function f(doubled(), Device::sim());
  f(view(x, {2, 3}), view(y, {2, 3}));
  const std::vector<float> kept(6, 5);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { f(view(x, {2, 3}), view(kept, {2, 3})); }), HasSubstr("read-only"));
  EXPECT_THAT(kept, Each(5));
}

TEST(repeated, more_forms_than_are_remembered_stay_right) {
  for (const Device& device : compiling_devices()) {
    std::vector<float> x = counted(600), y(600);
    const Function f(doubled(), device, uncached());
    for (int round = 0; round < 2; ++round)
      for (std::int64_t width = 1; width <= 300; ++width) {
        f(view(x, {2, width}), view(y, {2, width}));
        ASSERT_EQ(y[2 * width - 1], 2 * x[2 * width - 1]) << width << " on " << device.name();
      }
    EXPECT_LE(f.compiles(), 2u) << "an extent of one is another fact, nothing else is";
  }
}

// A view of f32 elements that begins `offset` elements behind an address that is a multiple of 64.
struct Shifted {
  explicit Shifted(std::size_t size) : memory(size + 32) {}
  float* at(std::size_t offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float) + offset;
  }
  std::vector<float> memory;
};

TEST(alignment, of_an_earlier_call_says_nothing_about_a_later_one) {
  const std::int64_t rows = 16, columns = 1185;  // a row ends off every vector
  const Program p = program(
      "program f(in x: f32[i, j], in gamma: f32[j], out y: f32[i, j]) {\n"
      " parallel i { y[i, j] = x * gamma + sum(x, j) }\n}");
  for (const Device& device : compiling_devices()) {
    Shifted x(rows * columns), gamma(columns), y(rows * columns);
    std::vector<float> wanted(rows * columns);
    const auto fill = [&](std::size_t ox, std::size_t og) {
      for (std::int64_t i = 0; i < rows * columns; ++i) x.at(ox)[i] = static_cast<float>(i % 7);
      for (std::int64_t j = 0; j < columns; ++j) gamma.at(og)[j] = static_cast<float>(j % 5);
      for (std::int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) sum += x.at(ox)[i * columns + j];
        for (std::int64_t j = 0; j < columns; ++j) wanted[i * columns + j] = x.at(ox)[i * columns + j] * gamma.at(og)[j] + sum;
      }
    };
    const auto same = [&](std::size_t oy) { return std::memcmp(y.at(oy), wanted.data(), wanted.size() * sizeof(float)) == 0; };
    const auto views = [&](std::size_t ox, std::size_t og, std::size_t oy) -> Arguments {
      return {{"x", view(x.at(ox), {rows, columns})},
              {"gamma", view(gamma.at(og), {columns})},
              {"y", view(y.at(oy), {rows, columns})}};
    };
    for (const bool aligned_first : {true, false}) {
      const Function f(p, device, uncached());
      std::vector<std::array<std::size_t, 3>> offsets = {{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {0, 0, 3},
                                                         {1, 1, 1}, {3, 2, 1}, {0, 0, 0}};
      if (!aligned_first) std::reverse(offsets.begin(), offsets.end() - 1);
      std::optional<Launch> l;
      for (const auto& [ox, og, oy] : offsets) {
        fill(ox, og);
        f(views(ox, og, oy));
        EXPECT_TRUE(same(oy)) << ox << og << oy << " on " << device.name();
        std::memset(y.at(oy), 0, wanted.size() * sizeof(float));
        if (l)
          l->rebind(views(ox, og, oy));
        else
          l = f.prepare(views(ox, og, oy));
        (*l)();
        EXPECT_TRUE(same(oy)) << "rebound: " << ox << og << oy << " on " << device.name();
      }
    }
  }
}

TEST(alignment, of_half_precision_at_every_offset) {
  const std::int64_t rows = 3, columns = 65;
  const Program p = program("program f(in x: f16[i, j], out y: f16[i, j]) {\n parallel i, j { y[i, j] = x + x }\n}");
  for (const Device& device : compiling_devices()) {
    std::vector<std::uint16_t> x(rows * columns + 8), y(x.size());
    const Function f(p, device, uncached());
    for (std::size_t k = 0; k < 8; ++k) {
      std::fill(x.begin(), x.end(), 0x3c00);  // 1
      std::fill(y.begin(), y.end(), 0);
      f(TensorView(x.data() + k, f16, {rows, columns}), TensorView(y.data() + 7 - k, f16, {rows, columns}));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const bool inside = i >= 7 - k && i < 7 - k + rows * columns;
        ASSERT_EQ(y[i], inside ? 0x4000 : 0) << k << " on " << device.name();
      }
    }
  }
}

}  // namespace
}  // namespace cosmati::test
