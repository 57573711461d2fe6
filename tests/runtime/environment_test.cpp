// The environment that plans carry, the files of the cache directory, and the knobs that a program has.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/runtime/fixture.h"

namespace cosmati {
namespace {

using nlohmann::json;
using test::doubled;
using test::Logged;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class PlanOfElsewhere : public testing::Test {
 protected:
  std::vector<float> x_ = test::counted(6), y_ = std::vector<float>(6);
  Arguments arguments_ = {{"x", view(x_, {2, 3})}, {"y", view(y_, {2, 3})}};

  // The warnings of a run that replays a plan with this environment.
  std::vector<std::string> warnings(const json& environment) {
    const Logged logged;
    Options options = test::uncached();
    json plan = json::parse(Function(doubled(), Device::sim(), options).plan(arguments_));
    plan["environment"] = environment;
    options.plan = plan.dump(-1, ' ', false, json::error_handler_t::ignore);
    y_.assign(6, 0);
    Function(doubled(), Device::sim(), options)(arguments_);
    EXPECT_EQ(y_, (std::vector<float>{0, 2, 4, 6, 8, 10}));
    return logged.warnings();
  }
};

TEST_F(PlanOfElsewhere, IsUsedWithAWarningThatNamesTheDifference) {
  const json here = json::parse(environment());
  EXPECT_TRUE(warnings(here).empty());
  json other = here;
  other["processor"] = "another one";
  EXPECT_THAT(warnings(other), ElementsAre(HasSubstr("another environment: processor \"another one\", here \"")));
  other = here;
  other["cores"] = 1000;
  EXPECT_THAT(warnings(other), ElementsAre(HasSubstr("cores 1000, here ")));
  other = here;
  other["library"] = "0.0.1";
  EXPECT_THAT(warnings(other), ElementsAre(HasSubstr("library \"0.0.1\", here ")));
}

TEST_F(PlanOfElsewhere, AnyEnvironmentIsSurvived) {
  json deep = 1;
  for (int i = 0; i < 8; ++i) deep = json::array({deep});
  for (const json& odd :
       {json(), json(3), json("text"), json::array(), json::object(), json{{"processor", deep}}, json{{"cores", {}}}})
    EXPECT_THAT(warnings(odd), ElementsAre(HasSubstr(" unknown, here ")));
}

TEST(Environment, SaysWhatDecidesSpeed) {
  const json here = json::parse(environment());
  EXPECT_FALSE(here.at("processor").get<std::string>().empty());
  EXPECT_GE(here.at("cores").get<int>(), 1);
  EXPECT_EQ(here.at("library"), version());
}

// Variables of the environment while this lives; null: unset.
class Variables {
 public:
  explicit Variables(const std::map<std::string, const char*>& set) {
    for (const auto& [name, value] : set) {
      const char* before = std::getenv(name.c_str());
      before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
      value ? ::setenv(name.c_str(), value, 1) : ::unsetenv(name.c_str());
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(ProfileFile, LiesInTheCacheDirectory) {
  {
    const Variables v({{"COSMATI_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}});
    EXPECT_THAT(profile_file(), StartsWith("/a/profile-cpu-"));
  }
  {
    const Variables v({{"COSMATI_CACHE_DIR", nullptr}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}});
    EXPECT_THAT(profile_file(), StartsWith("/b/cosmati/profile-cpu-"));
  }
  {
    const Variables v({{"COSMATI_CACHE_DIR", nullptr}, {"XDG_CACHE_HOME", "relative"}, {"HOME", "/c"}});
    EXPECT_THAT(profile_file(), StartsWith("/c/.cache/cosmati/profile-cpu-"));
  }
  {
    const Variables v({{"COSMATI_CACHE_DIR", ""}, {"HOME", "/c"}});
    EXPECT_EQ(profile_file(), "");
  }
  const Variables v({{"COSMATI_CACHE_DIR", nullptr}, {"XDG_CACHE_HOME", nullptr}, {"HOME", nullptr}});
  EXPECT_EQ(profile_file(), "");
}

// ---- knobs ------------------------------------------------------------------------------------------------------------------
Arguments shapes_of(const std::string& name) {
  const auto array = [](std::vector<std::int64_t> shape) { return TensorView(nullptr, DType::f32_, std::move(shape)); };
  if (name == "matmul") return {{"a", array({4, 8})}, {"b", array({8, 16})}};
  if (name == "attention") return {{"q", array({1, 2, 3, 4})}, {"k", array({1, 2, 5, 4})}, {"v", array({1, 2, 5, 6})}};
  if (name == "layer_norm") return {{"x", array({4, 32})}, {"gamma", array({32})}, {"beta", array({32})}};
  return {{"x", array({4, 32})}};
}

class KnobsOf : public testing::TestWithParam<const char*> {};

TEST_P(KnobsOf, AreLegalAlone) {
  const Program p = load(GetParam());
  const Arguments arguments = shapes_of(GetParam());
  const auto choices = Function(p, Device::sim(), test::uncached()).knobs(arguments);
  EXPECT_FALSE(choices.empty());
  const auto plan = [&](std::map<std::string, std::string> knobs) {
    Options options = test::uncached();
    options.knobs = std::move(knobs);
    return json::parse(Function(p, Device::sim(), options).plan(arguments))["mapping"];
  };
  for (const auto& choice : choices) {
    EXPECT_GT(choice.values.size(), 1u) << choice.knob;
    if (choice.automatic) {
      EXPECT_EQ(plan({{choice.knob, *choice.automatic}}), plan({})) << choice.knob;
    }
    for (const std::string& value : choice.values) {
      if (choice.knob.starts_with("chunk.") && value != "1")
        EXPECT_NO_THROW(plan({{choice.knob, value}, {"lane_axes", choice.knob.substr(6)}})) << choice.knob << "=" << value;
      else
        EXPECT_NO_THROW(plan({{choice.knob, value}})) << choice.knob << "=" << value;
    }
  }
}

TEST(Knobs, OfSoftmax) {
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& choice : Function(load("softmax"), Device::sim(), test::uncached()).knobs(shapes_of("softmax")))
    found[choice.knob] = choice.values;
  EXPECT_THAT(found["home.e"], ElementsAre("reload", "worker"));
  EXPECT_THAT(found["lane_axes"], ElementsAre("none", "row", "col"));
  EXPECT_THAT(found["lanes"], ElementsAre("1", "2", "4", "8", "16", "32"));
  EXPECT_TRUE(found.contains("tile.col"));
  EXPECT_TRUE(found.contains("chunk.row"));
  EXPECT_FALSE(found.contains("chunk.col"));  // no instances of their own
}

INSTANTIATE_TEST_SUITE_P(Shipped, KnobsOf, testing::Values("softmax", "layer_norm", "column_sums", "matmul", "attention", "sum"));

}  // namespace
}  // namespace cosmati
