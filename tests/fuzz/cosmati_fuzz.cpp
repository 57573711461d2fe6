// cosmati_fuzz: random programs, run everywhere and compared.
//   --seconds N     stop after N seconds (default 60)
//   --seed S        the programs are those of seed S, S + 1, ... (default 1)
//   --programs N    at most N programs
//   --keep DIR      write each failing program, made smaller, to DIR
//   --failures N    stop after N failures (default 5)
//   --print         print the programs, run nothing
//   --refusals      print each refusal and its program's seed
//   --run FILE...   run kept programs as their head comments say
// An interrupt ends it with the counts so far. Exits with 1 when a program failed, and with 2 when more than half were refused.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fuzz/generator.h"
#include "fuzz/shrink.h"

namespace cosmati::fuzz {
namespace {

struct Settings {
  int seconds = 60, failures = 5;
  std::uint64_t seed = 1, programs = ~std::uint64_t{0};
  std::string keep;
  std::vector<std::string> run;
  bool print = false, refusals = false;
};

struct Shared {
  Counts counts;
  std::uint64_t seed;  // of the program that runs now
  bool failed;
  volatile bool stop;
  std::uint64_t peak_mib, peak_seed;  // the most memory that a process held, and the program that asked for it
};

Shared* interrupted = nullptr;  // what a signal handler finds
void stop(int) { interrupted->stop = true; }

Case case_of(std::uint64_t seed, const Generated& g) {
  Case c;
  c.text = print(g.tree);
  c.binding = {g.types, g.packs};
  c.seed = seed;
  c.largest_extent = seed % 8 == 1 ? 40 : seed % 4 == 2 ? 12 : 5;  // longer than a vector, now and then
  c.edges = seed % 5 == 3;
  return c;
}

std::string head_of(const Case& c) {
  std::string head =
      fmt::format("# fuzz: seed={} extent={} runs={}{}", c.seed, c.largest_extent, c.runs, c.edges ? " edges=1" : "");
  for (const auto& [variable, type] : c.binding.types) head += fmt::format(" {}={}", variable, name(type));
  for (const auto& [pack, rank] : c.binding.packs) head += fmt::format(" {}={}", pack, rank);
  return head + "\n";
}

Case read_case(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw CLI::FileError::Missing(path);
  std::stringstream text;
  text << in.rdbuf();
  Case c;
  c.text = text.str();
  std::string word;
  std::istringstream words(c.text.substr(0, c.text.find('\n')));
  while (words >> word) {
    const std::size_t equal = word.find('=');
    if (equal == std::string::npos) continue;
    const std::string key = word.substr(0, equal), value = word.substr(equal + 1);
    if (key == "seed")
      c.seed = std::stoull(value);
    else if (key == "extent")
      c.largest_extent = std::stoll(value);
    else if (key == "runs")
      c.runs = std::stoi(value);
    else if (key == "edges")
      c.edges = value == "1";
    else if (auto type = dtype_from_name(value))
      c.binding.types[key] = *type;
    else
      c.binding.packs[key] = std::stoi(value);
  }
  return c;
}

void note_memory(Shared& shared) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto mib = static_cast<std::uint64_t>(usage.ru_maxrss) >> 10;
  if (mib <= shared.peak_mib) return;
  shared.peak_mib = mib;
  shared.peak_seed = shared.seed;
}

// Runs programs until time is up or one fails; a signal ends only this process.
void work(const Settings& s, Shared& shared, std::chrono::steady_clock::time_point end) {
  limit_memory();
  for (; !shared.stop && shared.counts.programs < s.programs && std::chrono::steady_clock::now() < end; ++shared.seed) {
    ++shared.counts.programs;
    alarm(60);
    Case c = case_of(shared.seed, generate(shared.seed));
    c.tell = s.refusals;
    const bool failed = execute(c, shared.counts).has_value();
    note_memory(shared);
    if (failed) {
      shared.failed = true;
      std::fflush(stdout);
      _exit(0);
    }
  }
  std::fflush(stdout);
  _exit(0);
}

void report(const Settings& s, std::uint64_t seed, const Failure& failure) {
  fmt::print("\nFAILURE of seed {}: {}\n", seed, failure.kind);
  std::fflush(stdout);
  const Generated g = generate(seed);
  const Shrunk shrunk = shrink(case_of(seed, g), g.tree, failure, 60);
  fmt::print("{}\n{}{}after {} attempts to make it smaller; again: cosmati_fuzz --seed {} --programs 1\n", shrunk.failure.detail,
             head_of(shrunk.smallest), shrunk.smallest.text, shrunk.tried, seed);
  if (!s.keep.empty()) {
    const std::string path = fmt::format("{}/fuzz_{}.tile", s.keep, seed);
    std::ofstream(path) << head_of(shrunk.smallest) << shrunk.smallest.text;
    fmt::print("kept: cosmati_fuzz --run {}\n", path);
  }
  std::fflush(stdout);
}

std::string by_code(const std::uint64_t (&counts)[code_count]) {
  std::string out;
  for (int i = 0; i < code_count; ++i)
    if (counts[i]) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name(static_cast<ErrorCode>(i)), counts[i]);
  return out.empty() ? "none" : out;
}

