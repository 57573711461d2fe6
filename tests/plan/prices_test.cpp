// Prices of a GPU order plans as the GPU did: what was measured there, on shapes that no rate was set by, is priced again here.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "backends/cuda/cuda.h"
#include "lower/lower.h"
#include "plan/planner.h"
#include "tests/subject.h"

namespace cosmati::plan {
namespace {

struct Measured {
  std::string program;
  std::vector<std::pair<double, Knobs>> candidates;  // microseconds
};

std::vector<Measured> measured() {
  std::ifstream file("tests/plan/h200_rows.txt");
  std::vector<Measured> all;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    if (line[0] != ' ') {
      all.push_back({line, {}});
      continue;
    }
    std::istringstream words(line);
    auto& [us, knobs] = all.back().candidates.emplace_back();
    words >> us;
    for (std::string word; words >> word;) knobs[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return all;
}

// The candidates of a planner and what it takes them for, at arguments like "x=f32[37,1537]".
std::vector<Plan::Priced> priced(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  words >> name;
  const Program program = load(name);
  Arguments arguments;
  for (std::string word; words >> word;) {
    const std::size_t equal = word.find('='), bracket = word.find('[');
    std::vector<std::int64_t> shape;
    std::istringstream extents(word.substr(bracket + 1));
    for (std::string extent; std::getline(extents, extent, ',');) shape.push_back(std::stoll(extent));
    arguments.emplace_back(word.substr(0, equal),
                           TensorView(nullptr, *dtype_from_name(word.substr(equal + 1, bracket - equal - 1)), shape));
  }
  const runtime::Instances instances(program, library::proofs());
  const auto bound = runtime::bind(instances, arguments, {.missing_outputs = true, .read_data = false});
  const Facts facts = runtime::relied_on(runtime::facts_of(bound.inputs.tensors, {}), bound.inputs.tensors);
  const ir::Program& p = bound.instance->inlined;
  const Planner planner(
      p, "text", target_named("cuda"), {}, facts,
      [&](const Mapping& mapping) { return kernel::expand(lower::lower(p, mapping, facts), cuda::native); },
      Planner::Search::all);
  return planner.plan(runtime::shape_of(bound.instance->program, bound.inputs)).candidates;
}

TEST(Prices, OrderPlansAsTheGpuDid) {
  std::vector<double> regrets;
  int right = 0, pairs = 0;
  for (const Measured& m : measured()) {
    const std::vector<Plan::Priced> prices = priced(m.program);
    std::vector<std::pair<double, double>> known;  // price, microseconds
    for (const auto& [us, knobs] : m.candidates)
      for (const Plan::Priced& c : prices)
        if (c.knobs == knobs) known.emplace_back(c.cost.total_us, us);
    EXPECT_EQ(known.size(), m.candidates.size()) << m.program;
    ASSERT_FALSE(known.empty()) << m.program;
    std::sort(known.begin(), known.end());
    double best = known[0].second;
    for (const auto& [price, us] : known) best = std::min(best, us);
    regrets.push_back(known[0].second / best);
    for (std::size_t i = 0; i < known.size(); ++i)
      for (std::size_t k = i + 1; k < known.size(); ++k) {
        const double x = known[i].second, y = known[k].second;
        if (std::max(x, y) > 2 * best || std::abs(x - y) <= 0.05 * std::min(x, y)) continue;
        ++pairs;
        right += x < y;
      }
  }
  std::sort(regrets.begin(), regrets.end());
  const double median = regrets[regrets.size() / 2], order = static_cast<double>(right) / pairs;
  std::cout << "regret of " << regrets.size() << " pairs: median " << median << ", worst " << regrets.back() << "; order "
            << right << " of " << pairs << "\n";
  EXPECT_LE(median, 1.03);
  EXPECT_LE(regrets.back(), 1.25);
  EXPECT_GE(order, 0.9);
}

}  // namespace
}  // namespace cosmati::plan
