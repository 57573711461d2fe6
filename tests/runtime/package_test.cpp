// Packages in the process that wrote them: facts and domains, launches, lifetimes, threads.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/package.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/fixture.h"

namespace cosmati::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Packages : public testing::Test {
 protected:
  Packages() {
    std::string name = fs::temp_directory_path() / "cosmati_package.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Packages() override { fs::remove_all(folder_); }
  void SetUp() override {
    if (!has_cpu()) GTEST_SKIP() << "no compiler for this processor";
  }

  std::string at(const std::string& name) const { return folder_ / name; }
  Package made(const Program& program, const Arguments& arguments, const std::string& name, Options options = uncached()) const {
    Function(program, Device::cpu(), std::move(options)).package(arguments, at(name));
    return Package::open(at(name));
  }

  fs::path folder_;
};

Arguments of_doubled(const TensorView& x, const TensorView& y) { return {{"x", x}, {"y", y}}; }
TensorView shaped(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) {
  return TensorView(nullptr, f32, std::move(shape), std::move(strides));
}

TEST_F(Packages, TakeAnyExtentsInsideTheirDomain) {
  const Package p = made(doubled(), of_doubled(shaped({2, 2}), shaped({2, 2})), "p");
  EXPECT_EQ(p.kernel().name(), "doubled");
  EXPECT_EQ(p.kernel().domain(), Function(doubled(), Device::cpu()).facts(of_doubled(shaped({5, 7}), shaped({5, 7}))));
  for (const std::int64_t rows : {0, 1, 3, 100}) {
    std::vector<float> x = counted(static_cast<std::size_t>(rows) * 33), y(x.size());
    p(view(x, {rows, 33}), view(y, {rows, 33}));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]);
  }
  std::vector<float> x = counted(6), y(6);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { p(view(x, {2, 3}, {1, 2}), view(y, {2, 3})); }),
              HasSubstr("the package of doubled is for arguments where stride(x, 1) == 1 or extent <= 1"));
  EXPECT_EQ(y, std::vector<float>(6));
}

TEST_F(Packages, OfStridedArgumentsTakeAnyStrides) {
  const Package p = made(doubled(), of_doubled(shaped({2, 2}, {1, 2}), shaped({2, 2}, {4, 2})), "p");
  std::vector<float> x = counted(6), y(6);
  p(view(x, {2, 3}, {1, 2}), view(y, {2, 3}));
  EXPECT_EQ(y, (std::vector<float>{0, 4, 8, 2, 6, 10}));
}

TEST_F(Packages, OfArgumentsInPlaceAreForThose) {
  std::vector<float> x = counted(4), y(4);
  const Package apart = made(doubled(), of_doubled(view(x, {2, 2}), view(y, {2, 2})), "apart");
  const Package in_place = made(doubled(), of_doubled(view(x, {2, 2}), view(x, {2, 2})), "in_place");
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { apart(view(x, {2, 2}), view(x, {2, 2})); }),
              HasSubstr("y does not share memory with x"));
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { in_place(view(x, {2, 2}), view(y, {2, 2})); }), HasSubstr("y is exactly x"));
  refusal(ErrorCode::overlap, [&] { in_place(view(x, {1, 3}), TensorView(x.data() + 1, f32, {1, 3})); });
  in_place(view(x, {2, 2}), view(x, {2, 2}));
  EXPECT_EQ(x, (std::vector<float>{0, 2, 4, 6}));
}

TEST_F(Packages, ReplayPlansAndKnobs) {
  const Program sums = program("program sums(in x: f32[i, j], out y: f32[i]) {\n parallel i { y[i] = sum(x, j) }\n}");
  const Arguments arguments = {{"x", shaped({3, 3})}, {"y", shaped({3})}};
  Options options = uncached();
  options.knobs["lanes"] = "1";
  const Package p = made(sums, arguments, "p", options);
  EXPECT_EQ(p.kernel().plan(), Function(sums, Device::cpu(), options).plan(arguments));
  EXPECT_NE(p.kernel().plan(), Function(sums, Device::cpu(), uncached()).plan(arguments));
}

