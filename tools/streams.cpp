// Every thread goes through memory of its own; rates of the same moments are added.
// SPDX-License-Identifier: Apache-2.0
#include "tools/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include <cosmati/error.h>

namespace cosmati::tools {
namespace {

using Clock = std::chrono::steady_clock;
double since_s(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Free {
  void operator()(void* p) const { std::free(p); }
};
class Bytes {
 public:
  explicit Bytes(std::int64_t count)
      : count_(static_cast<std::size_t>((count + 4095) / 4096 * 4096)), memory_(std::aligned_alloc(4096, count_)) {
    if (!memory_) throw std::bad_alloc();
  }
  void* get() const { return memory_.get(); }
  void fill() const { std::memset(memory_.get(), 1, count_); }

 private:
  std::size_t count_;
  std::unique_ptr<void, Free> memory_;
};

bool copies(Stream stream) { return stream == Stream::copy || stream == Stream::bypass; }

// What one thread goes through.
struct Memory {
  Memory(Stream stream, std::int64_t all)
      : bytes(std::max(vector_room, copies(stream) ? all / 2 : all)),
        moved(static_cast<double>(copies(stream) ? 2 * bytes : bytes)),
        from(stream == Stream::write ? vector_room : bytes),
        to(stream == Stream::read ? vector_room : bytes) {}
  std::int64_t bytes;
  double moved;  // of a pass
  Bytes from, to;
};

// One thread's part: how fast it was in each sample.
std::vector<double> work(Stream stream, const Memory& m, int samples, double sample_s, std::barrier<>& together) {
  Pass* const pass = pass_of(stream);
  m.from.fill();  // by the thread that uses it, so that it lies near
  m.to.fill();
  std::int64_t batch = 1;  // passes between two looks at the clock
  for (double took = 0; took < 1e-4; batch *= 2) {
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < batch; ++i) pass(m.to.get(), m.from.get(), m.bytes);
    took = since_s(begin);
  }
  std::vector<double> rates;
  for (int s = 0; s < samples; ++s) {
    together.arrive_and_wait();
    const auto begin = Clock::now();
    std::int64_t passes = 0;
    double took = 0;
    while (took < sample_s) {
      for (std::int64_t i = 0; i < batch; ++i) pass(m.to.get(), m.from.get(), m.bytes);
      passes += batch;
      took = since_s(begin);
    }
    rates.push_back(m.moved * static_cast<double>(passes) / took / 1e9);
  }
  return rates;
}

std::string line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "0-3,8" names five cores.
int cores_in(const std::string& list) {
  int cores = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size()), dash = list.find('-', at);
    const int first = std::atoi(list.c_str() + at), last = dash < end ? std::atoi(list.c_str() + dash + 1) : first;
    cores += std::max(0, last - first + 1);
    at = end + 1;
  }
  return cores;
}

}  // namespace

Measured measured(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

Measured stream_gb_s(Stream stream, std::int64_t bytes, int threads, int samples, double sample_s) {
  std::barrier<> together(threads);
  const auto count = static_cast<std::size_t>(threads);
  std::vector<std::vector<double>> rates(count);
  std::vector<Memory> memory;
  for (std::size_t t = 0; t < count; ++t) memory.emplace_back(stream, bytes);
  std::size_t running = 1;
  {
    std::vector<std::jthread> others;
    others.reserve(count);
    try {
      for (; running < count; ++running)
        others.emplace_back([&, t = running] { rates[t] = work(stream, memory[t], samples, sample_s, together); });
    } catch (const std::system_error&) {  // nobody waits for a thread that there is not
      for (std::size_t t = running; t < count; ++t) together.arrive_and_drop();
    }
    rates[0] = work(stream, memory[0], samples, sample_s, together);
  }
  if (running < count)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("the system gives {} of {} threads", running, threads));
  std::vector<double> sums(static_cast<std::size_t>(samples), 0);
  for (const auto& one : rates)
    for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += one[s];
  return measured(std::move(sums));
}

std::vector<Cache> data_caches() {
  std::vector<Cache> found;
  const std::filesystem::path root = "/sys/devices/system/cpu/cpu0/cache";
  for (int index = 0; index < 8; ++index) {
    const auto folder = root / ("index" + std::to_string(index));
    const std::string type = line_of(folder / "type"), size = line_of(folder / "size");
    if (type.empty() || type == "Instruction" || size.empty()) continue;
    const std::int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : size.back() == 'G' ? 1 << 30 : 1;
    const Cache cache{std::atoi(line_of(folder / "level").c_str()), std::atoll(size.c_str()) * unit,
                      std::max(1, cores_in(line_of(folder / "shared_cpu_list")))};
    if (cache.level > 0 && cache.bytes > 0) found.push_back(cache);
  }
  std::sort(found.begin(), found.end(), [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return found;
}

}  // namespace cosmati::tools
