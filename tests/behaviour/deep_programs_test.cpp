// The deepest programs that a text or a capture may be, from threads with a small stack: parsed, printed, checked, planned,
// emitted, packaged and run. A deeper one is an Error. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>

#include <exception>
#include <filesystem>
#include <functional>

#include <cosmati/dsl.h>
#include <cosmati/package.h>
#include <cosmati/runtime.h>

#include <fmt/format.h>

namespace cosmati {
namespace {

// body() on a thread that has as little stack as some systems give every thread.
void on_small_stack(const std::function<void()>& body) {
  struct Call {
    const std::function<void()>& body;
    std::exception_ptr failure;
  } call{body, {}};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 512 * 1024), 0);
  const auto run = [](void* data) -> void* {
    auto& c = *static_cast<Call*>(data);
    try {
      c.body();
    } catch (...) {
      c.failure = std::current_exception();
    }
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (call.failure) std::rethrow_exception(call.failure);
}

std::vector<Device> present() {
  std::vector<Device> all;
  for (const DeviceInfo& info : devices())
    if (info.present && info.name != "cuda") all.push_back(Device::named(info.name));
  return all;
}

// y of x = 1, 2, 3 on every device.
void expect_on_every_device(const Program& program, const std::vector<float>& y) {
  for (const Device& device : present()) {
    std::vector<float> x{1, 2, 3}, got(3);
    Function(program, device, Options{.cache = ""})({{"x", view(x, {1, 3})}, {"y", view(got, {1, 3})}});
    EXPECT_EQ(got, y) << device.name();
  }
}

// a0 = x, then `step` again and again, where {0} is the name before and {1} the next one.
std::string chain(int links, const std::string& step, const std::string& head = "", const std::string& value = "{}") {
  std::string text = "program deep(in x: f32[i, n], out y: f32[i, n]) {\n" + head + "  parallel i {\n    a0 = x\n";
  for (int k = 0; k < links; ++k)
    text += fmt::format("    a{} = {}\n", k + 1, fmt::format(fmt::runtime(step), fmt::format("a{}", k)));
  return text + fmt::format("    y[i, n] = {}\n  }}\n}}\n", fmt::format(fmt::runtime(value), fmt::format("a{}", links)));
}

TEST(DeepPrograms, ChainsOfNamedOperations) {
  on_small_stack([] {
    expect_on_every_device(parse(chain(990, "{} + 1"))[0], {991, 992, 993});
    expect_on_every_device(parse(chain(450, "where({0} > 2, {0} + 1, x + 2)"))[0], {452, 453, 453});
    expect_on_every_device(parse(chain(200, "{}[n := extent(n) - 1 - n] + 1"))[0], {201, 202, 203});
    expect_on_every_device(parse(chain(330, "x[i, clamp(i64({}), 0, 2)] else 0"))[0], {3, 3, 3});
  });
}

TEST(DeepPrograms, OneExpressionAsDeepAsAFileMayNest) {
  std::string right = "x", left = "x";
  for (int k = 0; k < 190; ++k) right = "(x + " + right + ")";
  for (int k = 0; k < 490; ++k) left += " + x";
  on_small_stack([&] {
    expect_on_every_device(parse(chain(0, "", "", right))[0], {191, 382, 573});
    expect_on_every_device(parse(chain(0, "", "", left))[0], {491, 982, 1473});
  });
}

TEST(DeepPrograms, ConditionsAndRangesOfALaunch) {
  std::string lets = "  r0 = extent(n)\n";
  for (int k = 0; k < 900; ++k) lets += fmt::format("  r{} = r{} + extent(i)\n", k + 1, k);
  on_small_stack([&] {
    expect_on_every_device(
        parse(chain(1, "{}", lets + "  require r900 > 0\n  axis t = r900\n", "{} + sum(f32(1 + 0 * t), t)"))[0], {904, 905, 906});
  });
}

TEST(DeepPrograms, ValuesOfALaunchThatAreUsedTwiceAreComputedOnce) {
  std::string lets = "  r0 = extent(n)\n";
  for (int k = 0; k < 60; ++k) lets += fmt::format("  r{0} = r{1} // 2 + r{1} // 3\n", k + 1, k);
  check(parse(chain(1, "{} + 1", lets + "  axis t = r60 + extent(n)\n", "{} + sum(f32(t), t)"))[0]);
}

const Program captured = program("captured", [] {
  Axis i{"i"}, n{"n"};
  auto x = input<f32>("x", {i, n});
  auto y = output<f32>("y", {i, n});
  parallel(i, [&] {
    Tile v = x;
    for (int k = 0; k < 990; ++k) v = Tile(v + 1);
    y(i, n) = v;
  });
});

TEST(DeepPrograms, Captures) {
  on_small_stack([] { expect_on_every_device(captured, {991, 992, 993}); });
}

TEST(DeepPrograms, ACaptureWithoutEndIsRefused) {
  int line = 0;
  const Program endless = program("endless", [&] {
    Axis i{"i"}, n{"n"};
    auto x = input<f32>("x", {i, n});
    auto y = output<f32>("y", {i, n});
    parallel(i, [&] {
      Tile v = x;
      for (int k = 0; k < 100000; ++k) v = Tile(v + 1), line = __LINE__;
      y(i, n) = v;
    });
  });
  on_small_stack([&] {
    try {
      print(endless, {}, {});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::not_supported);
      EXPECT_EQ(e.message, "a value depends on more than 1000 operations in a row");
      EXPECT_EQ(e.where.line, line);
    }
  });
}

TEST(DeepPrograms, QuestionsAboutThem) {
  const Program program = parse(chain(990, "{} + 1"))[0];
  std::vector<float> x{1, 2, 3}, y(3);
  const Arguments arguments{{"x", view(x, {1, 3})}, {"y", view(y, {1, 3})}};
  on_small_stack([&] {
    EXPECT_EQ(print(program, {}, {}), print(parse(print(program, {}, {}))[0], {}, {}));
    check(program);
    for (const Device& device : present()) {
      const Function f(program, device, Options{.cache = ""});
      EXPECT_NE(f.explain(arguments), "");
      EXPECT_NE(f.plan(arguments), "");
      for (const std::string as : {"tile", "kernel", "cuda", "llvm", "asm"})
        if (device.name() == "cpu" || (as != "llvm" && as != "asm")) {
          EXPECT_NE(f.emit(arguments, as), "");
        }
      f.warm({arguments}, 2);
      f(arguments);
      for (const Judgement& judgement : judge(program, arguments, arguments)) EXPECT_TRUE(judgement.ok) << device.name();
      if (device.name() != "cpu") continue;
      const std::string folder = fmt::format("deep_{}.package", ::getpid());
      f.package(arguments, folder);
      std::vector<float> packaged(3);
      Package::open(folder)({{"x", view(x, {1, 3})}, {"y", view(packaged, {1, 3})}});
      std::filesystem::remove_all(folder);
      EXPECT_EQ(packaged, y);
    }
  });
}

}  // namespace
}  // namespace cosmati
