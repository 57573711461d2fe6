// Who keeps what alive: functions, kernels and launches may die while another thread still runs them. And what a prepared launch
// leaves alone: the heap, and the floating-point control state.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

#include "runtime/fixture.h"

namespace {

thread_local bool counting = false;
std::atomic<int> allocations = 0;

}  // namespace

// Of this whole test binary; counted only where a test asks.
__attribute__((noinline)) void* operator new(std::size_t size) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size > 0 ? size : 1);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cosmati::test {
namespace {

// An executor that stops inside the first task until it is told to go on.
struct Gate {
  std::promise<void> entered, opened;
  std::atomic<bool> used = false;
  Executor executor() {
    return [this](int tasks, const std::function<void(int)>& task) {
      if (!used.exchange(true)) {
        entered.set_value();
        opened.get_future().wait();
      }
      for (int i = 0; i < tasks; ++i) task(i);
    };
  }
};

// Enough work to be cut into tasks.
constexpr std::int64_t rows = 64, columns = 4000;

class Alive : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_cpu()) GTEST_SKIP() << "no cpu";
  }
  std::vector<float> x_ = counted(rows * columns), y_ = std::vector<float>(rows * columns);
  Arguments arguments() { return {{"x", view(x_, {rows, columns})}, {"y", view(y_, {rows, columns})}}; }
  Gate gate_;
};

TEST_F(Alive, a_launch_may_be_destroyed_while_it_runs) {
  auto f = std::make_unique<Function>(doubled(), Device::cpu(gate_.executor(), 2), uncached());
  auto l = std::make_unique<Launch>(f->prepare(arguments()));
  std::thread runner([launch = l.get()] { (*launch)(); });
  gate_.entered.get_future().wait();
  f.reset();
  l.reset();
  gate_.opened.set_value();
  runner.join();
  EXPECT_EQ(y_.back(), 2 * x_.back());
}

TEST_F(Alive, a_function_may_be_destroyed_while_it_is_called) {
  auto f = std::make_unique<Function>(doubled(), Device::cpu(gate_.executor(), 2), uncached());
  std::thread runner([this, function = f.get()] { (*function)(arguments()); });
  gate_.entered.get_future().wait();
  f.reset();
  gate_.opened.set_value();
  runner.join();
  EXPECT_EQ(y_.back(), 2 * x_.back());
}

TEST_F(Alive, a_kernel_outlives_its_function_and_launch) {
  std::optional<Kernel> k;
  {
    const Function f(doubled(), Device::cpu(), uncached());
    k = f.prepare(arguments()).kernel();
  }
  EXPECT_EQ(k->name(), "doubled");
  EXPECT_THAT(k->explain(), testing::HasSubstr("plan of doubled"));
}

TEST_F(Alive, an_executor_of_the_caller_runs_the_tasks_of_a_stream) {
  std::atomic<int> calls = 0, tasks = 0;
  const Device device = Device::cpu(3);
  const Stream s = device.adopt([&](int count, const std::function<void(int)>& task) {
    ++calls;
    tasks += count;
    for (int i = count; i-- > 0;) task(i);  // any order
  });
  const Function f(doubled(), device, uncached());
  const Launch l = f.prepare(arguments());
  l(s);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(tasks, 3) << "as many as the device has threads";
  EXPECT_EQ(y_.back(), 2 * x_.back());
  l();
  EXPECT_EQ(calls, 1) << "not on the stream";
}

TEST_F(Alive, an_exception_of_the_executor_ends_the_launch) {
  const Device device = Device::cpu(2);
  const Stream s = device.adopt([](int, const std::function<void(int)>&) { throw std::runtime_error("shutting down"); });
  const Launch l = Function(doubled(), device, uncached()).prepare(arguments());
  EXPECT_THROW(l(s), std::runtime_error);
  l();
  EXPECT_EQ(y_.back(), 2 * x_.back());
}

TEST_F(Alive, a_prepared_launch_allocates_nothing) {
  Options options = uncached();
  options.knobs["home.m"] = "worker";
  const Program p = program(
      "program f(in x: f32[i, j], out y: f32[i, j], k: f32 = 1) {\n parallel i {\n  m = x * k - max(x, j)\n"
      "  y[i, j] = m - sum(m, j)\n }\n}");
  const Function f(p, Device::cpu(2), options);
  const Launch l = f.prepare(arguments());
  ASSERT_GT(l.scratch_bytes(), 0u);
  const Stream s = Device::cpu(2).adopt([](int tasks, const std::function<void(int)>& task) {
    for (int i = 0; i < tasks; ++i) task(i);
  });
  l();
  allocations = 0;
  counting = true;
  l();
  l(s);
  counting = false;
  EXPECT_EQ(allocations, 0);
}

