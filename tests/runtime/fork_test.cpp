// A forked child goes on with the functions, kernels and devices of its parent, whatever other threads of the parent were doing.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/fixture.h"

#if defined(__SANITIZE_THREAD__)
#define COSMATI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COSMATI_TSAN 1
#endif
#endif

#ifndef COSMATI_TSAN  // ThreadSanitizer refuses threads in a forked child
namespace cosmati::test {
namespace {

constexpr std::int64_t rows = 64, columns = 4000;  // enough to be cut into tasks

// The exit status of a child that runs `body`, which says whether all was well; it is killed after half a minute.
int status_of_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool doubles(const Function& f) {
  std::vector<float> x = counted(rows * columns), y(x.size());
  f(view(x, {rows, columns}), view(y, {rows, columns}));
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i] != 2 * x[i]) return false;
  return true;
}

TEST(fork, a_child_runs_on_threads_of_its_own) {
  if (!has_cpu()) GTEST_SKIP() << "no cpu";
  const Function f(doubled(), Device::cpu(4), uncached());
  ASSERT_TRUE(doubles(f));
  EXPECT_EQ(status_of_child([&] { return doubles(f); }), 0);
  EXPECT_TRUE(doubles(f));
}

TEST(fork, a_child_compiles) {
  for (const Device& device : compiling_devices()) {
    ASSERT_TRUE(doubles(Function(doubled(), device, uncached())));
    EXPECT_EQ(status_of_child([&] { return doubles(Function(doubled(), device, uncached())); }), 0) << device.name();
  }
}

TEST(fork, calls_of_other_threads_leave_no_lock_behind) {
  if (!has_cpu()) GTEST_SKIP() << "no cpu";
  const Function f(doubled(), Device::cpu(2), uncached());
  ASSERT_TRUE(doubles(f));
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int t = 0; t < 2; ++t)
    busy.emplace_back([&, t] {
      std::vector<float> x = counted(8), y(8);
      for (std::int64_t n = 0; !stop; ++n) {  // known forms and new ones
        f(view(x, {2, 4}), view(y, {2, 4}));
        const std::int64_t width = 1 + (n + t) % 4;
        f(view(x, {2, width}), view(y, {2, width}));
      }
    });
  for (int round = 0; round < 60; ++round) EXPECT_EQ(status_of_child([&] { return doubles(f); }), 0);
  stop = true;
  for (std::thread& t : busy) t.join();
}

TEST(fork, a_kernel_in_the_making_is_made_again_by_the_child) {
  if (!has_cpu()) GTEST_SKIP() << "no cpu";
  const Function warmed(doubled(), Device::cpu(2), uncached());
  ASSERT_TRUE(doubles(warmed));
  std::atomic<bool> inside = false, go_on = false;
  // The log's callback runs in the middle of making a kernel: it stands for a compilation that takes long.
  set_log([&](LogLevel, const std::string&) {
    inside = true;
    while (!go_on) std::this_thread::yield();
  });
  const Function f(doubled(), Device::cpu(2), uncached());
  std::thread maker([&] { doubles(f); });
  while (!inside) std::this_thread::yield();
  EXPECT_EQ(status_of_child([&] {
              set_log({});
              return doubles(f);
            }),
            0);
  go_on = true;
  maker.join();
  set_log({});
  EXPECT_EQ(f.compiles(), 1u);
}

}  // namespace
}  // namespace cosmati::test
#endif