int summary(const Counts& n, int failures) {
  const std::uint64_t refused = n.programs - n.accepted;
  fmt::print("programs {}, accepted {}, refused by code: {}\n", n.programs, n.accepted, by_code(n.refused));
  fmt::print("runs {}, refused at launch: {}; without legal arguments {}, knobs refused {}, without a CPU backend {}\n", n.runs,
             by_code(n.refused_at_launch), n.impossible_arguments, n.refused_knobs, n.without_cpu);
  fmt::print("elements {}, unjudged {} ({:.2f}%)\nfailures {}\n", n.elements, n.unjudged,
             n.elements ? 100.0 * static_cast<double>(n.unjudged) / static_cast<double>(n.elements) : 0.0, failures);
  if (failures) return 1;
  return n.programs >= 100 && refused * 2 > n.programs ? 2 : 0;
}

int fuzz(const Settings& s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(s.seconds);
  auto* shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED) return 3;
  shared->seed = s.seed;
  interrupted = shared;
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, stop);
  int failures = 0;
  while (!shared->stop && failures < s.failures && shared->counts.programs < s.programs &&
         std::chrono::steady_clock::now() < end) {
    shared->failed = false;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) work(s, *shared, end);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !shared->failed) break;
    ++failures;
    auto failure = execute_apart(case_of(shared->seed, generate(shared->seed)), 60);
    report(s, shared->seed,
           failure ? *failure : Failure{"not again", "it failed once in a process that ran other programs before"});
    ++shared->seed;
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  fmt::print("CPU time {} s, memory {} MiB at most, since seed {}\n", usage.ru_utime.tv_sec + usage.ru_stime.tv_sec,
             shared->peak_mib, shared->peak_seed);
  return summary(shared->counts, failures);
}

int run_files(const std::vector<std::string>& paths) {
  Counts counts{};
  int failures = 0;
  for (const std::string& path : paths) {
    ++counts.programs;
    Case c = read_case(path);
    c.tell = true;
    auto failure = execute_apart(c, 600, &counts);
    if (!failure) continue;
    ++failures;
    fmt::print("{}: {}: {}\n", path, failure->kind, failure->detail);
  }
  summary(counts, failures);
  return failures || counts.accepted != counts.programs;
}

}  // namespace
}  // namespace cosmati::fuzz

int main(int argc, char** argv) {
  using namespace cosmati::fuzz;
  Settings s;
  CLI::App app{"Random programs, run everywhere and compared"};
  app.add_option("--seconds", s.seconds);
  app.add_option("--seed", s.seed);
  app.add_option("--programs", s.programs);
  app.add_option("--keep", s.keep)->check(CLI::ExistingDirectory);
  app.add_option("--failures", s.failures);
  app.add_flag("--print", s.print);
  app.add_flag("--refusals", s.refusals);
  app.add_option("--run", s.run)->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  try {
    if (!s.run.empty()) return run_files(s.run);
    if (s.print) {
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(s.programs, 100); ++i)
        fmt::print("# seed {}\n{}\n", s.seed + i, print(generate(s.seed + i).tree));
      return 0;
    }
    return fuzz(s);
  } catch (const std::exception& e) {
    fmt::print(stderr, "cosmati_fuzz: {}\n", e.what());
    return 3;
  }
}
