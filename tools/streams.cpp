// One loop a stream and vector width; the widest that the processor has runs. A barrier for the compiler in every turn keeps it
// from making library calls of the loops, or nothing at all. SPDX-License-Identifier: Apache-2.0
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
using Vector = std::int32_t __attribute__((vector_size(64), may_alias));
constexpr std::int64_t vector_bytes = 64, unrolled = 4;

// `count` vectors, a multiple of four.
using Pass = void(Vector* to, const Vector* from, std::int64_t count);

#define STREAMS(width, target)                                                    \
  target void read_##width(Vector* to, const Vector* from, std::int64_t count) {  \
    Vector a = {}, b = {}, c = {}, d = {};                                        \
    for (std::int64_t i = 0; i < count; i += unrolled) {                          \
      a ^= from[i];                                                               \
      b ^= from[i + 1];                                                           \
      c ^= from[i + 2];                                                           \
      d ^= from[i + 3];                                                           \
    }                                                                             \
    *to = (a ^ b) ^ (c ^ d);                                                      \
    asm volatile("" : : "r"(to) : "memory");                                      \
  }                                                                               \
  target void write_##width(Vector* to, const Vector* from, std::int64_t count) { \
    const Vector value = *from;                                                   \
    for (std::int64_t i = 0; i < count; i += unrolled) {                          \
      for (int k = 0; k < unrolled; ++k) to[i + k] = value;                       \
      asm volatile("" : : "r"(to) : "memory");                                    \
    }                                                                             \
  }                                                                               \
  target void copy_##width(Vector* to, const Vector* from, std::int64_t count) {  \
    for (std::int64_t i = 0; i < count; i += unrolled) {                          \
      for (int k = 0; k < unrolled; ++k) to[i + k] = from[i + k];                 \
      asm volatile("" : : "r"(to) : "memory");                                    \
    }                                                                             \
  }

STREAMS(plain, )
#if defined(__x86_64__)
STREAMS(avx2, __attribute__((target("avx2"))))
STREAMS(avx512, __attribute__((target("avx512f"))))
#endif
#undef STREAMS

Pass* pass_of(Stream stream) {
  Pass* plain[] = {read_plain, write_plain, copy_plain};
  const auto at = static_cast<std::size_t>(stream);
#if defined(__x86_64__)
  Pass* avx2[] = {read_avx2, write_avx2, copy_avx2};
  Pass* avx512[] = {read_avx512, write_avx512, copy_avx512};
  if (__builtin_cpu_supports("avx512f")) return avx512[at];
  if (__builtin_cpu_supports("avx2")) return avx2[at];
#endif
  return plain[at];
}

double since_s(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Free {
  void operator()(void* p) const { std::free(p); }
};
class Vectors {
 public:
  explicit Vectors(std::int64_t count)
      : count_(count), memory_(std::aligned_alloc(4096, static_cast<std::size_t>((count * vector_bytes + 4095) / 4096 * 4096))) {
    if (!memory_) throw std::bad_alloc();
  }
  Vector* get() const { return static_cast<Vector*>(memory_.get()); }
  void fill() const { std::memset(memory_.get(), 1, static_cast<std::size_t>(count_ * vector_bytes)); }

 private:
  std::int64_t count_;
  std::unique_ptr<void, Free> memory_;
};

// What one thread goes through.
struct Memory {
  Memory(Stream stream, std::int64_t bytes)
      : count(std::max(unrolled, bytes / vector_bytes / (stream == Stream::copy ? 2 : 1) / unrolled * unrolled)),
        moved(static_cast<double>(count * vector_bytes * (stream == Stream::copy ? 2 : 1))),
        from(stream == Stream::write ? 1 : count),
        to(stream == Stream::read ? 1 : count) {}
  std::int64_t count;
  double moved;  // bytes of a pass
  Vectors from, to;
};

// One thread's part: how fast it was in each sample.
std::vector<double> work(Stream stream, const Memory& m, int samples, double sample_s, std::barrier<>& together) {
  Pass* const pass = pass_of(stream);
  m.from.fill();  // by the thread that uses it, so that it lies near
  m.to.fill();
  std::int64_t batch = 1;  // passes between two looks at the clock
  for (double took = 0; took < 1e-4; batch *= 2) {
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < batch; ++i) pass(m.to.get(), m.from.get(), m.count);
    took = since_s(begin);
  }
  std::vector<double> rates;
  for (int s = 0; s < samples; ++s) {
    together.arrive_and_wait();
    const auto begin = Clock::now();
    std::int64_t passes = 0;
    double took = 0;
    while (took < sample_s) {
      for (std::int64_t i = 0; i < batch; ++i) pass(m.to.get(), m.from.get(), m.count);
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