TEST_F(Alive, the_floating_point_state_of_the_caller_stays_and_changes_no_result) {
  const Program p = program("program third(in x: f32[i], out y: f32[i]) {\n parallel i { y[i] = x / 3 }\n}");
  std::vector<float> x = {1, 2, 5}, y(3), upward(3);
  const Function f(p, Device::cpu(), uncached());
  f(view(x, {3}), view(y, {3}));
  const Launch l = f.prepare({{"x", view(x, {3})}, {"y", view(upward, {3})}});
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  l();
  const int mode = std::fegetround(), raised = std::fetestexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(mode, FE_UPWARD);
  EXPECT_EQ(raised, 0);
  EXPECT_EQ(upward, y);
}

TEST(scratch, goes_back_to_the_device_and_is_not_shared_while_in_use) {
  if (!has_cpu()) GTEST_SKIP() << "no cpu";
  Options options = uncached();
  options.knobs["home.m"] = "worker";
  const Program p =
      program("program f(in x: f32[i, j], out y: f32[i, j]) {\n parallel i {\n  m = x + 1\n  y[i, j] = m - sum(m, j)\n }\n}");
  const Function f(p, Device::cpu(2), options);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x(4 * 50, static_cast<float>(t)), y(x.size());
      for (int round = 0; round < 200; ++round) {
        f(view(x, {4, 50}), view(y, {4, 50}));
        for (const float v : y) wrong += v != static_cast<float>((t + 1) * (1 - 50));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(buffer, holds_arrays_of_a_device) {
  const Device device = Device::sim();
  Buffer b = device.allocate(24 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % 64, 0u);
  EXPECT_EQ(b.bytes(), 96u);
  TensorView x = b.view(f32, {3, 4}), y = b.view(f32, {2, 3, 4});
  EXPECT_EQ(x.data, b.data());
  EXPECT_EQ(y.elements(), 24);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { b.view(f32, {5, 5}); }), testing::HasSubstr("[5, 5]"));
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { (void)device.allocate(~std::size_t{0}); }), testing::HasSubstr("memory"));
  const Buffer moved = std::move(b);
  EXPECT_EQ(moved.data(), x.data);
  static_assert(!std::is_copy_constructible_v<Buffer>);
}

TEST(view, knows_the_elements_it_may_reach) {
  std::vector<float> a(6);
  const std::vector<std::int16_t> c(6);
  double d[4] = {};
  EXPECT_EQ(view(a, {2, 3}).dtype, f32);
  EXPECT_TRUE(view(c, {6}).read_only);
  EXPECT_EQ(view(c, {6}).dtype, i16);
  EXPECT_EQ(view(d, {2, 2}).dtype, f64);
  EXPECT_EQ(view(a, {2, 2}, {3, 2}).strides[1], 2);
  EXPECT_EQ(view(a, {0, 100}).elements(), 0);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { view(a, {7}); }),
              testing::HasSubstr("[7] reaches outside of an array of 6"));
  EXPECT_THROW(view(a, {2, 3}, {4, 1}), Error);
  EXPECT_THROW(view(a, {2}, {-1}), Error);
  EXPECT_THROW(view(a, {1l << 62, 1l << 62}), Error);
}

TEST(device, an_absent_gpu_is_a_clear_error) {
  EXPECT_THAT(refusal(ErrorCode::backend_absent, [] { Device::cuda(1000); }), testing::HasSubstr("cuda:1000 is not available"));
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [] { (void)Device::sim().adopt(nullptr); }), testing::HasSubstr("driver streams"));
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [] { (void)Device::sim().adopt([](int, const std::function<void(int)>&) {}); }),
              testing::HasSubstr("executor"));
  if (has_cpu()) {
    EXPECT_THROW(Device::cpu(-1), Error);
    EXPECT_THROW((void)Device::cpu().adopt(Executor{}), Error);
  }
}

}  // namespace
}  // namespace cosmati::test
