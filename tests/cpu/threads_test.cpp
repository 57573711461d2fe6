// Many threads: compiling, launching, running inside a task, and forking.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "backends/native/pool.h"
#include "cpu/fixture.h"

namespace cosmati::test {
namespace {

// y[g] = x[g] * factor + (a loop of `length` that adds 1).
std::unique_ptr<kernel::Executable> scaled(std::int64_t factor, std::int64_t length, const cpu::Options& options = {}) {
  Kit k("scaled");
  const ParamId n = k.param("n");
  const BufferId x = k.argument("x", DType::i64_), y = k.out("y", DType::i64_);
  const VarId i = k.b.fresh("i", DType::i64_), a = k.b.fresh("a", DType::i64_), r = k.b.fresh("r", DType::i64_);
  Block body;
  // Reading x inside the loop keeps the sum from being folded.
  body.push_back(k.b.statement(kernel::For{
      i,
      k.b.integer(0),
      k.b.integer(length),
      {{a, r, k.b.apply(Op::mul, {k.b.load(x, k.b.group()), k.b.integer(factor)}),
        k.b.apply(Op::add, {k.b.var(a), k.b.apply(Op::sub, {k.b.apply(Op::add, {k.b.load(x, k.b.group()), k.b.integer(1)}),
                                                            k.b.load(x, k.b.group())})})}},
      {}}));
  k.b.store(body, y, k.b.group(), k.b.var(r));
  k.phase("main", k.b.param(n), body);
  return cpu::compile(k.kernel, options);
}

std::string wrong(const kernel::Executable& code, std::int64_t factor, std::int64_t length, std::int64_t n) {
  std::vector<ops::Scalar> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back({0, i - 7});
  Array in(DType::i64_, values), out(DType::i64_, n);
  code.run({{in.memory(), out.memory()}, {n}});
  for (std::int64_t i = 0; i < n; ++i)
    if (out[i].i != (i - 7) * factor + length) return "element " + std::to_string(i) + " is " + std::to_string(out[i].i);
  return "";
}

TEST(threads, sixteen_compile_and_run_at_once) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(16);
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([t, &failures] {
      for (int round = 0; round < 6 && failures[t].empty(); ++round) {
        const std::int64_t factor = 100 * t + round;
        failures[t] = wrong(*scaled(factor, 50, {.threads = 3}), factor, 50, 4000);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(threads, one_executable_serves_many_callers) {
  const auto code = scaled(5, 100, {.threads = 4});
  std::vector<std::thread> threads;
  std::vector<std::string> failures(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t, &failures, &code] {
      for (int round = 0; round < 50 && failures[t].empty(); ++round) failures[t] = wrong(*code, 5, 100, 1 + t * 500);
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(threads, freed_code_does_not_disturb_what_is_alive) {
  const auto kept = scaled(3, 4);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(wrong(*scaled(i, 4), i, 4, 10), "");
  EXPECT_EQ(wrong(*kept, 3, 4, 10), "");
}

TEST(pool, runs_every_task_once) {
  for (const int tasks : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> ran(tasks);
    native::pool_run(tasks, [&](int i) { ++ran[i]; });
    for (const auto& count : ran) ASSERT_EQ(count.load(), 1);
  }
}

TEST(pool, a_run_inside_a_task_is_inline) {
  std::atomic<int> sum = 0, elsewhere = 0;
  native::pool_run(8, [&](int) {
    const auto self = std::this_thread::get_id();
    native::pool_run(8, [&](int i) {
      sum += i;
      elsewhere += std::this_thread::get_id() != self;
    });
  });
  EXPECT_EQ(sum, 8 * 28);
  EXPECT_EQ(elsewhere, 0);
}

TEST(pool, threads_take_part_together_with_the_caller) {
  if (native::pool_size() < 2) GTEST_SKIP() << "one core";
  // Two tasks that wait for each other finish only on two threads.
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> arrived = 0;
    native::pool_run(2, [&](int) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

#if defined(__SANITIZE_THREAD__)
#define COSMATI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COSMATI_TSAN 1
#endif
#endif

#ifndef COSMATI_TSAN  // ThreadSanitizer refuses threads in a forked child
TEST(pool, a_forked_child_has_a_pool_of_its_own) {
  const auto code = scaled(5, 100, {.threads = 4});
  ASSERT_EQ(wrong(*code, 5, 100, 4000), "");
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> arrived = 0;
    if (native::pool_size() > 1)
      native::pool_run(2, [&](int) {
        ++arrived;
        while (arrived < 2) std::this_thread::yield();
      });
    _exit(wrong(*code, 5, 100, 4000).empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(wrong(*code, 5, 100, 4000), "");
}
#endif

}  // namespace
}  // namespace cosmati::test
