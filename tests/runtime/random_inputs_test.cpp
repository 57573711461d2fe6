// Random arguments keep to their contracts, however wide those are.
// SPDX-License-Identifier: Apache-2.0
#include "library/random_inputs.h"

#include <cosmati/cosmati.h>

#include <gtest/gtest.h>

#include <set>

#include "language/source.h"

namespace cosmati {
namespace {

std::vector<std::int64_t> random_integers(const std::string& contract) {
  const Program program =
      parse("program f(in x: i64[row] in " + contract + ", out y: i64[row]) {\n parallel row { y[row] = x }\n}").front();
  std::vector<std::int64_t> all;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto owned = library::random_inputs(program.source().instantiate({}), seed);
    if (!owned) continue;
    const auto* x = reinterpret_cast<const std::int64_t*>(owned->storage[0].data());
    const std::int64_t n = owned->inputs.tensors[0].elements();
    if (contract.ends_with("distinct")) {
      EXPECT_EQ(std::set<std::int64_t>(x, x + n).size(), static_cast<std::size_t>(n));
    }
    all.insert(all.end(), x, x + n);
  }
  return all;
}

TEST(RandomInputs, DistinctIntegersOfWideContractsNeedNoMemoryForTheRest) {
  const std::vector<std::int64_t> all = random_integers("0 .. 1000000000000000 distinct");
  EXPECT_GT(all.size(), 50u);
  for (std::int64_t v : all) EXPECT_TRUE(v >= 0 && v < 1000000000000000);
  EXPECT_GT(*std::max_element(all.begin(), all.end()), 500000000000000);
}

TEST(RandomInputs, ContractsReachTheLimitsOfTheirType) {
  EXPECT_GT(random_integers("-9223372036854775807 .. 9223372036854775807 distinct").size(), 50u);
  const std::vector<std::int64_t> high = random_integers("9223372036854775800 .. 9223372036854775807");
  EXPECT_GT(high.size(), 50u);
  for (std::int64_t v : high) EXPECT_GE(v, 9223372036854775800);
}

TEST(RandomInputs, DistinctIntegersFillTheirRange) {
  EXPECT_EQ(std::set<std::int64_t>({7, 8, 9}), [] {
    const std::vector<std::int64_t> all = random_integers("7 .. 10 distinct");
    return std::set<std::int64_t>(all.begin(), all.end());
  }());
}

}  // namespace
}  // namespace cosmati
