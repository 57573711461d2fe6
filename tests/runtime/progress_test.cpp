// Every device tells how much of a launch is done, and a judgement how much of both oracles.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace cosmati {
namespace {

class Told {
 public:
  Fraction teller() {
    return [this](double done) {
      const std::lock_guard lock(mutex_);
      all_.push_back(done);
    };
  }
  void expect_complete(std::size_t least) const {
    ASSERT_GE(all_.size(), least);
    EXPECT_GT(*std::min_element(all_.begin(), all_.end()), 0);
    EXPECT_LT(*std::min_element(all_.begin(), all_.end()), 0.5);
    EXPECT_GT(*std::max_element(all_.begin(), all_.end()), 0.95);
    EXPECT_LE(*std::max_element(all_.begin(), all_.end()), 1 + 1e-9);
  }

 private:
  std::mutex mutex_;
  std::vector<double> all_;
};

TEST(Progress, OfLaunchesAndJudgements) {
  const Program p = parse(
                        "program p(in x: f32[i, n], out y: f32[i], out a: i32[i], out z: f32[n]) {\n  parallel i {\n    y[i] = "
                        "sum(exp(x), n)\n    a[i] = argmax(x, n)\n    z[n] = sum(x, i)\n  }\n}\n")
                        .front();
  constexpr std::int64_t I = 2000, N = 64;
  std::vector<float> x(I * N, 0.5f), y(I), z(N);
  std::vector<std::int32_t> a(I);
  const Arguments arguments = {{"x", TensorView(x.data(), f32, {I, N})},
                               {"y", TensorView(y.data(), f32, {I})},
                               {"a", TensorView(a.data(), i32, {I})},
                               {"z", TensorView(z.data(), f32, {N})}};
  std::vector<Device> all = {Device::oracle(), Device::sim()};
  for (const DeviceInfo& d : devices())
    if (d.name == "cpu" && d.present) all.insert(all.end(), {Device::cpu(1), Device::cpu(3)});
  for (const Device& device : all) {
    SCOPED_TRACE(device.name());
    Told told;
    Function(p, device)(arguments, told.teller());
    told.expect_complete(4);
    EXPECT_NEAR(y[I - 1], N * std::exp(0.5), 1e-3);
    EXPECT_NEAR(z[N - 1], I * 0.5, 1e-3);
    std::fill(y.begin(), y.end(), 0.0f);
  }
  Function(p, Device::sim())(arguments);
  Told told;
  for (const Judgement& j : judge(p, arguments, arguments, told.teller())) EXPECT_TRUE(j.ok) << j.output;
  told.expect_complete(8);
}

}  // namespace
}  // namespace cosmati
