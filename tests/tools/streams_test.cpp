// Bandwidths and medians: that they are what they say; profiles: which are read.
// SPDX-License-Identifier: Apache-2.0
#include "tools/streams.h"

#include <gmock/gmock.h>

#include <cosmati/error.h>
#include <cosmati/machine.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/tools/temporary.h"
#include "tools/profile.h"

namespace cosmati::tools {
namespace {

using testing::HasSubstr;

TEST(Streams, AMedianHasItsRange) {
  const Measured odd = measured({3, 1, 2}), even = measured({4, 1, 3, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.low, 1);
  EXPECT_EQ(odd.high, 3);
  EXPECT_EQ(even.median, 2.5);
}

constexpr Stream streams[] = {Stream::read, Stream::write, Stream::copy, Stream::bypass};

TEST(Streams, APassTouchesEveryByteAndNoOther) {
  std::vector<unsigned char> from(3000), to(3100);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>((i * 7 + i / 256) % 0xee);  // never what `to` holds before
  for (const Stream stream : streams)
    for (const std::int64_t bytes : {0, 1, 8, 31, 64, 500, 513, 2047, 2900})
      for (const std::int64_t off : {0, 1, 40}) {
        std::fill(to.begin(), to.end(), stream == Stream::read ? 0 : 0xee);
        pass_of(stream)(to.data() + off, from.data() + off, bytes);
        const auto end = static_cast<std::size_t>(off + bytes);
        if (stream == Stream::read) {
          unsigned char all = 0, seen = 0;
          for (std::size_t i = static_cast<std::size_t>(off); i < end; ++i) all ^= from[i];
          for (std::size_t i = 0; i < vector_room; ++i) seen ^= to[static_cast<std::size_t>(off) + i];
          EXPECT_EQ(seen, all) << bytes << " from " << off;
          continue;
        }
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool inside = i >= static_cast<std::size_t>(off) && i < end;
          const std::size_t source = stream == Stream::write ? static_cast<std::size_t>(off) : i;
          if (stream != Stream::write || !inside)
            EXPECT_EQ(to[i], inside ? from[source] : 0xee)
                << "stream " << int(stream) << ", " << bytes << " from " << off << " at " << i;
          else
            EXPECT_NE(to[i], 0xee);
        }
      }
}

#if defined(__SANITIZE_THREAD__)
#define COSMATI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COSMATI_TSAN 1
#endif
#endif

#ifndef COSMATI_TSAN  // ThreadSanitizer looks at every load, and that would be what is measured
// Of many short runs, each within what a busy machine gives at a time.
double fastest_s(const std::function<void()>& run) {
  double best = 1e9;
  for (int sample = 0; sample < 300; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

TEST(Streams, AReadOfTheNearestCacheIsNoChainOfLoads) {
  std::vector<std::uint64_t> words(2048, 3);
  alignas(64) char last[vector_room];
  Pass* const pass = pass_of(Stream::read);
  const double vectors = fastest_s([&] {
    for (int i = 0; i < 20; ++i) pass(last, words.data(), static_cast<std::int64_t>(words.size() * 8));
  });
  const double chain = fastest_s([&] {
    std::uint64_t all = 0;
    for (int i = 0; i < 20; ++i)
      for (const std::uint64_t word : words) {
        all ^= word;
        asm volatile("" : "+r"(all));  // one word after the other
      }
  });
  EXPECT_LT(1.5 * vectors, chain);
}
#endif

TEST(Streams, EveryKindIsMeasuredOnAnyNumberOfThreads) {
  for (const Stream stream : streams)
    for (const int threads : {1, 3})
      for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 20}) {
        const Measured m = stream_gb_s(stream, bytes, threads, 3, 0.002);
        EXPECT_GT(m.low, 0.001);
        EXPECT_LE(m.low, m.median);
        EXPECT_LE(m.median, m.high);
        EXPECT_LT(m.high, 1e5);
      }
}

TEST(Streams, CachesGrowWithTheirLevel) {
  std::int64_t last = 0;
  for (const Cache& cache : data_caches()) {
    EXPECT_GT(cache.bytes, last);
    EXPECT_GE(cache.cores, 1);
    last = cache.bytes;
  }
}

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() { ::setenv("COSMATI_CACHE_DIR", (folder_ / "").c_str(), 1); }
  ~ProfileTest() override { ::unsetenv("COSMATI_CACHE_DIR"); }
  static nlohmann::ordered_json good() {
    const nlohmann::ordered_json m = {{"median", 2.0}, {"low", 1.0}, {"high", 3.0}};
    const auto of = [&](const char* operation) {
      return nlohmann::ordered_json{{"operation", operation}, {"threads", 1}, {"per_ns", m}};
    };
    return {{"kind", "cosmati-profile"},
            {"schema", profile_schema},
            {"environment", nlohmann::ordered_json::parse(environment())},
            {"measured", "2026-01-02T03:04:05Z"},
            {"bandwidth",
             {{{"level", "memory"}, {"threads", 1}, {"copy_gb_s", m}}, {{"level", "memory"}, {"threads", 4}, {"copy_gb_s", m}}}},
            {"clock", {{{"threads", 1}, {"ghz", m}}}},
            {"launch",
             {{{"elements", 16}, {"threads", 1}, {"us", m}},
              {{"elements", 65536}, {"threads", 1}, {"us", m}},
              {{"elements", 65536}, {"threads", 4}, {"us", m}}}},
            {"throughput", {of("add"), of("exp"), of("div"), of("fma")}}};
  }
  std::string refusal(const std::string& text) {
    std::ofstream(profile_file()) << text;
    try {
      read_profile();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_file);
      return e.what();
    }
    return "read";
  }
  TemporaryFolder folder_;
};

TEST_F(ProfileTest, TheOneOfThisEnvironmentIsRead) {
  EXPECT_FALSE(read_profile());
  EXPECT_EQ(refusal(good().dump()), "read");
  EXPECT_EQ(profile_summary(*read_profile()),
            "memory 2.0 GB/s copied by 4 threads, launch 2.00 us, exp 2.00 and div 2.00 per ns");
}

TEST_F(ProfileTest, AnythingElseIsRefusedByName) {
  const auto without = [](const char* key) {
    auto profile = good();
    profile.erase(key);
    return profile.dump();
  };
  EXPECT_THAT(refusal(""), HasSubstr("it is no JSON object"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("it is no JSON object"));
  EXPECT_THAT(refusal(good().dump().substr(0, 100)), HasSubstr("it is no JSON object"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("it is no JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("it is of no schema 2"));
  EXPECT_THAT(refusal(without("schema")), HasSubstr("it is of no schema 2"));
  EXPECT_THAT(refusal(without("environment")), HasSubstr("another environment"));
  for (const char* key : {"measured", "bandwidth", "clock", "launch", "throughput"})
    EXPECT_THAT(refusal(without(key)), HasSubstr("figures are missing")) << key;
  auto other = good();
  other["environment"]["cores"] = 10000;
  EXPECT_THAT(refusal(other.dump()), HasSubstr("another environment"));
  other = good();
  other["launch"][0]["us"] = "fast";
  EXPECT_THAT(refusal(other.dump()), HasSubstr("figures are missing"));
  other["launch"] = 3;
  EXPECT_THAT(refusal(other.dump()), HasSubstr("figures are missing"));
}

}  // namespace
}  // namespace cosmati::tools
