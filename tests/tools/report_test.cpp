// What the tool prints: summaries, exit codes, JSON, progress lines; and the timing beside a copy.
// SPDX-License-Identifier: Apache-2.0
#include "tools/report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tools/copy.h"
#include "tools/progress.h"

namespace cosmati::tools {
namespace {

using testing::HasSubstr;

TEST(Report, SummaryLeavesNanOut) {
  float data[] = {1, std::nanf(""), -3, 8};
  const Summary s = summarise(TensorView(data, DType::f32_, {2, 2}));
  EXPECT_EQ(s.min, -3);
  EXPECT_EQ(s.max, 8);
  EXPECT_EQ(s.mean, 2);
  EXPECT_EQ(s.nan, 1);
  const Summary empty = summarise(TensorView(nullptr, DType::f32_, {0, 4}));
  EXPECT_TRUE(std::isnan(empty.min) && std::isnan(empty.max) && std::isnan(empty.mean));
}

template <class Problem>
std::pair<int, std::string> reported(Problem problem) {
  Report report(true);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  report.error(std::make_exception_ptr(problem));
  const int code = report.finish();
  testing::internal::GetCapturedStderr();
  return {code, testing::internal::GetCapturedStdout()};
}

TEST(Report, ErrorsBecomeExitCodesAndJson) {
  const auto [code, text] = reported(Error(ErrorCode::out_of_bounds, {"a.tile", 3, 7}, "leaves", "else 0", "from here"));
  EXPECT_EQ(code, wrong_input);
  const auto object = nlohmann::json::parse(text);
  EXPECT_EQ(object["schema"], 1);
  EXPECT_EQ(object["ok"], false);
  EXPECT_EQ(object["errors"][0], nlohmann::json({{"code", "out_of_bounds"},
                                                 {"file", "a.tile"},
                                                 {"line", 3},
                                                 {"column", 7},
                                                 {"what", "leaves"},
                                                 {"origin", "from here"},
                                                 {"hint", "else 0"}}));
  EXPECT_EQ(reported(Error(ErrorCode::backend_absent, {}, "no")).first, no_backend);
  EXPECT_EQ(reported(InternalError("broken")).first, internal_error);
  EXPECT_EQ(reported(std::bad_alloc()).first, wrong_input);
}

TEST(Report, TextThatIsNotUtf8StaysJson) {
  const auto [code, text] = reported(Error(ErrorCode::syntax, {"\xff.tile", 1, 1}, "\xc3("));
  EXPECT_EQ(code, wrong_input);
  EXPECT_NO_THROW(nlohmann::json::parse(text));
}

TEST(Report, NumbersOutsideJsonAreStrings) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number(0.5).dump(), "0.5");
  EXPECT_EQ(number(-inf).dump(), "\"-inf\"");
  EXPECT_EQ(number(inf - inf).dump(), "\"nan\"");
}

TEST(Progress, LinesSayWhatIsLeft) {
  EXPECT_EQ(progress_line("x", 2, 0.25, 0), "cosmati: x: 2 s, 25% done, about 6 s left");
  EXPECT_EQ(progress_line("x", 2, 0, 10), "cosmati: x: 2 s, about 8 s left");
  EXPECT_EQ(progress_line("x", 20, 0, 10), "cosmati: x: 20 s, nearly done");
  EXPECT_EQ(progress_line("x", 3, 0, 0), "cosmati: x: 3 s");
  EXPECT_EQ(human_seconds(200), "3 min 20 s");
}

TEST(Progress, ShortWorkPrintsNothing) {
  testing::internal::CaptureStderr();
  {
    Progress progress("x");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, LongWorkPrints) {
  testing::internal::CaptureStderr();
  {
    Progress progress("x", 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cosmati: x: "));
}

TEST(Copy, TimesBothSides) {
  int calls = 0;
  const Timing t = time_beside_copy(
      [&] {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
      },
      1 << 20);
  EXPECT_EQ(calls, t.rounds);
  EXPECT_GE(t.rounds, 5);
  EXPECT_GE(t.ours_us, 40e3);
  EXPECT_GT(t.copy_us, 0);
  EXPECT_LT(t.copy_us, 40e3);
  EXPECT_EQ(time_beside_copy([] {}, 0).rounds, 101);
}

}  // namespace
}  // namespace cosmati::tools
