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

// A program at arguments like "x=f32[37,1537]".
struct Bound {
  explicit Bound(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const Program program = load(name);
    Arguments arguments;
    for (std::string word; words >> word;) {
      const std::size_t equal = word.find('='), bracket = word.find('[');
      std::vector<std::int64_t> shape_of;
      std::istringstream extents(word.substr(bracket + 1));
      for (std::string extent; std::getline(extents, extent, ',');) shape_of.push_back(std::stoll(extent));
      arguments.emplace_back(word.substr(0, equal),
                             TensorView(nullptr, *dtype_from_name(word.substr(equal + 1, bracket - equal - 1)), shape_of));
    }
    const runtime::Instances instances(program, library::proofs());
    const auto bound = runtime::bind(instances, arguments, {.missing_outputs = true, .read_data = false});
    instance = bound.instance;
    facts = runtime::relied_on(runtime::facts_of(bound.inputs.tensors, {}), bound.inputs.tensors);
    shape = runtime::shape_of(instance->program, bound.inputs);
  }
  const ir::Program& program() const { return instance->inlined; }
  kernel::Kernel lowered(const Mapping& mapping) const {
    return kernel::expand(lower::lower(program(), mapping, facts), cuda::native);
  }
  std::shared_ptr<const runtime::Instance> instance;
  Facts facts;
  kernel::Shape shape;
};

// How prices order what was measured: of one program and shape a price and microseconds for each candidate.
struct Order {
  using Known = std::vector<std::pair<double, double>>;
  std::vector<double> regrets;
  int right = 0, pairs = 0;
  void add(Known known) {
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
  void expect(double median, double worst, double order) {
    std::sort(regrets.begin(), regrets.end());
    std::cout << "regret of " << regrets.size() << ": median " << regrets[regrets.size() / 2] << ", worst " << regrets.back()
              << "; order " << right << " of " << pairs << "\n";
    EXPECT_LE(regrets[regrets.size() / 2], median);
    EXPECT_LE(regrets.back(), worst);
    EXPECT_GE(right, order * pairs);
  }
};

TEST(Prices, OrderPlansAsTheGpuDid) {
  Order order;
  for (const Measured& m : measured()) {
    const Bound at(m.program);
    const Planner planner(
        at.program(), "text", target_named("cuda"), {}, at.facts, [&](const Mapping& mapping) { return at.lowered(mapping); },
        Planner::Search::all);
    const std::vector<Plan::Priced> prices = planner.plan(at.shape).candidates;
    Order::Known known;
    for (const auto& [us, knobs] : m.candidates)
      for (const Plan::Priced& c : prices)
        if (c.knobs == knobs) known.emplace_back(c.cost.total_us, us);
    EXPECT_EQ(known.size(), m.candidates.size()) << m.program;
    ASSERT_FALSE(known.empty()) << m.program;
    order.add(std::move(known));
  }
  order.expect(1.03, 1.25, 0.9);
}

}  // namespace
}  // namespace cosmati::plan
