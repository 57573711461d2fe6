// Memory is measured by plain loops, operations by compiled tile programs: what the planner predicts is such programs.
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include <cosmati/machine.h>
#include <cosmati/runtime.h>

#include "support/memory.h"
#include "tools/paired.h"
#include "tools/prepare.h"
#include "tools/profile.h"
#include "tools/progress.h"
#include "tools/streams.h"

namespace cosmati::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int samples = 5;
constexpr double sample_s = 0.025;
constexpr double enough_of_cores = 0.6;  // of what as many cores as threads would do; shared units take some of it
constexpr std::int64_t unknown_cache = std::int64_t{64} << 20;  // taken for the last level where the system does not tell

Json json_of(const Measured& m) { return {{"median", m.median}, {"low", m.low}, {"high", m.high}}; }

// 1, 2, 4 and so on, and all.
std::vector<int> thread_counts() {
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<int> counts;
  for (int n = 1; n < all; n *= 2) counts.push_back(n);
  counts.push_back(all);
  return counts;
}

struct Level {
  std::string name;
  std::int64_t thread_bytes;  // what each thread goes through
};

// Half of each cache, or of a thread's share of it where it is shared; and memory beyond the last. A share that the level before
// would hold is left out.
std::vector<Level> levels_for(int threads) {
  const std::vector<Cache> caches = data_caches();
  std::vector<Level> levels;
  std::int64_t inner = 0;
  for (const Cache& cache : caches) {
    const std::int64_t bytes = cache.bytes / 2 / std::min(threads, cache.cores);
    if (bytes > inner) levels.push_back({fmt::format("L{}", cache.level), bytes});
    inner = cache.bytes / std::min(threads, cache.cores);
  }
  const std::int64_t last = caches.empty() ? unknown_cache : caches.back().bytes;
  const std::int64_t room = support::machine_memory() / 4;
  levels.push_back({"memory", std::max<std::int64_t>(std::min(4 * last, room) / threads, 1 << 20)});
  return levels;
}

// Microseconds of one launch of `program` on rows x columns.
Measured launch_us(const Program& program, const Device& device, std::int64_t rows, std::int64_t columns) {
  Options options;
  options.cache = "";
  std::vector<float> x(static_cast<std::size_t>(rows * columns)), y(x.size());
  // Between 0.6 and 1.4, all different: dividers are faster on round numbers.
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.6f + 0.8f * static_cast<float>(i * 2654435761u % 16777216u) / 16777216.0f;
  const Launch launch =
      Function(program, device, options).prepare({{"x", view(x, {rows, columns})}, {"y", view(y, {rows, columns})}});
  Timed timed([&] { launch(); });
  timed.calibrate(sample_s);
  std::vector<double> us;
  for (int s = 0; s < samples; ++s) us.push_back(timed.sample());
  return measured(std::move(us));
}

// y = the operation applied `times` over.
Program chain(const std::string& operation, int times) {
  std::string text = "program calibrate(in x: f32[row, col], out y: f32[row, col]) {\n  parallel row {\n", last = "x";
  for (int i = 0; i < times; ++i) {
    const std::string next = fmt::format("a{}", i);
    text += fmt::format("    {} = {}\n", next, fmt::format(fmt::runtime(operation), last));
    last = next;
  }
  return parse(text + fmt::format("    y[row, col] = {}\n  }}\n}}\n", last)).front();
}

struct Operation {
  const char* name;
  const char* expression;  // of values near 1, and near 1 again
  int times;
};
constexpr Operation operations[] = {
    {"add", "{} + 0.25", 32}, {"exp", "exp(-{})", 8}, {"div", "1.5 / {}", 16}, {"fma", "fma({}, f32(0.5), f32(0.5))", 32}};

class Calibration {
 public:
  explicit Calibration(Report& report) : report_(report), counts_(thread_counts()) {}

  Json run() {
    Json profile = {{"kind", "cosmati-profile"}, {"schema", profile_schema}, {"device", "cpu"}};
    profile["environment"] = Json::parse(environment());
    profile["measured"] = now();
    profile["load_before"] = load();
    steps_ = 1 + launches() + throughputs();
    for (int threads : counts_) steps_ += 4 * static_cast<int>(levels_for(threads).size());
    profile["bandwidth"] = bandwidth();
    profile["clock"] = clock();
    profile["launch"] = launch();
    profile["throughput"] = throughput();
    profile["load_after"] = load();
    return profile;
  }
  bool busy() const { return busy_; }

