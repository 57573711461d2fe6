// Outputs held against the oracle: once computed for many runs, the same as one by one; what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <gmock/gmock.h>

#include <limits>
#include <optional>

namespace cosmati {
namespace {

using testing::HasSubstr;

class JudgeTest : public testing::Test {
 protected:
  const Program program_ = parse(
                               "program f(in x: f32[row, col], out y: f32[row, col], inout n: i32[row], out s: f32[row]) {\n"
                               "  parallel row { e = exp(x); y[row, col] = e; n[row] = n + 1; s[row] = sum(e, col) }\n}")
                               .front();
  std::vector<float> x_ = std::vector<float>(6, 0.5f), y_ = std::vector<float>(6), s_ = std::vector<float>(2);
  std::vector<std::int32_t> n_ = {7, 8}, n_before_ = n_;

  Arguments with(std::vector<std::int32_t>& n) {
    return {{"x", view(x_, {2, 3})}, {"y", view(y_, {2, 3})}, {"n", view(n, {2})}, {"s", view(s_, {2})}};
  }
  Arguments before() { return with(n_before_); }
  Arguments after() { return with(n_); }
  static std::string refusal(const Judge& judge, const Arguments& arguments) {
    try {
      judge(arguments);
    } catch (const Error& e) {
      return e.what();
    }
    return "judged";
  }
};

TEST_F(JudgeTest, OneOracleJudgesManyRuns) {
  const Judge judge(program_, before());
  Function(program_, Device::sim())(after());
  for (const Judgement& j : judge(after())) EXPECT_TRUE(j.ok) << j.output;
  y_[4] += 1e-3f;
  n_[1] += 1;
  const std::vector<Judgement> found = judge(after()), one_by_one = cosmati::judge(program_, before(), after());
  ASSERT_EQ(found.size(), 3u);
  ASSERT_EQ(one_by_one.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].output, one_by_one[i].output);
    EXPECT_EQ(found[i].ok, one_by_one[i].ok);
    EXPECT_EQ(found[i].at, one_by_one[i].at);
    EXPECT_EQ(found[i].max_abs, one_by_one[i].max_abs);
    EXPECT_EQ(found[i].bound, one_by_one[i].bound);
  }
  EXPECT_EQ(found[0].at, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(found[1].at, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(found[1].expected, 9);
  EXPECT_TRUE(found[2].ok);
}

TEST_F(JudgeTest, TheResultsOutliveTheArguments) {
  std::optional<Judge> judge;
  {
    std::vector<float> gone(6, 0.5f);
    Arguments arguments = before();
    arguments[0].second = view(gone, {2, 3});
    judge.emplace(program_, arguments);
    gone.assign(6, std::numeric_limits<float>::quiet_NaN());
  }
  Function(program_, Device::sim())(after());
  for (const Judgement& j : (*judge)(after())) EXPECT_TRUE(j.ok) << j.output;
}

TEST_F(JudgeTest, OutputsOfAnotherFormAreRefused) {
  Arguments without = before();
  without.erase(without.begin() + 3);
  const Judge judge(program_, without);
  EXPECT_EQ(refusal(judge, after()), "judged");
  EXPECT_THAT(refusal(judge, without), HasSubstr("no array to judge for the output s"));
  Arguments wrong = after();
  wrong[1].second = view(y_, {3, 2});
  EXPECT_THAT(refusal(judge, wrong), HasSubstr("y is [3, 2], but f writes [2, 3]"));
  wrong[1].second = TensorView(y_.data(), DType::i32_, {2, 3});
  EXPECT_THAT(refusal(judge, wrong), HasSubstr("y is i32, but f writes f32"));
  wrong[1].second = TensorView(nullptr, DType::f32_, {2, 3});
  EXPECT_THAT(refusal(judge, wrong), HasSubstr("no array to judge for the output y"));
}

}  // namespace
}  // namespace cosmati
