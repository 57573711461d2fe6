// Which candidates there are, and which is chosen for a shape, on a target that is the same everywhere.
// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <cosmati/cosmati.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "library/proofs.h"
#include "lower/lower.h"
#include "plan/choose.h"
#include "plan/legal.h"
#include "plan/profile.h"
#include "runtime/bind.h"

namespace cosmati::plan {
namespace {

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

TEST(Planner, SeveralShortRowsSettleBesideEachOther) {
  const Planned p("program argmax(in x: f32[row, col], out i: i32[row]) {\n  parallel row { i[row] = argmax(x, col) }\n}\n");
  std::map<Knobs, double> cost;
  for (const Plan::Priced& priced : p.plan({{"row", 10000}, {"col", 64}}).candidates) cost[priced.knobs] = priced.cost.total_us;
  ASSERT_TRUE(cost.contains({{"tile.col", "1"}, {"tile.row", "4"}}));
  EXPECT_LT(cost.at({{"tile.col", "1"}, {"tile.row", "4"}}), cost.at({{"tile.col", "1"}}));
}

TEST(Planner, SumsOfFewColumnsHaveSeveralChains) {
  const Planned p("program sums(in x: f32[row, col], out s: f32[col]) {\n  parallel col { s[col] = sum(x, row) }\n}\n");
  const Plan plan = p.plan({{"row", 3000}, {"col", 20}});
  EXPECT_EQ(p.on_lanes({{"row", 3000}, {"col", 20}}), "col");
  std::int64_t chains = 1;
  for (const place::AxisMap& map : plan.mapping.phases.back().placement.axes)
    if (p.p()[map.axis].name == "row") chains = place::constant_size(map, place::Res::reg);
  EXPECT_GE(chains, 4);
}

TEST(Planner, ElementsOf64BitsMayHaveHalfTheLanes) {
  const auto tries_half = [](const std::string& dtype) {
    const Planned p("program total(in x: " + dtype + "[row, col], out y: " + dtype +
                    "[row]) {\n  parallel row { y[row] = sum(x, col) }\n}\n");
    for (std::size_t i = 0; i < p.planner.size(); ++i)
      if (const auto knob = p.planner.knobs(i).find("lanes"); knob != p.planner.knobs(i).end()) return knob->second == "4";
    return false;
  };
  EXPECT_TRUE(tries_half("f64"));
  EXPECT_FALSE(tries_half("f32"));
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

TEST(Planner, ATransposeStoresWholeLines) {
  const Planned p(transpose);
  const Plan plan = p.plan({{"i", 8192}, {"j", 8192}});
  std::map<std::string, std::int64_t> neighbours;
  for (const place::AxisMap& map : plan.mapping.phases.back().placement.axes)
    neighbours[p.p()[map.axis].name] = place::constant_size(map, place::Res::reg) * place::constant_size(map, place::Res::lane);
  EXPECT_GE(neighbours["i"], 16);
  EXPECT_GE(neighbours["j"], 2);
}

TEST(Planner, ColumnsAreSummedInOnePassOverLongRows) {
  const Planned p("program sums(in x: f32[row, col], out s: f32[col]) {\n  parallel col { s[col] = sum(x, row) }\n}\n");
  EXPECT_FALSE(p.plan({{"row", 100000}, {"col", 4096}}).mapping.accumulated.empty());
  EXPECT_TRUE(p.plan({{"row", 20}, {"col", 100000}}).mapping.accumulated.empty());
}

TEST(Planner, EveryCandidateReplaysFromItsKnobs) {
  for (const std::string& text : {softmax, matmul, transpose}) {
    const Planned p(text);
    const Plan plan = p.plan({{"row", 64}, {"col", 64}, {"m", 64}, {"n", 64}, {"k", 64}, {"i", 64}, {"j", 64}});
    EXPECT_EQ(plan.mapping, *derive(p.p(), example_target(), plan.knobs, p.facts()));
    EXPECT_EQ(plan.candidates.size(), p.planner.size());
    EXPECT_TRUE(plan.candidates.front().chosen);
    for (const Plan::Priced& c : plan.candidates) EXPECT_GT(c.cost.total_us, 0);
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

TEST(Planner, EverySettingThatIsNotLegalSaysWhy) {
  const Planned p(softmax);
  const Plan plan = p.plan({{"row", 64}, {"col", 64}});
  ASSERT_FALSE(plan.refusals.empty());
  for (const Refusal& r : plan.refusals) {
    EXPECT_FALSE(derive(p.p(), example_target(), r.knobs, p.facts())) << place::print(r.refused);
    EXPECT_FALSE(r.refused.where.empty());
    EXPECT_FALSE(r.refused.witness.empty());
  }
  EXPECT_EQ(plan.refusals.front().refused.reason, place::Reason::one_at_a_time);
  EXPECT_EQ(plan.refusals.front().refused.where, "tile.row");
}

TEST(Planner, MoreWorkCostsMore) {
  const Planned p(softmax);
  double before = 0;
  for (const std::int64_t rows : {1, 100, 10'000, 1'000'000}) {
    const double now = p.plan({{"row", rows}, {"col", 1000}}).candidates.front().cost.total_us;
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_TRUE(p.planner.first_will_do(p.shape({{"row", 2}, {"col", 3}})));
  EXPECT_FALSE(p.planner.first_will_do(p.shape({{"row", 2000}, {"col", 3000}})));
}

TEST(Planner, FewPlansServeManyShapes) {
  const Planned p(softmax);
  std::set<std::size_t> chosen;
  std::set<Knobs> works;
  for (std::int64_t rows = 1; rows <= 1 << 20; rows *= 2)
    for (std::int64_t cols = 1; cols <= 1 << 14; cols += 1 + cols / 3) {
      chosen.insert(p.planner.choose(p.shape({{"row", rows}, {"col", cols}})));
      Knobs knobs = p.planner.knobs(*chosen.rbegin());
      knobs.erase("stores");
      knobs.erase("ahead");
      works.insert(knobs);
    }
  EXPECT_LE(works.size(), 8u);
  EXPECT_LE(chosen.size(), 10u) << "with their uses of the caches, from 4 bytes to 64 GB";
}

TEST(Planner, ResultsThatFitNoCacheGoPastThem) {
  const Planned p(softmax);
  const auto knobs = [&](std::int64_t rows, std::int64_t cols) { return p.plan({{"row", rows}, {"col", cols}}).knobs; };
  EXPECT_EQ(knobs(65536, 4096)["stores"], "past_caches");
  EXPECT_FALSE(knobs(256, 1024).contains("stores"));
  EXPECT_EQ(knobs(1024, 4096)["ahead"], "group") << "loops over a row take turns at memory and arithmetic";
  EXPECT_FALSE(knobs(1, 1 << 24).contains("ahead")) << "no cache holds the next row";
  const Planned set(softmax, {{"stores", "cached"}, {"ahead", "none"}});
  const Knobs exact = set.plan({{"row", 65536}, {"col", 4096}}).knobs;
  EXPECT_EQ(exact.at("stores"), "cached");
  EXPECT_EQ(exact.at("ahead"), "none");
}

TEST(Planner, TheRuleAloneIsOneCandidate) { EXPECT_EQ(Planned(softmax, {}, Planner::Search::rule).planner.size(), 1u); }

// The figures of a plan stand in its explanation as they are, so this one's are made up.
TEST(Planner, TheExplanationSaysWhatWasCompared) {
  const Planned p(softmax, {}, Planner::Search::rule);
  Plan plan = p.plan({{"row", 1024}, {"col", 4096}});
  plan.candidates = {{{{"tile.col", "4"}}, {30, 40, 4, 54}, true},
                     {{}, {30.25, 40, 4, 54.2}, false},
                     {{{"lane_axes", "row"}, {"tile.col", "2"}}, {1000, 2, 0, 1000}, false}};
  const place::Refused one{place::Reason::one_at_a_time, "tile.row", "row tells them apart"};
  plan.refusals = {{{{"tile.row", "2"}}, one},
                   {{{"tile.row", "4"}}, one},
                   {{{"split.row", "8"}}, {place::Reason::not_reduced, "split.row", "axis row"}}};
  plan.left_out = 7;
  const std::string text = to_text(p.p(), plan);
  const std::string told = text.substr(text.find("  cost "), text.find("  domain:") - text.find("  cost "));
  EXPECT_EQ(told,
            "  cost 54 us: compute 30, memory 40, start 4, by rates of common cores\n"
            "  chosen of 3 candidates: the first about as cheap as the cheapest, 7 not tried\n"
            "  next the rule: 54.2 us: compute 30.2, memory 40, start 4\n"
            "  next lane_axes=row tile.col=2: 1e+03 us: compute 1e+03, memory 2, start 0\n"
            "  refused 2 one_at_a_time: instances that keep arrays or run streams are made one at a time, first tile.row=2\n"
            "  refused 1 not_reduced: nothing is reduced over the axis, first split.row=8\n");
  const auto json = nlohmann::json::parse(to_json(p.p(), plan));
  EXPECT_EQ(json["cost_us"], nlohmann::json({{"compute", 30}, {"memory", 40}, {"start", 4}, {"total", 54}}));
  EXPECT_EQ(json["candidates"][1],
            nlohmann::json({{"knobs", nlohmann::json::object()},
                            {"cost_us", {{"compute", 30.25}, {"memory", 40}, {"start", 4}, {"total", 54.2}}}}));
  EXPECT_EQ(json["not_tried"], 7);
  ASSERT_EQ(json["refusals"].size(), 3);
  EXPECT_EQ(json["refusals"][1], nlohmann::json({{"knobs", {{"tile.row", "4"}}},
                                                 {"reason", "one_at_a_time"},
                                                 {"where", "tile.row"},
                                                 {"witness", "row tells them apart"}}));
}

// ---- profiles --------------------------------------------------------------------------------------------------------------

nlohmann::json profile() {
  const auto m = [](double median) { return nlohmann::json{{"median", median}, {"low", median / 2}, {"high", median}}; };
  const auto copy = [&](const char* level, int threads, double gb_s) {
    return nlohmann::json{{"level", level}, {"threads", threads}, {"copy_gb_s", m(gb_s)}};
  };
  const auto of = [&](const char* name, double per_ns) {
    return nlohmann::json{{"operation", name}, {"threads", 1}, {"per_ns", m(per_ns)}};
  };
  return {{"measured", "some day"},
          {"clock", {{{"threads", 1}, {"ghz", m(2.5)}}}},
          {"bandwidth", {copy("L2", 1, 80), copy("memory", 1, 8), copy("L2", 4, 300), copy("memory", 4, 20)}},
          {"launch",
           {{{"elements", 16}, {"threads", 1}, {"us", m(0.6)}},
            {{"elements", 65536}, {"threads", 1}, {"us", m(80)}},
            {{"elements", 65536}, {"threads", 4}, {"us", m(32)}}}},
          {"throughput", {of("add", 20), of("fma", 10), of("div", 2), of("exp", 1)}}};
}

TEST(Profile, ItsFiguresAreTheTargets) {
  const Target t = with_profile(example_target(), profile().dump());
  EXPECT_EQ(t.prices, "the profile of some day");
  EXPECT_EQ(t.cycles_per_us, 2500);
  // Eight lanes a register.
  EXPECT_DOUBLE_EQ(t.rates.simple.busy, 1);
  EXPECT_DOUBLE_EQ(t.rates.multiply.busy, 2);
  EXPECT_DOUBLE_EQ(t.rates.divide.busy, 10);
  // Copies count a byte once read and once written, and the planner what is stored twice.
  EXPECT_DOUBLE_EQ(t.bytes_per_us[0], 120'000);
  EXPECT_DOUBLE_EQ(t.shared_per_us[0], 450'000);
  EXPECT_DOUBLE_EQ(t.bytes_per_us[2], 12'000);
  EXPECT_DOUBLE_EQ(t.shared_per_us[2], 30'000);
  // A level that is not in the profile is as on common cores.
  EXPECT_EQ(t.bytes_per_us[1], example_target().bytes_per_us[1]);
  EXPECT_DOUBLE_EQ(t.start_us, 6);
  EXPECT_EQ(t.lanes, example_target().lanes);
}

TEST(Profile, SlowMemoryMakesMemoryDear) {
  const Planned p(softmax);
  const Shape shape = p.shape({{"row", 4096}, {"col", 4096}});
  const kernel::Work work(kernel::expand(lower::lower(p.p(), p.plan({{"row", 4096}, {"col", 4096}}).mapping, p.facts())),
                          example_target().rates);
  nlohmann::json slow = profile();
  for (nlohmann::json& row : slow["bandwidth"]) row["copy_gb_s"]["high"] = row["copy_gb_s"]["high"].get<double>() / 10;
  const Cost fast = cost(work, shape, with_profile(example_target(), profile().dump()));
  const Cost dear = cost(work, shape, with_profile(example_target(), slow.dump()));
  EXPECT_NEAR(dear.memory_us, 10 * fast.memory_us, 1e-6 * dear.memory_us);
  EXPECT_EQ(dear.compute_us, fast.compute_us);
}

TEST(Profile, WhatIsMissingOrImpossibleIsSaid) {
  const auto refusal = [](const nlohmann::json& p) -> std::string {
    try {
      with_profile(example_target(), p.dump());
    } catch (const Error& e) {
      return e.message;
    }
    return "";
  };
  EXPECT_EQ(refusal(profile()), "");
  for (const char* list : {"measured", "clock", "bandwidth", "launch", "throughput"}) {
    nlohmann::json p = profile();
    p.erase(list);
    EXPECT_THAT(refusal(p), testing::HasSubstr("figures are missing")) << list;
    if (p = profile(); p[list].is_array()) {
      p[list] = nlohmann::json::array();
      EXPECT_THAT(refusal(p), testing::HasSubstr("figures are missing")) << list;
    }
  }
  for (const double odd : {0.0, -1.0, 1e300, 1e-9}) {
    nlohmann::json p = profile();
    p["clock"][0]["ghz"]["high"] = odd;
    EXPECT_THAT(refusal(p), testing::HasSubstr("ghz of clock is")) << odd;
  }
}

// ---- what the proofs say of a mapping --------------------------------------------------------------------------------------

const std::string ordered =
    "program ordered(in x: f32[row, col], out y: f32[row]) {\n  parallel row { y[row] = sum(x, col, order: left) }\n}\n";

TEST(Legal, AnOrderedReductionIsNotCut) {
  const Planned p(ordered);
  const auto refused = derive(p.p(), example_target(), {{"split.col", "4"}}, p.facts());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refused().reason, place::Reason::ordered);
  EXPECT_EQ(refused.refused().witness, "(grid, 1, 4) spreads it over workers");
  EXPECT_TRUE(derive(p.p(), example_target(), {{"split.col", "1"}}, p.facts()));
  EXPECT_TRUE(derive(p.p(), example_target(), {{"lane_axes", "col"}, {"tile.col", "4"}}, p.facts()));
}

TEST(Legal, AStoreHasOneOwner) {
  const Planned p(softmax);
  Mapping m = *derive(p.p(), example_target(), {}, p.facts());
  EXPECT_TRUE(legal(p.p(), m, p.facts(), example_target()));
  // An instance axis that the value does not have: all its groups would store the same element.
  const Planned sums("program sums(in x: f32[row, col], out y: f32[row]) {\n  parallel row { y[row] = sum(x, col) }\n}\n");
  m = *derive(sums.p(), example_target(), {{"lane_axes", "none"}, {"lanes", "1"}}, sums.facts());
  EXPECT_TRUE(legal(sums.p(), m, sums.facts(), example_target()));
  Phase& phase = m.phases.back();
  for (place::AxisMap& map : phase.placement.axes)
    if (sums.p()[map.axis].name == "col") {
      map.digits = {{place::Res::grid, place::count(phase.placement, place::Res::grid), {1, {{map.axis, 1}}}}};
      phase.instance_axes.push_back(map.axis);
    }
  const auto refused = legal(sums.p(), m, sums.facts(), example_target());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refused().witness, "7 groups would store each element");
}

TEST(Legal, AGroupIsNoLargerThanTheDeviceAllows) {
  const Planned p(softmax);
  Target small = example_target();
  small.most_workers_of_group = 8;
  EXPECT_TRUE(derive(p.p(), small, {{"lanes", "8"}}, p.facts()));
  const auto refused = derive(p.p(), small, {{"lanes", "16"}}, p.facts());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refused().reason, place::Reason::group_too_large);
  EXPECT_EQ(refused.refused().witness, "16 lanes, the limit is 8");
}

TEST(Legal, OffsetsFitWhatTheyAreComputedIn) {
  const Planned p(softmax);
  Target narrow = example_target();
  narrow.offset_bits = 32;
  for (const std::int64_t rows : {1 << 16, (1 << 16) + 1}) {
    const Shape shape = p.shape({{"row", rows}, {"col", 1 << 13}});
    EXPECT_EQ(bool(offsets_fit(p.p(), shape, narrow)), rows == 1 << 16);
    EXPECT_TRUE(offsets_fit(p.p(), shape, example_target()));
  }
  Shape far = p.shape({{"row", 3}, {"col", 4}});
  far.strides[1][0] = std::int64_t{1} << 30;
  EXPECT_EQ(offsets_fit(p.p(), far, narrow).refused().where, "dimension 0 of y");
  EXPECT_TRUE(offsets_fit(p.p(), far, example_target()));
  far.strides[1][0] = std::int64_t{1} << 61;
  EXPECT_FALSE(offsets_fit(p.p(), far, example_target()));
}

TEST(Legal, AKnobOutsideItsRangeIsRefusedAtTheBoundary) {
  const Planned p(softmax);
  const auto reason = [&](const Knobs& knobs) {
    const auto made = derive(p.p(), example_target(), knobs, p.facts());
    return made ? "" : std::string(place::name(made.refused().reason)) + ": " + made.refused().witness;
  };
  for (const auto& [knob, lowest, highest] : {std::tuple{"tile.col", 1, 16}, {"split.col", 1, 1024}, {"chunk.row", 1, 1048576}}) {
    const Knobs on_rows = {{"lane_axes", std::string(knob) == "chunk.row" ? "row" : "col"}};
    const auto with = [&](int value) {
      Knobs knobs = on_rows;
      knobs[knob] = std::to_string(value);
      return reason(knobs);
    };
    EXPECT_EQ(with(lowest), "");
    EXPECT_EQ(with(highest), "");
    for (const int value : {lowest - 1, highest + 1})
      EXPECT_EQ(with(value), fmt::format("outside_values: `{}` is none of {}..{}", value, lowest, highest));
  }
  EXPECT_EQ(reason({{"lane_axes", "col,col"}}), "named_twice: it names col twice");
  EXPECT_EQ(reason({{"tile.nowhere", "2"}}), "names_nothing: the program has no axis nowhere, its axes are row, col");
  EXPECT_EQ(reason({{"home.nothing", "reload"}}), "names_nothing: the program names no value `nothing`, its values are e");
}

TEST(Legal, RegistersHoldNeighboursOfAtMostThreeAxes) {
  const Planned p(
      "program block(in x: f32[a, b, c, d], out y: f32[a, b, c, d]) {\n  parallel a, b, c, d { y[a, b, c, d] = x + 1 }\n}\n");
  const auto made = [&](const Knobs& knobs) { return derive(p.p(), example_target(), knobs, p.facts()); };
  EXPECT_TRUE(made({{"lanes", "1"}, {"tile.a", "2"}, {"tile.b", "2"}, {"tile.c", "2"}}));
  const auto refused = made({{"lanes", "1"}, {"tile.a", "2"}, {"tile.b", "2"}, {"tile.c", "2"}, {"tile.d", "2"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refused().reason, place::Reason::too_many_copies);
}

}  // namespace
}  // namespace cosmati::plan
