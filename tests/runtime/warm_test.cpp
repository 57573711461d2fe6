// Kernels made ahead: in parallel, once each, with progress; and what happens where compiling is forbidden.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "runtime/fixture.h"

namespace cosmati::test {
namespace {

using testing::HasSubstr;

const Program& generic() {
  static const Program p =
      program("program scale<T: any>(in x: T[i, j], out y: T[i, j]) {\n parallel i, j { y[i, j] = x + x }\n}");
  return p;
}

// Shapes are enough; the output follows.
Arguments shaped(DType dtype, std::vector<std::int64_t> strides = {}) {
  return {{"x", TensorView(nullptr, dtype, {4, 8}, std::move(strides))}};
}

TEST(warm, makes_each_kernel_once_and_tells) {
  for (const Device& device : compiling_devices()) {
    const Function f(generic(), device, uncached());
    std::vector<WarmProgress> told;
    f.warm({shaped(f32), shaped(f64), shaped(f32), shaped(i32), shaped(f32, {100, 10})}, 4,
           [&](const WarmProgress& p) { told.push_back(p); });
    EXPECT_EQ(f.compiles(), 4u) << device.name();
    ASSERT_EQ(told.size(), 5u);
    std::size_t compiled = 0;
    for (std::size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].done, i + 1);
      EXPECT_EQ(told[i].total, 5u);
      EXPECT_EQ(told[i].kernel, "scale");
      compiled += told[i].compiled;
    }
    EXPECT_EQ(compiled, 4u);
    std::vector<float> x = counted(32), y(32);
    f(view(x, {4, 8}), view(y, {4, 8}));
    EXPECT_EQ(y[31], 62);
    EXPECT_EQ(f.compiles(), 4u) << "the call finds its kernel";
  }
}

TEST(warm, tries_every_set_and_throws_the_first_error) {
  const Function f(generic(), Device::sim());
  const Arguments wrong = {{"z", 1.0}};
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { f.warm({shaped(f32), wrong, shaped(f64), {}}, 2); }), HasSubstr("`z`"));
  EXPECT_EQ(f.compiles(), 2u);
  f.warm({});
  EXPECT_THROW(f.warm({}, -1), Error);
}

TEST(jit, forbidden_compilation_is_an_error_that_names_the_facts) {
  for (const Device& device : compiling_devices()) {
    Options options = uncached();
    options.jit = Jit::forbid;
    const Function f(generic(), device, options);
    std::vector<float> x(32), y(32, 5);
    const std::string call = refusal(ErrorCode::not_compiled, [&] { f(view(x, {4, 8}), view(y, {4, 8})); });
    EXPECT_THAT(call, HasSubstr("scale is not compiled"));
    EXPECT_THAT(call, HasSubstr("x: f32, 2 dimensions; stride(x, 1) == 1 or extent <= 1"));
    EXPECT_EQ(refusal(ErrorCode::not_compiled, [&] { f.warm({shaped(f32)}); }), call);
    EXPECT_EQ(refusal(ErrorCode::not_compiled, [&] { (void)f.prepare({{"x", view(x, {4, 8})}, {"y", view(y, {4, 8})}}); }), call);
    EXPECT_EQ(y[0], 5);
    EXPECT_EQ(f.compiles(), 0u);
    EXPECT_THAT(f.explain(shaped(f32)), HasSubstr("plan of scale")) << "planning is no compilation";
  }
}

TEST(threads, who_asks_for_a_kernel_in_the_making_waits_for_it) {
  for (const Device& device : compiling_devices()) {
    const Function f(generic(), device, uncached());
    std::vector<std::thread> threads;
    std::vector<int> wrong(8);
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        std::vector<float> x = counted(32, static_cast<float>(t)), y(32);
        for (int round = 0; round < 20; ++round) {
          f(view(x, {4, 8}), view(y, {4, 8}));
          for (int i = 0; i < 32; ++i) wrong[t] += y[i] != 2 * x[i];
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_THAT(wrong, testing::Each(0));
    EXPECT_EQ(f.compiles(), 1u) << device.name();
  }
}

TEST(threads, one_long_compilation_holds_up_nobody_but_who_needs_it) {
  for (const Device& device : compiling_devices()) {
    const Function f(generic(), device, uncached());
    std::promise<void> inside, go_on;
    std::atomic<bool> first = true;
    // The log's callback runs in the middle of making a kernel: it stands for a compilation that takes long.
    set_log([&](LogLevel, const std::string&) {
      if (!first.exchange(false)) return;
      inside.set_value();
      go_on.get_future().wait();
    });
    auto slow = std::async(std::launch::async, [&] { return f.kernel(shaped(f32)).impl(); });
    inside.get_future().wait();
    auto same = std::async(std::launch::async, [&] { return f.kernel(shaped(f32)).impl(); });
    (void)f.kernel(shaped(f64));
    (void)f.kernel(shaped(i32));
    EXPECT_EQ(f.compiles(), 3u) << "the slow one is counted, too";
    EXPECT_EQ(same.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    go_on.set_value();
    EXPECT_EQ(slow.get(), same.get());
    EXPECT_EQ(f.compiles(), 3u) << device.name();
    set_log({});
  }
}

// Programs of one name, each with its own factor.
Program named_alike(int factor) {
  return program("program same(in x: f32[i], out y: f32[i]) {\n parallel i { y[i] = x * " + std::to_string(factor) + " }\n}");
}

TEST(threads, sixteen_programs_of_one_name_keep_their_own_results) {
  for (const Device& device : compiling_devices()) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(16);
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        for (const int factor : {t + 2, 100}) {  // the last one is the same program everywhere
          const Function f(named_alike(factor), device, uncached());
          std::vector<float> x = counted(100), y(100);
          f(view(x, {100}), view(y, {100}));
          for (int i = 0; i < 100; ++i) wrong[t] += y[i] != static_cast<float>(factor) * x[i];
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_THAT(wrong, testing::Each(0)) << device.name();
  }
}

}  // namespace
}  // namespace cosmati::test
