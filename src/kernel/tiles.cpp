// Accesses whose offsets differ by a constant stand together, in its order.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/tiles.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace cosmati::kernel {
namespace {

// Whether elements lie some distance apart from lane to lane, but not next to each other.
bool far_apart(const Sum& offset) {
  int lanes = 0;
  for (const auto& [leaves, coefficient] : offset) {
    const auto n = std::count_if(leaves.begin(), leaves.end(), [](const Leaf& leaf) { return leaf.what == Leaf::What::lane; });
    if (n > 1 || (n == 1 && leaves.size() == 1 && coefficient == 1)) return false;
    lanes += static_cast<int>(n);
  }
  return lanes > 0;
}

}  // namespace

std::vector<Tile> tiles(const Kernel& k, const Sums& sums, const Block& statements, unsigned lanes) {
  if (lanes == 1 || statements.size() < lanes) return {};
  std::map<std::tuple<bool, BufferId, Sum>, std::map<std::int64_t, StmtId>> found;
  for (const StmtId s : statements) {
    const auto add = [&](const Ref& ref, bool stored) {
      const auto offset = sums(ref.offset);
      if (!offset || !far_apart(*offset)) return;
      auto [sum, constant] = parted(*offset);
      found[{stored, ref.buffer, std::move(sum)}].emplace(constant, s);
    };
    if (const auto* let = std::get_if<Let>(&k[s].node))
      if (const auto* load = std::get_if<Load>(&k[let->value].node))
        if (!load->guard && k[load->ref.buffer].access == Buffer::Access::read) add(load->ref, false);
    if (const auto* store = std::get_if<Store>(&k[s].node))
      if (!store->guard && k[store->ref.buffer].access == Buffer::Access::write) add(store->ref, true);
  }
  std::vector<Tile> all;
  for (const auto& [key, members] : found) {
    std::vector<StmtId> run;
    std::int64_t last = 0;
    for (const auto& [constant, s] : members) {
      if (!run.empty() && constant != last + 1) run.clear();
      run.push_back(s);
      last = constant;
      if (run.size() < lanes) continue;
      Sum first = std::get<2>(key);
      first[{}] = last + 1 - static_cast<std::int64_t>(lanes);
      all.push_back({std::move(run), std::move(first), std::get<1>(key)});
      run.clear();
    }
  }
  return all;
}

}  // namespace cosmati::kernel
