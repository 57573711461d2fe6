// Bandwidths and medians: that they are what they say; profiles: which are read.
// SPDX-License-Identifier: Apache-2.0
#include "tools/streams.h"

#include <gmock/gmock.h>

#include <cosmati/error.h>
#include <cosmati/machine.h>
#include <cstdlib>

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

TEST(Streams, EveryKindIsMeasuredOnAnyNumberOfThreads) {
  for (const Stream stream : {Stream::read, Stream::write, Stream::copy})
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
    return {{"kind", "cosmati-profile"},
            {"schema", profile_schema},
            {"environment", nlohmann::ordered_json::parse(environment())},
            {"measured", "2026-01-02T03:04:05Z"},
            {"bandwidth", {{{"level", "memory"}, {"threads", 4}, {"copy_gb_s", m}}}},
            {"launch", {{{"elements", 16}, {"threads", 1}, {"us", m}}}},
            {"throughput", {{{"operation", "exp"}, {"per_ns", m}}, {{"operation", "div"}, {"per_ns", m}}}}};
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
  EXPECT_THAT(refusal("{}"), HasSubstr("it is of no schema 1"));
  EXPECT_THAT(refusal(without("schema")), HasSubstr("it is of no schema 1"));
  EXPECT_THAT(refusal(without("environment")), HasSubstr("another environment"));
  for (const char* key : {"measured", "bandwidth", "launch", "throughput"})
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
