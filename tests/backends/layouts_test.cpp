// Rows under layouts of every kind: subgroups of a row, rows of a group, neighbours of a lane, held and read again, from a row
// on; ragged, fewer than a group has, up to 1024 threads. On the simulator, by their sources on the host, and on a GPU where
// there is one. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "library/proofs.h"
#include "lower/lower.h"
#include "plan/planner.h"
#include "runtime/device.h"
#include "runtime/prepared.h"
#include "tests/backends/on_host.h"

namespace cosmati {
namespace {

constexpr const char* programs = R"(
program sums(in x: f32[row, col], inout y: f32[row, one], lo: i64) {
  require 0 <= lo and lo <= extent(row) and extent(one) == 1
  axis r in lo .. extent(row)
  parallel r { y[r, 0] = sum(x[r, col], col) }
}
program softmax(in x: f32[row, col], inout y: f32[row, col], lo: i64) {
  require 0 <= lo and lo <= extent(row)
  axis r in lo .. extent(row)
  parallel r {
    e = exp(x[r, col] - max(x[r, col], col))
    y[r, col] = e / sum(e, col)
  }
}
program norm(in x: f32[row, col], inout y: f32[row, col], lo: i64) {
  require 0 <= lo and lo <= extent(row)
  axis r in lo .. extent(row)
  parallel r {
    mu, var = mean_var(x[r, col], col)
    y[r, col] = (x[r, col] - mu) * rsqrt(var + 1e-5)
  }
}
program extremes(in x: f32[row, col], inout y: f32[row, two], lo: i64) {
  require 0 <= lo and lo <= extent(row) and extent(two) == 2
  axis r in lo .. extent(row)
  parallel r {
    y[r, 0] = min(x[r, col], col)
    y[r, 1] = max(x[r, col], col)
  }
}
)";

struct Layout {
  std::int64_t rows, columns;
  int lanes, packed, vector, tile;  // 0: the planner's
  bool cached;
  std::int64_t origin;
};
constexpr Layout layouts[] = {
    {37, 193, 64, 2, 1, 1, false, 0},  {37, 300, 96, 3, 4, 1, true, 0},   {5, 1537, 128, 8, 4, 3, true, 0},
    {19, 515, 128, 2, 8, 1, false, 3}, {41, 1667, 416, 2, 4, 1, true, 0}, {7, 2051, 512, 2, 4, 3, false, 0},
    {2, 257, 64, 3, 1, 3, true, 0},    {23, 1537, 0, 2, 4, 1, true, 5},   {33, 4099, 0, 0, 0, 0, true, 0},
};

// An array among memory that is nobody's: a row before it and one behind it, and columns beside it.
struct Guarded {
  Guarded(std::int64_t rows, std::int64_t columns)
      : rows(rows), columns(columns), pitch((columns + 7) / 4 * 4), memory(static_cast<std::size_t>((rows + 2) * pitch), guard) {}
  TensorView view() { return {memory.data() + pitch, f32, {rows, columns}, {pitch, 1}}; }
  float& at(std::int64_t r, std::int64_t c) { return memory[static_cast<std::size_t>((r + 1) * pitch + c)]; }
  static constexpr float guard = 777;
  std::int64_t rows, columns, pitch;
  std::vector<float> memory;
};

std::vector<double> expected(const std::string& program, Guarded& x, std::int64_t r) {
  std::vector<double> row;
  for (std::int64_t c = 0; c < x.columns; ++c) row.push_back(x.at(r, c));
  const double most = *std::max_element(row.begin(), row.end()), least = *std::min_element(row.begin(), row.end());
  double sum = 0, squares = 0, exps = 0;
  for (const double v : row) sum += v, exps += std::exp(v - most);
  const double mean = sum / static_cast<double>(row.size());
  for (const double v : row) squares += (v - mean) * (v - mean);
  if (program == "sums") return {sum};
  if (program == "extremes") return {least, most};
  const double spread = std::sqrt(squares / static_cast<double>(row.size()) + 1e-5);
  for (double& v : row) v = program == "softmax" ? std::exp(v - most) / exps : (v - mean) / spread;
  return row;
}

plan::Knobs knobs_of(const Layout& l, const std::string& program) {
  plan::Knobs knobs;
  // Neighbours side by side need whole ones; else as many elements apart.
  const int side = l.vector > 0 && l.columns % l.vector == 0 ? l.vector : 1, tile = l.vector * l.tile / std::max(1, side);
  if (l.lanes > 0) knobs["lanes"] = std::to_string(l.lanes);
  if (l.packed > 0) knobs["packed"] = std::to_string(l.packed);
  if (side > 1) knobs["vector.col"] = std::to_string(side);
  if (tile > 0) knobs["tile.col"] = std::to_string(tile);
  if (l.cached && l.lanes * side * tile >= l.columns) knobs["resident"] = "col";
  if (!l.cached && program == "softmax") knobs["home.e"] = "reload";
  return knobs;
}

TEST(Layouts, OfRowsAreRight) {
  struct Case {
    Program program;
    Layout layout;
    std::string what;
    Guarded x, y;
    std::shared_ptr<Kernel::Impl> made;
    std::vector<const Argument*> matched() const {
      std::vector<const Argument*> pointers;
      for (const Argument& a : arguments) pointers.push_back(&a);
      return pointers;
    }
    std::vector<Argument> arguments;
  };
  std::mt19937_64 random(36);
  std::uniform_real_distribution<float> any(-0.5F, 1.5F);
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<kernel::Kernel> of_source, of_simulator;
  int widest = 0;
  for (const Program& program : parse(programs, "layouts"))
    for (const Layout& l : layouts) {
      const std::string name = program.name();
      const std::int64_t columns = name == "sums" ? 1 : name == "extremes" ? 2 : l.columns;
      auto c = std::make_unique<Case>(Case{
          program, l, fmt::format("{} of {}x{}", name, l.rows, l.columns), {l.rows, l.columns}, {l.rows, columns}, nullptr, {}});
      for (std::int64_t r = 0; r < l.rows; ++r)
        for (std::int64_t i = 0; i < l.columns; ++i) c->x.at(r, i) = any(random);
      c->arguments = {c->x.view(), c->y.view(), l.origin};
      const runtime::Instances instances(program, library::proofs());
      const auto matched = c->matched();
      const auto bound = runtime::bind(instances, matched, {});
      const ir::Program& p = bound.instance->inlined;
      const plan::Facts facts = runtime::relied_on(runtime::facts_of(bound.inputs.tensors, {}), bound.inputs.tensors);
      const auto lowered = [&](const plan::Mapping& m, kernel::Native native) {
        return kernel::expand(lower::lower(p, m, facts), native);
      };
      const plan::Knobs knobs = knobs_of(l, name);
      plan::Mapping mapping;
      if (l.lanes > 0) {
        mapping = plan::make_plan(p, "", plan::target_named("cuda"), knobs, facts).mapping;
      } else {
        mapping = plan::Planner(
                      p, "", plan::target_named("cuda"), knobs, facts,
                      [&](const plan::Mapping& m) { return lowered(m, cuda::native); }, plan::Planner::Search::all)
                      .plan(runtime::shape_of(bound.instance->program, bound.inputs))
                      .mapping;
      }
      of_source.push_back(lowered(mapping, cuda::native));
      of_simulator.push_back(lowered(mapping, {}));
      widest = std::max(widest, clike::threads(of_source.back().phases[0]));
      c->made = std::make_shared<Kernel::Impl>();
      c->made->image.interface = of_simulator.back();
      c->made->facts = facts;
      cases.push_back(std::move(c));
    }
  EXPECT_EQ(cases.size(), 36U);
  EXPECT_EQ(widest, 1024);
  const on_host::Sources sources(of_source);
  const std::vector<char> poison(1 << 20, '\xff');
  for (std::size_t n = 0; n < cases.size(); ++n) {
    Case& c = *cases[n];
    const runtime::Instances instances(c.program, library::proofs());
    const auto run = [&](std::unique_ptr<kernel::Executable> executable, const Device& device, const char* where) {
      SCOPED_TRACE(fmt::format("{} {}", c.what, where));
      std::fill(c.y.memory.begin(), c.y.memory.end(), Guarded::guard);
      c.made->executable = std::move(executable);
      const auto matched = c.matched();
      const runtime::Prepared prepared({}, runtime::bind(instances, matched, {}), matched, c.made);
      for (int dispatch = 0; dispatch < 3; ++dispatch) {
        kernel::Launch launch = prepared.pattern();
        prepared.fill(matched, launch);
        const Buffer scratch = device.allocate(prepared.scratch_bytes());
        device.copy(scratch.data(), poison.data(), std::min(poison.size(), scratch.bytes()));
        prepared.place_scratch(scratch.data(), launch);
        prepared.run(matched, launch, nullptr);
      }
      for (std::int64_t r = -1; r <= c.y.rows; ++r) {
        const bool inside = r >= c.layout.origin && r < c.y.rows;
        const std::vector<double> want = inside ? expected(c.program.name(), c.x, r) : std::vector<double>();
        for (std::int64_t i = 0; i < c.y.pitch; ++i) {
          const bool known = inside && i < c.y.columns;
          const double value = known ? want[static_cast<std::size_t>(i)] : Guarded::guard;
          ASSERT_NEAR(c.y.at(r, i), value, known ? 2e-6 + 2e-5 * std::abs(value) : 0) << "at " << r << ", " << i;
        }
      }
    };
    run(kernel::simulate(of_simulator[n]), Device::sim(), "on the simulator");
    run(sources.executable(n, true), Device::sim(), "by its source");
    if (!cuda::absent()) run(cuda::compile(of_source[n], *Device::cuda().impl()->gpu), Device::cuda(), "on a GPU");
  }
}

}  // namespace
}  // namespace cosmati
