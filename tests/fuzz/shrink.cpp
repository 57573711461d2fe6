// Isolation and shrinking of failing cases.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/shrink.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COSMATI_SANITIZED 1
#elif defined(__has_feature)
#define COSMATI_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define COSMATI_SANITIZED 0
#endif

namespace cosmati::fuzz {
namespace {

struct Report {
  bool failed;
  char kind[200], detail[8000];
  Counts counts;
};

void copy(char* to, std::size_t room, const std::string& from) {
  const std::size_t n = std::min(room - 1, from.size());
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}

}  // namespace

void limit_memory() {
#if !COSMATI_SANITIZED
  constexpr rlim_t most = rlim_t{512} << 20;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

std::optional<Failure> execute_apart(const Case& c, int seconds, Counts* counts) {
  void* memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Failure{"no memory", ""};
  auto* report = static_cast<Report*>(memory);
  if (counts) report->counts = *counts;
  std::fflush(stdout);  // else both processes write what it holds
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(seconds));
    limit_memory();
    if (auto failure = execute(c, report->counts)) {
      copy(report->kind, sizeof report->kind, failure->kind);
      copy(report->detail, sizeof report->detail, failure->detail);
      report->failed = true;
    }
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  std::optional<Failure> result;
  if (child < 0 || waitpid(child, &status, 0) != child)
    result = Failure{"no process", ""};
  else if (WIFSIGNALED(status))
    result = Failure{WTERMSIG(status) == SIGALRM ? "time limit" : "signal " + std::to_string(WTERMSIG(status)), ""};
  else if (WEXITSTATUS(status) != 0)
    result = Failure{"exit " + std::to_string(WEXITSTATUS(status)), ""};
  else if (report->failed)
    result = Failure{report->kind, report->detail};
  if (counts) *counts = report->counts;
  munmap(memory, sizeof(Report));
  return result;
}

Shrunk shrink(const Case& failing, Tree tree, const Failure& failure, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  Shrunk best{failing, failure};
  auto still_fails = [&](Case c) {
    ++best.tried;
    auto got = execute_apart(c);
    if (!got || got->kind != failure.kind) return false;
    best.smallest = std::move(c);
    best.failure = std::move(*got);
    return true;
  };
  auto time_left = [&] { return std::chrono::steady_clock::now() < end; };
  for (std::int64_t extent = 1; extent < best.smallest.largest_extent; ++extent) {
    Case c = best.smallest;
    c.largest_extent = extent;
    if (still_fails(c)) break;
  }
  if (best.smallest.runs > 1) {
    Case c = best.smallest;
    c.runs = 1;
    still_fails(c);
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (Tree& less : smaller(tree)) {
      if (!time_left()) return best;
      Case c = best.smallest;
      c.text = print(less);
      if (c.text == best.smallest.text || !still_fails(c)) continue;
      tree = std::move(less);
      progress = true;
      break;
    }
  }
  return best;
}

}  // namespace cosmati::fuzz
