// What compiling costs, and what it makes: neither grows with the extents, and every legal mapping compiles at every extent.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cosmati/runtime.h>

#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace cosmati {
namespace {

using testing::HasSubstr;

std::vector<std::string> compiling_devices() {
  std::vector<std::string> all;
  for (const DeviceInfo& info : devices())
    if (info.present && info.name != "oracle") all.push_back(info.name);
  return all;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Arrays of ones by name; what a program makes of them.
class Arrays {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& shape, float value = 1) {
    std::int64_t n = 1;
    for (std::int64_t extent : shape) n *= extent;
    std::vector<float>& memory = memory_[name];
    memory.assign(static_cast<std::size_t>(n), value);
    arguments_.emplace_back(name, TensorView(memory.data(), DType::f32_, shape));
  }
  const Arguments& arguments() const { return arguments_; }
  std::vector<float>& operator[](const std::string& name) { return memory_.at(name); }

 private:
  std::map<std::string, std::vector<float>> memory_;
  Arguments arguments_;
};

Arrays rows_of(const std::string& program, std::int64_t rows, std::int64_t cols) {
  Arrays a;
  a.add("x", {rows, cols});
  if (program == "layer_norm") a.add("gamma", {cols});
  if (program == "layer_norm") a.add("beta", {cols}, 0.5f);
  if (program == "divided") a.add("s", {rows}, 2);
  a.add("y", program == "divided" ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, cols});
  return a;
}

// Two divisions one after the other, by the row's own scale, feeding a sum.
Program program_named(const std::string& name) {
  if (name != "divided") return load(name);
  return parse(
             "program divided(in x: f32[row, col], in s: f32[row], out y: f32[row]) {\n"
             "  parallel row {\n    v = x / s\n    w = v / s\n    y[row] = sum(w, col)\n  }\n}\n")
      .front();
}

float expected(const std::string& program, std::int64_t cols) {
  const auto n = static_cast<float>(cols);
  return program == "softmax" ? 1 / n : program == "layer_norm" ? 0.5f : n / 4;
}

TEST(Compile, TakesNoLongerForLongRows) {
  for (const std::string& device : compiling_devices()) {
    for (const char* name : {"softmax", "layer_norm", "divided"}) {
      std::map<std::string, std::size_t> sizes;
      for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 100}, {4, 65536}, {2, 262144}}) {
        SCOPED_TRACE(fmt::format("{} of {} x {} on {}", name, rows, cols, device));
        Arrays a = rows_of(name, rows, cols);
        Options uncached;
        uncached.cache = "";
        uncached.knobs = {{"lane_axes", "col"}, {"tile.col", "2"},    {"tile.row", "1"},
                          {"split.col", "1"},   {"stores", "cached"}, {"ahead", "group"}};  // one plan for all
        if (name == std::string_view("softmax")) uncached.knobs["home.e"] = "worker";
        const auto start = std::chrono::steady_clock::now();
        Function f(program_named(name), Device::named(device), uncached);
        f.kernel(a.arguments());
        EXPECT_LT(seconds_since(start), 5);
        EXPECT_EQ(f.compiles(), 1u);
        for (const char* level : {"kernel", "llvm"}) {
          if (device != "cpu" && std::string_view(level) == "llvm") continue;
          const std::size_t size = f.emit(a.arguments(), level).size();
          const auto [it, fresh] = sizes.emplace(level, size);
          EXPECT_EQ(it->second, size) << level << " grows with the extents";
        }
        if (device == "sim" && rows * cols > 100000) continue;
        f(a.arguments());
        EXPECT_NEAR(a["y"].front(), expected(name, cols), 1e-6f * std::fabs(expected(name, cols)));
        EXPECT_EQ(a["y"].front(), a["y"].back());
      }
    }
  }
}

// In place: the arguments know the addresses.
void fill_with_noise(std::vector<float>& v) {
  std::uint32_t seed = 1;
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) / 16777216.f - 0.5f;
  }
}

