// Which candidates there are, and which is chosen for a shape, on a target that is the same everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <cosmati/cosmati.h>
#include <gmock/gmock.h>

#include "library/proofs.h"
#include "lower/lower.h"
#include "plan/choose.h"
#include "runtime/bind.h"

namespace cosmati::plan {
namespace {

using testing::HasSubstr;

struct Planned {
  explicit Planned(const std::string& program, Knobs fixed = {}, Planner::Search search = Planner::Search::all)
      : instance(runtime::Instances(parse(program).front(), library::proofs()).get({{{"T", DType::f32_}}, {}})),
        planner(
            p(), "text", example_target(), fixed, facts(),
            [this](const Mapping& mapping) { return kernel::expand(lower::lower(p(), mapping, facts())); }, search) {}

  const ir::Program& p() const { return instance->inlined; }
  Facts facts() const {
    Facts f;
    for (const ir::Tensor& t : p().tensors) {
      f.unit_stride.emplace_back(t.dims.size(), false);
      if (!t.dims.empty()) f.unit_stride.back().back() = true;
    }
    return f;
  }
  // Dense arrays of these extents, by the name of the axis.
  Shape shape(const std::map<std::string, std::int64_t>& extents) const {
    Shape s;
    for (const ir::Axis& axis : p().axes) s.extents.push_back(extents.at(axis.name));
    for (const ir::Tensor& t : p().tensors) {
      std::vector<std::int64_t> strides(t.dims.size(), 1);
      for (std::size_t d = t.dims.size(); d-- > 1;) {
        std::int64_t extent = 1;
        for (const ir::Factor& f : t.dims[d]) extent *= s.extents[f.axis.index];
        strides[d - 1] = strides[d] * extent;
      }
      s.strides.push_back(strides);
    }
    s.scalars.assign(p().scalars.size(), 0);
    return s;
  }
  Plan plan(const std::map<std::string, std::int64_t>& extents) const { return planner.plan(shape(extents)); }
  // The axis on the lanes of the last phase, or empty.
  std::string on_lanes(const std::map<std::string, std::int64_t>& extents) const {
    const Plan chosen = plan(extents);
    for (const place::AxisMap& map : chosen.mapping.phases.back().placement.axes)
      if (place::constant_size(map, place::Res::lane) > 1) return p()[map.axis].name;
    return "";
  }

