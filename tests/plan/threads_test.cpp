// Plans of a GPU: what the threads of a group may be, what a plan holds for, and what the planner chooses there.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "lower/lower.h"
#include "plan/planner.h"
#include "tests/subject.h"

namespace cosmati::plan {
namespace {

using testing::HasSubstr;

const Subject& of(const std::string& name) {
  static std::map<std::string, Subject> made;
  return made.try_emplace(name, load(name)).first->second;
}
const ir::Program& program_of(const std::string& name) { return of(name).instance->inlined; }

kernel::Kernel lowered(const std::string& name, const Mapping& mapping) {
  return kernel::expand(lower::lower(program_of(name), mapping, of(name).facts));
}

Plan planned(const std::string& name, std::int64_t rows, std::int64_t columns, const Knobs& fixed = {}) {
  const Planner planner(
      program_of(name), "text", target_named("cuda"), fixed, of(name).facts,
      [&](const Mapping& mapping) { return lowered(name, mapping); }, Planner::Search::all);
  kernel::Shape shape = of(name).shape;
  shape.extents = {rows, columns};
  for (auto& strides : shape.strides)
    if (strides.size() == 2) strides = {columns, 1};
  return planner.plan(shape);
}

std::string refusal_of(const Knobs& knobs) {
  const auto made = derive(program_of("softmax"), target_named("cuda"), knobs, of("softmax").facts);
  return made ? "none" : place::print(made.refused());
}

TEST(Threads, OfAGroupHaveLimits) {
  EXPECT_EQ(refusal_of({{"lanes", "1024"}}), "none");
  EXPECT_EQ(refusal_of({{"lanes", "352"}, {"packed", "2"}}), "none");
  EXPECT_THAT(refusal_of({{"lanes", "352"}, {"packed", "3"}}), HasSubstr("group_too_large"));
  EXPECT_THAT(refusal_of({{"lanes", "352"}, {"packed", "3"}}), HasSubstr("1056 workers, the limit is 1024"));
  EXPECT_THAT(refusal_of({{"lanes", "80"}}), HasSubstr("partial_subgroup"));
  EXPECT_THAT(refusal_of({{"lanes", "32"}, {"packed", "16"}}), HasSubstr("16 groups side by side, the limit is 15"));
  EXPECT_THAT(refusal_of({{"lanes", "1025"}}), HasSubstr("outside_values"));
  const auto on_cpu = derive(program_of("softmax"), target_named("cpu"), {{"lanes", "64"}}, of("softmax").facts);
  EXPECT_THAT(place::print(on_cpu.refused()), HasSubstr("64 lanes, the limit is 32"));
  const auto packed = derive(program_of("softmax"), target_named("cpu"), {{"packed", "2"}}, of("softmax").facts);
  EXPECT_THAT(place::print(packed.refused()), HasSubstr("the limit is 1"));
}

TEST(Threads, HoldWhatTheyCanHoldWhole) {
  EXPECT_EQ(refusal_of({{"resident", "col"}}), "none");
  EXPECT_THAT(refusal_of({{"resident", "row"}}), HasSubstr("not_whole"));
  EXPECT_THAT(refusal_of({{"resident", "nothing"}}), HasSubstr("names_nothing"));
  EXPECT_THAT(refusal_of({{"full.col", "1"}}), HasSubstr("col is not resident"));
  EXPECT_THAT(refusal_of({{"resident", "col"}, {"tile.col", "4"}, {"full.col", "5"}}), HasSubstr("5 of 4 copies"));
}

TEST(Threads, OfAPlanAreForTheExtentsThatItSays) {
  const Knobs knobs = {{"lanes", "64"}, {"resident", "col"}, {"tile.col", "4"}, {"full.col", "3"}};
  const Plan plan = make_plan(program_of("softmax"), "text", target_named("cuda"), knobs, of("softmax").facts);
  const auto conditions = domain(program_of("softmax"), plan);
  EXPECT_THAT(conditions, testing::IsSupersetOf({"col has at least 192", "col has at most 256"}));
  const kernel::Kernel k = lowered("softmax", plan.mapping);
  for (const auto& [columns, holds] : {std::pair{191, false}, {192, true}, {256, true}, {257, false}}) {
    kernel::Shape shape = of("softmax").shape;
    shape.extents = {3, columns};
    EXPECT_EQ(kernel::meets_conditions(k, kernel::params_of(k, shape)), holds) << columns;
  }
}

// One fence for each exchange between subgroups, and none where there is one subgroup.
TEST(Threads, MeetOnceForEachReduction) {
  const auto fences = [](const Knobs& knobs) {
    const Plan plan = make_plan(program_of("softmax"), "text", target_named("cuda"), knobs, of("softmax").facts);
    const std::string text = kernel::print(lowered("softmax", plan.mapping));
    int count = 0;
    for (std::size_t at = 0; (at = text.find("    fence\n", at)) != text.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(fences({{"lanes", "256"}, {"resident", "col"}, {"tile.col", "16"}}), 2);
  EXPECT_EQ(fences({{"lanes", "96"}}), 2);
  EXPECT_EQ(fences({{"lanes", "32"}, {"resident", "col"}}), 0);
}

// Rows of several subgroups share no thread group: it was never faster where that was measured.
TEST(Threads, OfTheChosenPlanHoldTheRow) {
  for (const char* name : {"softmax", "rms_norm", "layer_norm"})
    for (const auto& [rows, columns] :
         {std::pair{37, 1537}, {256, 3072}, {768, 6144}, {1024, 4096}, {32768, 1024}, {65536, 256}}) {
      const Plan plan = planned(name, rows, columns);
      EXPECT_EQ(plan.knobs.at("resident"), "col") << name << " " << rows << "x" << columns;
      const int lanes = std::stoi(plan.knobs.at("lanes"));
      const int side = plan.knobs.contains("vector.col") ? std::stoi(plan.knobs.at("vector.col")) : 1;
      EXPECT_EQ(side, columns % 4 == 0 ? 4 : 1) << name << " " << rows << "x" << columns;
      EXPECT_GE(lanes * side * std::stoi(plan.knobs.at("tile.col")), columns);
      EXPECT_TRUE(lanes == 32 || plan.mapping.packed == 1) << name << " " << rows << "x" << columns;
    }
  EXPECT_EQ(planned("softmax", 65536, 256).mapping.packed, 4);
  EXPECT_FALSE(planned("softmax", 64, 262144).knobs.contains("resident"));
}

// Whole vectors, from where they can be read at once; else one element at a time.
TEST(Threads, HaveNeighboursSideBySideWhereTheyCan) {
  const Knobs knobs = {{"lanes", "64"}, {"vector.col", "4"}};
  const Plan plan = make_plan(program_of("softmax"), "text", target_named("cuda"), knobs, of("softmax").facts);
  EXPECT_THAT(
      domain(program_of("softmax"), plan),
      testing::IsSupersetOf({"col is a multiple of 4", "arrays along col begin at multiples of 16 bytes, and so do their rows"}));
  const kernel::Kernel k = lowered("softmax", plan.mapping);
  const auto holds = [&](std::int64_t columns, std::int64_t stride, std::vector<bool> unaligned) {
    kernel::Shape shape = of("softmax").shape;
    shape.extents = {3, columns};
    shape.strides = {{stride, 1}, {stride, 1}};
    shape.unaligned = std::move(unaligned);
    return kernel::meets_conditions(k, kernel::params_of(k, shape));
  };
  EXPECT_TRUE(holds(44, 44, {false, false}));
  EXPECT_TRUE(holds(44, 48, {}));
  EXPECT_FALSE(holds(42, 44, {false, false}));
  EXPECT_FALSE(holds(44, 46, {false, false}));
  EXPECT_FALSE(holds(44, 44, {true, false}));
  EXPECT_FALSE(holds(44, 44, {false, true}));
  EXPECT_THAT(refusal_of({{"vector.col", "32"}}), HasSubstr("outside_values"));
  EXPECT_THAT(refusal_of({{"vector.col", "16"}, {"tile.col", "8"}}), HasSubstr("128 of col"));
  EXPECT_THAT(refusal_of({{"vector.row", "4"}}), HasSubstr("not_on_lanes"));
  EXPECT_THAT(refusal_of({{"resident", "col"}, {"vector.col", "4"}, {"tile.col", "2"}, {"full.col", "6"}}),
              HasSubstr("6 of 8 copies, 4 side by side"));
}

TEST(Threads, KeepWhatIsFixed) {
  const Plan plan = planned("softmax", 1024, 4096, {{"lanes", "512"}});
  EXPECT_EQ(plan.knobs.at("lanes"), "512");
}

}  // namespace
}  // namespace cosmati::plan
