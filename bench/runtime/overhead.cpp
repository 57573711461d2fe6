// What the runtime itself costs: start-up, a launch, a call, a kernel from the disk cache. One figure a line, the median of many
// runs, beside the lowest.
//   runtime_overhead            all figures
//   runtime_overhead --json     all of them with their samples, an object a line
//   runtime_overhead --first    one first call of softmax in this process, in milliseconds (used by the above, in fresh
//   processes)
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cosmati/cosmati.h>

using namespace cosmati;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool json = false;

void print(const char* what, std::vector<double> times, double unit, const char* unit_name) {
  std::sort(times.begin(), times.end());
  if (json) {
    std::printf("{\"what\": \"%s\", \"unit\": \"%s\", \"samples\": [", what, unit_name);
    for (std::size_t i = 0; i < times.size(); ++i) std::printf("%s%.6g", i == 0 ? "" : ", ", times[i] / unit);
    std::printf("]}\n");
    return;
  }
  std::printf("%-66s %9.3f %s (lowest %.3f, %zu samples)\n", what, times[times.size() / 2] / unit, unit_name,
              times.front() / unit, times.size());
}

// Each sample is the mean of enough runs to be about a millisecond.
void measure(const char* what, double unit, const char* unit_name, const std::function<void()>& body) {
  int runs = 1;
  for (;; runs *= 2) {
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) body();
    if (seconds_since(start) > 1e-3) break;
  }
  std::vector<double> times;
  for (int sample = 0; sample < 201; ++sample) {
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) body();
    times.push_back(seconds_since(start) / runs);
  }
  print(what, times, unit, unit_name);
}

constexpr double us = 1e-6, ms = 1e-3;
constexpr std::int64_t rows = 37, columns = 1537;

Program text(const char* program) { return parse(program).front(); }

struct Matrix {
  std::vector<float> x = std::vector<float>(rows * columns, 0.5f), y = std::vector<float>(rows * columns);
  Arguments arguments() { return {{"x", view(x, {rows, columns})}, {"y", view(y, {rows, columns})}}; }
};

void launches() {
  std::vector<float> a(16, 1), b(16);
  const Program copy = text("program copy(in x: f32[i], out y: f32[i]) {\n parallel i { y[i] = x }\n}");
  const Function f(copy, Device::cpu(), Options{.cache = ""});
  const Launch tiny = f.prepare({{"x", view(a, {16})}, {"y", view(b, {16})}});
  measure("a prepared launch, 16 elements copied, calling thread", us, "us", [&] { tiny(); });
  const Arguments named = {{"x", view(a, {16})}, {"y", view(b, {16})}};
  measure("the same as a call, named arguments made before", us, "us", [&] { f(named); });
  measure("the same as a call, named arguments made for it", us, "us", [&] { f({{"x", view(a, {16})}, {"y", view(b, {16})}}); });
  measure("the same as a call, views in declared order", us, "us", [&] { f(view(a, {16}), view(b, {16})); });
  const Argument x = view(a, {16}), y = view(b, {16});
  const Argument *given[] = {&x, &y}, *missing[] = {&x, nullptr};
  measure("the same as a call, pointers to arguments", us, "us", [&] { f.call(given); });
  measure("shapes of outputs that are missing", us, "us", [&] { (void)f.missing_outputs(missing); });

  Matrix m;
  const char* scaled = "program scaled(in x: f32[row, col], out y: f32[row, col]) {\n parallel row { y[row, col] = x * 2 }\n}";
  for (const int threads : {1, 2}) {
    const auto on = [&](const Program& p) {
      return Function(p, Device::cpu(threads), Options{.cache = ""}).prepare(m.arguments());
    };
    const Launch softmax = on(load("softmax")), light = on(text(scaled));
    const std::string where = threads == 1 ? ", calling thread" : ", two threads";
    measure(("prepared softmax 37x1537" + where).c_str(), us, "us", [&] { softmax(); });
    measure(("prepared y = 2 x, 37x1537" + where).c_str(), us, "us", [&] { light(); });
  }
  measure("starting and joining a thread, for comparison", us, "us", [&] { std::thread([] {}).join(); });
}

// Milliseconds that a fresh process of this program prints, and how long the whole process takes.
std::pair<double, double> fresh(const char* program, const char* option) {
  const auto start = Clock::now();
  FILE* out = ::popen((std::string("exec '") + program + "' " + option).c_str(), "r");
  double printed = 0;
  if (!out || std::fscanf(out, "%lf", &printed) != 1 || ::pclose(out) != 0) std::abort();
  return {printed * ms, seconds_since(start)};
}

void processes(const char* program) {
  std::string folder = (std::filesystem::temp_directory_path() / "cosmati_bench_XXXXXX").string();
  if (!::mkdtemp(folder.data())) std::abort();
  ::setenv("COSMATI_CACHE_DIR", folder.c_str(), 1);
  std::vector<double> pick, whole, compiled, hit;
  for (int i = 0; i < 21; ++i) {
    const auto [first, all] = fresh(program, "--pick");
    pick.push_back(first);
    whole.push_back(all);
  }
  print("Device::pick() in a fresh process", pick, ms, "ms");
  print("that process, from start to end", whole, ms, "ms");
  for (int i = 0; i < 21; ++i) {
    std::filesystem::remove_all(folder);
    compiled.push_back(fresh(program, "--first").first);
  }
  for (int i = 0; i < 21; ++i) hit.push_back(fresh(program, "--first").first);
  print("first call of softmax in a fresh process, compiled", compiled, ms, "ms");
  print("first call of softmax in a fresh process, from the disk cache", hit, ms, "ms");
  std::vector<double> warm;
  Matrix m;
  const Program softmax = load("softmax");
  for (int i = 0; i < 101; ++i) {
    const auto start = Clock::now();
    const Function f(softmax, Device::cpu());
    (void)f.prepare(m.arguments());
    warm.push_back(seconds_since(start));
    if (f.compiles() > 0) std::abort();
  }
  print("a new function and its kernel from the disk cache, later", warm, ms, "ms");
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = Clock::now();
  if (argc > 1 && std::strcmp(argv[1], "--pick") == 0) {
    (void)Device::pick();
    std::printf("%f\n", seconds_since(start) / ms);
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "--first") == 0) {
    Matrix m;
    const Device device = Device::pick();
    const auto after_pick = Clock::now();
    const Function f(load("softmax"), device);
    (void)f.prepare(m.arguments());
    std::printf("%f\n", seconds_since(after_pick) / ms);
    return 0;
  }
  json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  processes(std::filesystem::read_symlink("/proc/self/exe").c_str());
  launches();
}
