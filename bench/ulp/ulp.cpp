// ulp: the largest error of each expanded operation over every float32 (pow and exp_diff: over pairs), against its bound in
// ops.def; with --device, of what a device computes for those of one argument. Exit code 1 when a bound or an exact case is
// missed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <cosmati/cosmati.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/ulp/accuracy.h"

namespace cosmati::ulp {
namespace {

constexpr std::uint64_t all_patterns = std::uint64_t{1} << 32;

Accuracy run(const Function& f, std::uint64_t step, std::uint64_t pairs, unsigned threads) {
  const bool binary = ops::info(f.op).arity == 2;
  std::vector<Accuracy> parts(threads);
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      parts[t] = binary ? measure(f, random_pairs(t, pairs / threads))
                        : measure(f, patterns(all_patterns / threads * t, all_patterns / threads * (t + 1), step));
    });
  for (std::thread& thread : pool) thread.join();
  Accuracy total = measure(f, edge_pairs());
  for (const Accuracy& part : parts) total.merge(part);
  return total;
}

// What a device computes, many at a time.
Accuracy run_on(const Device& device, const Function& f, std::uint64_t step, unsigned threads) {
  constexpr std::uint64_t many = 1 << 24;
  const std::string text =
      fmt::format("program all(in x: f32[i], out y: f32[i]) {{ parallel i {{ y[i] = {}(x) }} }}", ops::name(f.op));
  const cosmati::Function compiled(parse(text, "ulp").at(0), device);
  std::vector<float> x(many), y(many);
  Accuracy total;
  for (std::uint64_t first = 0; first < all_patterns; first += many * step) {
    const auto count = static_cast<std::int64_t>(std::min(many, (all_patterns - first + step - 1) / step));
    for (std::int64_t i = 0; i < count; ++i)
      x[static_cast<std::size_t>(i)] =
          std::bit_cast<float>(static_cast<std::uint32_t>(first + static_cast<std::uint64_t>(i) * step));
    compiled(TensorView(x.data(), f32, {count}), TensorView(y.data(), f32, {count}));
    std::vector<Accuracy> parts(threads);
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t)
      pool.emplace_back([&, t] {
        for (std::size_t i = t; i < static_cast<std::size_t>(count); i += threads) parts[t].add(f, x[i], 0, y[i]);
      });
    for (std::thread& thread : pool) thread.join();
    for (const Accuracy& part : parts) total.merge(part);
  }
  return total;
}

}  // namespace
}  // namespace cosmati::ulp

int main(int argc, char** argv) {
  using namespace cosmati;
  std::vector<std::string> only;
  std::uint64_t step = 1, pairs = 1'000'000'000;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  CLI::App app("The largest error of every expanded operation, in units of the last place");
  app.add_option("op", only, "operations to measure (default: all)");
  app.add_option("--step", step, "measure every n-th float32")->check(CLI::PositiveNumber);
  app.add_option("--pairs", pairs, "random pairs of arguments for pow and exp_diff")->check(CLI::NonNegativeNumber);
  app.add_option("--threads", threads, "threads")->check(CLI::Range(1, 256));
  std::string device;
  app.add_option("--device", device, "what computes them (default: the expansions, on this host)");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& name : only) {
    const bool known = std::any_of(ulp::functions().begin(), ulp::functions().end(),
                                   [&](const ulp::Function& f) { return ops::name(f.op) == name; });
    if (!known) {
      fmt::print(stderr, "{} is not an operation that is measured\n", name);
      return 2;
    }
  }

  bool ok = true;
  fmt::print("{:10} {:>8} {:>6} {:>10} {:>6} {:>8}  at\n", "op", "ulp", "bound", "subnormal", "wrong", "seconds");
  for (const ulp::Function& f : ulp::functions()) {
    const std::string name(ops::name(f.op));
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    if (!device.empty() && ops::info(f.op).arity != 1) continue;
    const ulp::Accuracy a =
        device.empty() ? ulp::run(f, step, pairs, threads) : ulp::run_on(Device::named(device), f, step, threads);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const bool within = a.normal <= ops::info(f.op).ulp && a.subnormal <= ops::info(f.op).ulp && a.wrong == 0;
    ok = ok && within;
    fmt::print("{:10} {:8.4f} {:6} {:10.4f} {:6} {:8.1f}  {:a} {:a} {}{}\n", name, a.normal, ops::info(f.op).ulp, a.subnormal,
               a.wrong, seconds.count(), a.worst_x, a.worst_y, within ? "" : "MISSED ", a.first_wrong);
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}