  std::shared_ptr<const runtime::Instance> instance;
  Planner planner;
};

const std::string softmax =
    "program softmax<T: float>(in x: T[row, col], out y: T[row, col]) {\n  parallel row {\n    e = exp(x - max(x, col))\n"
    "    y[row, col] = e / sum(e, col)\n  }\n}\n";
const std::string matmul =
    "program matmul<T: float>(in a: T[m, k], in b: T[k, n], out c: T[m, n]) {\n  parallel m, n { c[m, n] = contract(a, b, k) "
    "}\n}\n";
const std::string transpose =
    "program transpose<T: float>(in x: T[i, j], out y: T[j, i]) {\n  parallel i, j { y[j, i] = x }\n}\n";

TEST(Planner, LongRowsHaveLanesAlongThemAndShortOnesAcross) {
  const Planned p(softmax);
  EXPECT_EQ(p.on_lanes({{"row", 1024}, {"col", 4096}}), "col");
  EXPECT_EQ(p.on_lanes({{"row", 1000000}, {"col", 3}}), "row");
  EXPECT_EQ(p.on_lanes({{"row", 4}, {"col", 1000}}), "col");
}

TEST(Planner, AContractionKeepsABlockInRegisters) {
  const Planned p(matmul);
  const Plan plan = p.plan({{"m", 512}, {"n", 512}, {"k", 512}});
  std::int64_t registers = 1;
  for (const place::AxisMap& map : plan.mapping.phases.back().placement.axes)
    registers *= place::constant_size(map, place::Res::reg);
  EXPECT_GE(registers, 8);
  EXPECT_LE(registers, 16) << "there are sixteen";
  EXPECT_EQ(p.on_lanes({{"m", 512}, {"n", 512}, {"k", 512}}), "n");
}

TEST(Planner, ATransposeReadsWholeLines) {
  const Planned p(transpose);
  const Plan plan = p.plan({{"i", 8192}, {"j", 8192}});
  std::map<std::string, std::int64_t> neighbours;
  for (const place::AxisMap& map : plan.mapping.phases.back().placement.axes)
    neighbours[p.p()[map.axis].name] = place::constant_size(map, place::Res::reg) * place::constant_size(map, place::Res::lane);
  EXPECT_GE(neighbours["i"], 8);
  EXPECT_GE(neighbours["j"], 8);
}

TEST(Planner, EveryCandidateReplaysFromItsKnobs) {
  for (const std::string& text : {softmax, matmul, transpose}) {
    const Planned p(text);
    const Plan plan = p.plan({{"row", 64}, {"col", 64}, {"m", 64}, {"n", 64}, {"k", 64}, {"i", 64}, {"j", 64}});
    EXPECT_EQ(plan.mapping, derive(p.p(), example_target(), plan.knobs, p.facts()));
    EXPECT_EQ(plan.candidates.size(), p.planner.size());
    EXPECT_TRUE(plan.candidates.front().chosen);
    for (const Plan::Priced& c : plan.candidates) EXPECT_GT(c.total_us, 0);
    EXPECT_GE(p.planner.size(), 10u);
  }
}

TEST(Planner, SetKnobsAreExactInEveryCandidate) {
  const Planned p(softmax, {{"tile.col", "3"}, {"home.e", "reload"}});
  for (std::size_t i = 0; i < p.planner.size(); ++i) {
    EXPECT_EQ(p.planner.knobs(i).at("tile.col"), "3");
    EXPECT_EQ(p.planner.knobs(i).at("home.e"), "reload");
  }
  EXPECT_THROW(Planned(softmax, {{"tile.col", "3"}, {"lane_axes", "nowhere"}}), Error);
}

TEST(Planner, RefusalsAreCountedByReason) {
  const Plan plan = Planned(softmax).plan({{"row", 64}, {"col", 64}});
  ASSERT_FALSE(plan.refusals.empty());
  EXPECT_THAT(plan.refusals.begin()->first, HasSubstr("tile.row"));
  EXPECT_GE(plan.refusals.begin()->second, 1);
}

TEST(Planner, MoreWorkCostsMore) {
  const Planned p(softmax);
  double before = 0;
  for (const std::int64_t rows : {1, 100, 10'000, 1'000'000}) {
    const double now = p.plan({{"row", rows}, {"col", 1000}}).cost.total_us;
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_TRUE(p.planner.first_will_do(p.shape({{"row", 2}, {"col", 3}})));
  EXPECT_FALSE(p.planner.first_will_do(p.shape({{"row", 2000}, {"col", 3000}})));
}

TEST(Planner, FewPlansServeManyShapes) {
  const Planned p(softmax);
  std::set<std::size_t> chosen;
  for (std::int64_t rows = 1; rows <= 1 << 20; rows *= 2)
    for (std::int64_t cols = 1; cols <= 1 << 14; cols += 1 + cols / 3)
      chosen.insert(p.planner.choose(p.shape({{"row", rows}, {"col", cols}})));
  EXPECT_LE(chosen.size(), 8u);
}

TEST(Planner, TheRuleAloneIsOneCandidate) { EXPECT_EQ(Planned(softmax, {}, Planner::Search::rule).planner.size(), 1u); }

TEST(Planner, TheExplanationSaysWhatWasCompared) {
  const Planned p(softmax);
  const std::string text = to_text(p.p(), p.plan({{"row", 1024}, {"col", 4096}}));
  EXPECT_THAT(text, HasSubstr("cost "));
  EXPECT_THAT(text, HasSubstr(" us: compute "));
  EXPECT_THAT(text, testing::ContainsRegex("the cheapest of [0-9]+ candidates; next: "));
  EXPECT_THAT(text, HasSubstr("refused "));
  const std::string json = to_json(p.p(), p.plan({{"row", 1024}, {"col", 4096}}));
  EXPECT_THAT(json, HasSubstr("\"cost_us\""));
  EXPECT_THAT(json, HasSubstr("\"refusals\""));
}

}  // namespace
}  // namespace cosmati::plan