TEST(Compile, EveryWidthOfTilesAtEveryExtent) {
  // Widths of 24, 40, 48 and 96 elements: neighbours of a worker times lanes; 128 threads share the rows.
  struct Width {
    int lanes, tile;
  };
  std::vector<std::pair<std::string, Device>> on;
  for (const std::string& name : compiling_devices())
    on.emplace_back(name, name == "cpu" ? Device::cpu(128) : Device::named(name));
  for (std::int64_t cols : {192, 229, 257}) {
    for (const Width& w : {Width{8, 3}, Width{8, 5}, Width{16, 3}, Width{32, 3}}) {
      Options options;
      options.cache = "";
      options.knobs = {{"lanes", std::to_string(w.lanes)}, {"tile.col", std::to_string(w.tile)}};
      for (const char* program : {"softmax", "log_softmax", "layer_norm"}) {
        Arrays a = rows_of(program, 5, cols);
        fill_with_noise(a["x"]);
        // The wide oracle is the reference.
        Function(load(program), Device::oracle())(a.arguments());
        const std::vector<float> wanted = a["y"];
        for (const auto& [name, device] : on) {
          SCOPED_TRACE(fmt::format("{} of {} columns, {} lanes x {} on {}", program, cols, w.lanes, w.tile, name));
          std::fill(a["y"].begin(), a["y"].end(), -7.f);
          Function(load(program), device, options)(a.arguments());
          for (std::size_t i = 0; i < wanted.size(); ++i)
            ASSERT_NEAR(a["y"][i], wanted[i], 2e-6f + 2e-5f * std::fabs(wanted[i])) << i;
        }
      }
    }
  }
}

TEST(Compile, EveryTileOfAProductAtEveryExtent) {
  for (std::int64_t n : {192, 229, 257}) {
    Arrays a;
    a.add("a", {7, 19});
    a.add("b", {19, n});
    a.add("c", {7, n});
    fill_with_noise(a["a"]);
    fill_with_noise(a["b"]);
    Function(load("matmul"), Device::oracle())(a.arguments());
    const std::vector<float> wanted = a["c"];
    for (const auto& [lanes, m, tile] :
         std::vector<std::array<int, 3>>{{8, 1, 3}, {8, 5, 5}, {16, 4, 3}, {32, 3, 3}, {1, 16, 1}}) {
      Options options;
      options.cache = "";
      options.knobs = {{"lanes", std::to_string(lanes)}, {"tile.m", std::to_string(m)}, {"tile.n", std::to_string(tile)}};
      if (lanes == 1) options.knobs.erase("tile.n");
      for (const std::string& device : compiling_devices()) {
        SCOPED_TRACE(fmt::format("n = {}, {} lanes, tile {} x {} on {}", n, lanes, m, tile, device));
        Function(load("matmul"), Device::named(device), options)(a.arguments());
        for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(a["c"][i], wanted[i], 1e-5f) << i;
      }
    }
  }
}

TEST(Compile, ImpossibleMappingsAreRefusedByNameWithTheirLimit) {
  auto refused = [](const std::string& program, const std::map<std::string, std::string>& knobs) -> std::string {
    Arrays a = rows_of(program, 5, 229);
    Options options;
    options.knobs = knobs;
    try {
      Function(load(program), Device::sim(), options)(a.arguments());
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_knob) << e.what();
      EXPECT_FALSE(e.hint.empty()) << e.what();
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(
      refused("softmax", {{"lanes", "24"}}),
      HasSubstr("lanes: a knob has a value that it does not take: `24` is none of 1 | 2 | 4 | 8 | 16 | 32 | 64..1024. Hint: "));
  EXPECT_THAT(refused("softmax", {{"tile.col", "17"}}),
              HasSubstr("tile.col: a knob has a value that it does not take: `17` is none of 1..16"));
  EXPECT_THAT(refused("softmax", {{"tile.k", "2"}}),
              HasSubstr("tile.k: the program has nothing of this name: the program has no axis k, its axes are row, col"));
  EXPECT_THAT(refused("softmax", {{"tile.row", "2"}}),
              HasSubstr("tile.row: instances that keep arrays or run streams are made one at a time: row tells them apart"));
  EXPECT_THAT(refused("softmax", {{"chunk.col", "4"}}),
              HasSubstr("chunk.col: the axis does not tell instances apart on lanes in any phase: col"));
  EXPECT_THAT(refused("softmax", {{"lane_axes", "col,k"}}), HasSubstr("the program has no axis k"));
  EXPECT_THAT(refused("softmax", {{"home.e", "shared"}}),
              HasSubstr("home.e: a knob has a value that it does not take: `shared` is none of reload | worker"));
}

}  // namespace
}  // namespace cosmati