TEST_F(Packages, OfGenericProgramsHaveTheTypesTheyWereMadeFor) {
  const Package p =
      made(load("softmax"), {{"x", TensorView(nullptr, bf16, {2, 2})}, {"y", TensorView(nullptr, bf16, {2, 2})}}, "p");
  std::vector<std::uint16_t> x(6, 0x3f80), y(6);
  p(TensorView(x.data(), bf16, {2, 3}), TensorView(y.data(), bf16, {2, 3}));
  EXPECT_EQ(y, std::vector<std::uint16_t>(6, 0x3eab));
  std::vector<float> wide(6);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { p(view(wide, {2, 3}), view(wide, {2, 3})); }),
              HasSubstr("x is f32, but softmax takes bf16"));
}

TEST_F(Packages, LaunchesRebindAndOutliveTheirFilesAndHandles) {
  std::vector<float> x = counted(4), y(4), z(4);
  std::optional<Launch> launch;
  {
    const Package p = made(doubled(), of_doubled(shaped({2, 2}), shaped({2, 2})), "p");
    launch.emplace(p.prepare(of_doubled(view(x, {2, 2}), view(y, {2, 2}))));
  }
  fs::remove_all(at("p"));
  (*launch)();
  EXPECT_EQ(y, (std::vector<float>{0, 2, 4, 6}));
  launch->rebind("y", view(z, {2, 2}));
  (*launch)(Device::cpu().adopt([](int tasks, const std::function<void(int)>& task) {
    for (int i = 0; i < tasks; ++i) task(i);
  }));
  EXPECT_EQ(z, y);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { launch->rebind("x", view(x, {2, 2}, {1, 2})); }), HasSubstr("stride(x, 1)"));
}

TEST_F(Packages, AtOnePlaceAreNotTakenForEachOther) {
  const Package first = made(doubled(), of_doubled(shaped({2, 2}), shaped({2, 2})), "p");
  fs::remove_all(at("p"));
  const Program tripled = program("program doubled(in x: f32[i, j], out y: f32[i, j]) {\n parallel i, j { y[i, j] = x * 3 }\n}");
  const Package second = made(tripled, of_doubled(shaped({2, 2}), shaped({2, 2})), "p");
  EXPECT_NE(first.identity(), second.identity());
  refusal(ErrorCode::bad_file, [&] { first.require(second.identity()); });
  std::vector<float> x = {1}, y(1), z(1);
  first(view(x, {1, 1}), view(y, {1, 1}));
  second(view(x, {1, 1}), view(z, {1, 1}));
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(z[0], 3);
}

TEST_F(Packages, RunOnManyThreadsAtOnce) {
  const Package p = made(load("softmax"), {{"x", shaped({2, 2})}, {"y", shaped({2, 2})}}, "p");
  std::vector<std::thread> threads;
  for (std::int64_t t = 1; t <= 4; ++t)
    threads.emplace_back([&p, t] {
      std::vector<float> x(static_cast<std::size_t>(64 * t), 1), y(x.size());
      for (int i = 0; i < 20; ++i) p(view(x, {64, t}), view(y, {64, t}));
      for (const float value : y) ASSERT_FLOAT_EQ(value, 1 / static_cast<float>(t));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Packages, AreForTheProcessor) {
  const Arguments arguments = of_doubled(shaped({2, 2}), shaped({2, 2}));
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { Function(doubled(), Device::sim()).package(arguments, at("p")); }),
              HasSubstr("not packaged for the device sim"));
  made(doubled(), arguments, "p");
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { Package::open(at("p"), Device::oracle()); }), HasSubstr("do not run on"));
}

TEST_F(Packages, LeaveNothingBehindWhereTheyFail) {
  const Function f(doubled(), Device::cpu(), uncached());
  refusal(ErrorCode::extent_mismatch, [&] { f.package(of_doubled(shaped({2, 2}), shaped({2, 3})), at("p")); });
  std::ofstream(at("file")) << "mine";
  refusal(ErrorCode::bad_file, [&] { f.package(of_doubled(shaped({2, 2}), shaped({2, 2})), at("file")); });
  refusal(ErrorCode::bad_file, [&] { f.package(of_doubled(shaped({2, 2}), shaped({2, 2})), at("file/p")); });
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace cosmati::test
