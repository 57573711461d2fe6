// Every shipped program and every program of the language page under the planner's candidates, at small shapes with ragged tails:
// right by the rule of the language on the simulator and the CPU, and the same bits on both. A seeded sample of the candidates,
// or all of them where COSMATI_TEST_ALL is set. And plans replay: the same plan, the same code, the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "backends/registry.h"
#include "lower/lower.h"
#include "plan/choices.h"
#include "plan/planner.h"
#include "tests/subject.h"

namespace cosmati::plan {
namespace {

constexpr std::uint64_t seed = 4;
constexpr std::size_t sampled = 3;

bool has_cpu() {
  for (const backends::Backend& b : backends::list())
    if (b.name == "cpu") return b.present;
  return false;
}

// The candidates of the planner for it.
std::vector<Knobs> candidates_of(const Subject& subject) {
  const Planner planner(
      subject.instance->inlined, "text", example_target(), {{"lanes", "8"}}, subject.facts,
      [&](const Mapping& mapping) { return kernel::expand(lower::lower(subject.instance->inlined, mapping, subject.facts)); },
      Planner::Search::all);
  std::vector<Knobs> all;
  for (std::size_t i = 0; i < planner.size(); ++i) all.push_back(planner.knobs(i));
  return all;
}

std::string text_of(const Knobs& knobs) {
  std::string text;
  for (const auto& [knob, value] : knobs) text += " " + knob + "=" + value;
  return text;
}

Options options_of(const Knobs& knobs) {
  Options options;
  options.cache = "";
  options.knobs = {knobs.begin(), knobs.end()};
  return options;
}

// Exactly this candidate: knobs alone leave the rest to the planner of the device.
Options exactly(const Subject& subject, const Knobs& knobs, const std::string& device) {
  Options options = options_of({});
  const ir::Program& p = subject.instance->inlined;
  options.plan = to_json(p, make_plan(p, language::print(subject.instance->program), target_named(device), knobs, subject.facts));
  return options;
}

TEST(Candidates, EachIsRightOnEveryDevice) {
  std::mt19937_64 random(seed);
  const bool all = std::getenv("COSMATI_TEST_ALL") != nullptr;
  std::size_t ran = 0, programs = 0;
  for (const Subject& subject : subjects()) {
    const Program& program = subject.program;
    std::vector<Knobs> candidates = candidates_of(subject);
    std::shuffle(candidates.begin() + 1, candidates.end(), random);
    if (!all && candidates.size() > sampled) candidates.resize(sampled);
    ++programs;
    for (const Knobs& knobs : candidates) {
      ++ran;
      const auto simulated =
          subject.run(Function(program, Device::sim(), exactly(subject, knobs, "sim")), "on sim" + text_of(knobs));
      if (!has_cpu()) continue;
      const auto compiled =
          subject.run(Function(program, Device::cpu(2), exactly(subject, knobs, "cpu")), "on cpu" + text_of(knobs));
      EXPECT_EQ(simulated == compiled, true) << program.name() << text_of(knobs) << ": sim and cpu differ";
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(programs, 50u);
  EXPECT_GE(ran, programs * 2);
}

TEST(Candidates, APlanReplaysExactly) {
  const Device device = has_cpu() ? Device::cpu(2) : Device::sim();
  for (const Subject& subject : subjects()) {
    const Program& program = subject.program;
    library::OwnedInputs own = subject.before;
    const Arguments arguments = subject.arguments(own);
    const std::vector<Knobs> candidates = candidates_of(subject);
    const Function first(program, device, options_of(candidates[seed % candidates.size()]));
    Options replay = options_of({});
    replay.plan = first.plan(arguments);
    const Function second(program, device, replay);
    const auto replayed = [&](const Function& f) {
      auto json = nlohmann::json::parse(f.plan(arguments));
      return json["hash"].dump() + json["mapping"].dump() + json["knobs"].dump();
    };
    EXPECT_EQ(replayed(second), replayed(first)) << program.name();
    EXPECT_EQ(second.emit(arguments, "kernel"), first.emit(arguments, "kernel")) << program.name();
    EXPECT_EQ(subject.run(first, "planned") == subject.run(second, "replayed"), true) << program.name();
  }
}

// Whoever searches by measurement meets whatever the planner may choose, and every knob that there is.
TEST(Candidates, AllAreAmongTheChoicesOfWhoSearches) {
  std::set<std::string> rows;
  for (std::size_t i = 0; i < subjects().size(); i += 3) {
    const Subject& subject = subjects()[i];
    std::map<std::string, std::set<std::string>> values;
    for (const Choice& choice : choices(subject.instance->inlined, target_named("cuda"), subject.facts))
      rows.insert(choice.knob.substr(0, std::min(choice.knob.find('.'), choice.knob.size() - 1) + 1));
    for (const Choice& choice : choices(subject.instance->inlined, example_target(), subject.facts)) {
      values[choice.knob].insert(choice.values.begin(), choice.values.end());
      EXPECT_GE(choice.values.size(), 2u) << choice.knob;
      const std::size_t dot = choice.knob.find('.');
      rows.insert(dot == std::string::npos ? choice.knob : choice.knob.substr(0, dot + 1));
    }
    for (const Knobs& knobs : candidates_of(subject))
      for (const auto& [knob, value] : knobs)
        if (values.contains(knob))
          EXPECT_TRUE(values[knob].contains(value)) << subject.program.name() << " " << knob << "=" << value;
        else
          EXPECT_EQ(value, "1") << subject.program.name() << " " << knob << ": it is the only value that is legal";
  }
  const std::set<std::string> all = {
#define KNOB(name, values, documentation) #name,
#include <cosmati/knobs.def>
#undef KNOB
  };
  EXPECT_EQ(rows, all);
}

TEST(Candidates, APlanForAnotherProgramOrOutsideItsDomainIsRefused) {
  const Subject softmax(load("softmax")), other(load("log_softmax"));
  library::OwnedInputs own = softmax.before, others = other.before;
  Options replay = options_of({});
  replay.plan = Function(softmax.program, Device::sim(), options_of({})).plan(softmax.arguments(own));
  const auto refusal = [&](const Program& program, const Arguments& arguments) -> std::string {
    try {
      static_cast<void>(Function(program, Device::sim(), replay).plan(arguments));
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_plan);
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(other.program, other.arguments(others)), testing::HasSubstr("the plan's program is"));
  // Its domain: unit strides of the last dimensions.
  Arguments strided = softmax.arguments(own);
  TensorView& x = std::get<TensorView>(strided[0].second);
  x.shape = {3, 3}, x.strides = {6, 2};
  std::get<TensorView>(strided[1].second).shape = {3, 3};
  std::get<TensorView>(strided[1].second).strides = {3, 1};
  EXPECT_THAT(refusal(softmax.program, strided), testing::HasSubstr("stride(x, 1) == 1 or extent <= 1"));
  // Of the device that it was made for.
  if (has_cpu()) {
    EXPECT_THROW(static_cast<void>(Function(softmax.program, Device::cpu(), replay).plan(softmax.arguments(own))), Error);
  }
}

}  // namespace
}  // namespace cosmati::plan