 private:
  static std::string now() {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc = {};
    ::gmtime_r(&seconds, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
  }
  static double load() {
    double one = 0;
    return ::getloadavg(&one, 1) == 1 ? one : -1;
  }

  Measured step(const std::function<Measured()>& measure) {
    const Measured m = measure();
    progress_.fraction(static_cast<double>(++done_) / steps_);
    return m;
  }

  Json bandwidth() {
    Json rows = Json::array();
    report_.line(fmt::format("{:<8}{:>8}{:>14}{:>10}{:>10}{:>10}{:>10}  GB/s", "level", "threads", "bytes each", "read", "write",
                             "copy", "bypass"));
    for (int threads : counts_)
      for (const Level& level : levels_for(threads)) {
        Json row = {{"level", level.name}, {"threads", threads}, {"thread_bytes", level.thread_bytes}};
        std::string line = fmt::format("{:<8}{:>8}{:>14}", level.name, threads, level.thread_bytes);
        for (const auto& [stream, name] :
             {std::pair(Stream::read, "read"), {Stream::write, "write"}, {Stream::copy, "copy"}, {Stream::bypass, "bypass"}}) {
          const Measured m = step([&, s = stream] { return stream_gb_s(s, level.thread_bytes, threads, samples, sample_s); });
          row[fmt::format("{}_gb_s", name)] = json_of(m);
          line += fmt::format("{:>10.1f}", m.median);
        }
        report_.line(line);
        rows.push_back(std::move(row));
      }
    return rows;
  }

  // A sum takes one cycle on every common core, and each waits for the one before.
  Json clock() {
    const Measured ghz = step([] {
      std::vector<double> rates;
      for (int s = 0; s < samples; ++s) {
        constexpr int sums = 8'000'000;
        std::uint64_t x = 1;
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < sums / 8; ++i)
          for (int k = 0; k < 8; ++k) {
            x += 1;
            asm volatile("" : "+r"(x));
          }
        rates.push_back(sums / std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
      }
      return measured(std::move(rates));
    });
    report_.line(fmt::format("clock: {:.2f} GHz", ghz.median));
    return Json::array({{{"threads", 1}, {"ghz", json_of(ghz)}}});
  }

  int launches() const { return counts_.size() > 1 ? 3 : 2; }
  Json launch() {
    const Program program = chain("exp({})", 1);
    Json rows = Json::array();
    const auto add = [&](std::int64_t n, std::int64_t columns, int threads) {
      const Measured m = step([&] { return launch_us(program, Device::cpu(threads), n, columns); });
      rows.push_back({{"elements", n * columns}, {"threads", threads}, {"us", json_of(m)}});
      report_.line(fmt::format("launch of exp of {} elements by {} thread{}: {:.2f} us", n * columns, threads,
                               threads == 1 ? "" : "s", m.median));
    };
    add(1, 16, 1);
    add(64, 1024, 1);
    if (counts_.size() > 1) add(64, 1024, counts_.back());
    return rows;
  }

  int throughputs() const { return static_cast<int>(std::size(operations)) * (counts_.size() > 1 ? 2 : 1); }
  Json throughput() {
    Json rows = Json::array();
    for (const Operation& operation : operations) {
      const Program program = chain(operation.expression, operation.times);
      std::string line;
      double alone = 0;  // by one thread
      for (int threads : counts_.size() > 1 ? std::vector{1, counts_.back()} : std::vector{1}) {
        const std::int64_t rows_of_data = 128 * threads, columns = 256;
        const Measured us = step([&] { return launch_us(program, Device::cpu(threads), rows_of_data, columns); });
        const double work = static_cast<double>(rows_of_data * columns * operation.times) / 1000;
        const Measured per_ns = {work / us.median, work / us.high, work / us.low};
        rows.push_back({{"operation", operation.name}, {"dtype", "f32"}, {"threads", threads}, {"per_ns", json_of(per_ns)}});
        line += fmt::format("{}{:.2f} per ns by {} thread{}", line.empty() ? "" : ", ", per_ns.median, threads,
                            threads == 1 ? "" : "s");
        if (threads == 1)
          alone = per_ns.median;
        else
          busy_ = busy_ || per_ns.median < enough_of_cores * alone * threads;
      }
      report_.line(fmt::format("{} of f32: {}", operation.name, line));
    }
    return rows;
  }

  Report& report_;
  const std::vector<int> counts_;
  bool busy_ = false;  // something else had cores meanwhile
  int done_ = 0, steps_ = 1;
  Progress progress_{"calibrating"};
};

}  // namespace

void calibrate(const std::string& save, Report& report) {
  Device::cpu();  // throws where it is absent
  const std::string file = save.empty() ? profile_file() : save;
  if (file.empty())
    throw Error(ErrorCode::bad_argument, {}, "there is no cache directory to keep the profile in",
                "set COSMATI_CACHE_DIR, XDG_CACHE_HOME or HOME to a directory, or name a file with --save");
  if (save.empty()) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem)
      throw Error(ErrorCode::bad_file, Where{folder.string(), 0, 0}, "the folder cannot be made: " + problem.message());
  }
  require_writable(file);
  Calibration calibration(report);
  const Json profile = calibration.run();
  if (calibration.busy())
    report.note(
        "all cores together computed hardly faster than one: something else was running, and plans will be priced by that. "
        "Calibrate again on an idle machine, or delete " +
        file);
  write_text(file, profile.dump(1) + "\n");
  report.line("saved " + file);
  report.object() = {{"file", file}, {"profile", profile}};
}

}  // namespace cosmati::tools
