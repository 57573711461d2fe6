// The conditions of the rule, in the order in which the page states them.
// SPDX-License-Identifier: Apache-2.0
#include "plan/streaming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace cosmati::plan {
namespace {

using ir::AxisId;
using ir::ValueId;
using ops::Op;

bool reduces_over(const ir::Program& p, ValueId v, AxisId axis) {
  const auto* reduce = std::get_if<ir::Reduce>(&p[v].node);
  return reduce && ir::contains(reduce->axes, axis);
}

// Whether `v` is computed from `from` without leaving tile values.
bool depends(const ir::Program& p, ValueId v, ValueId from, std::map<ValueId, bool>& memo) {
  if (v == from) return true;
  if (v < from) return false;
  if (auto it = memo.find(v); it != memo.end()) return it->second;
  bool found = false;
  for (ValueId operand : ir::operands(p[v].node)) found = found || depends(p, operand, from, memo);
  return memo[v] = found;
}

std::set<ValueId> live_values(const ir::Program& p) {
  std::vector<ValueId> stack;
  for (const ir::Store& store : p.stores) stack.push_back(store.value);
  std::set<ValueId> live;
  while (!stack.empty()) {
    ValueId v = stack.back();
    stack.pop_back();
    if (!live.insert(v).second) continue;
    for (ValueId operand : ir::operands(p[v].node)) stack.push_back(operand);
  }
  return live;
}

// The first value over the axis that something other than a reduction over the axis (or a value over it) uses.
std::string escape(const ir::Program& p, AxisId axis) {
  for (const ir::Store& store : p.stores)
    if (ir::contains(p[store.value].axes, axis))
      return fmt::format("a value over {} is stored in {}", p[axis].name, p[store.tensor].name);
  return "";
}

// How the later reduction may use the earlier result: exp(x - m), exp_diff(x, m), or a product or quotient that can be undone.
std::string forbidden_use(const ir::Program& p, const std::set<ValueId>& live, AxisId axis, ValueId earlier) {
  for (ValueId v : live) {
    const auto* e = std::get_if<ir::Elementwise>(&p[v].node);
    if (!e || std::find(e->args.begin(), e->args.end(), earlier) == e->args.end() || !ir::contains(p[v].axes, axis)) continue;
    if (e->op == Op::exp_diff || e->op == Op::mul || e->op == Op::div) continue;
    bool inside_exp = e->op == Op::sub && std::any_of(live.begin(), live.end(), [&](ValueId user) {
                        const auto* outer = std::get_if<ir::Elementwise>(&p[user].node);
                        return outer && outer->op == Op::exp && outer->args[0] == v;
                      });
    if (!inside_exp)
      return fmt::format("an earlier result over {} is used by {}, not by exp(x - m), exp_diff(x, m) or scaling", p[axis].name,
                         ops::name(e->op));
  }
  return "";
}

}  // namespace

std::vector<std::string> streaming_lines(const ir::Program& p) {
  std::set<ValueId> live = live_values(p);
  std::vector<std::string> lines;
  for (std::uint32_t a = 0; a < p.axes.size(); ++a) {
    AxisId axis{a};
    if (p[axis].program || p[axis].piece) continue;
    std::vector<ValueId> reductions;  // a later one may depend on an earlier one
    for (ValueId v : live)
      if (reduces_over(p, v, axis)) reductions.push_back(v);
    std::string names, reason;
    bool dependent = false;
    for (std::size_t i = 0; i < reductions.size(); ++i) {
      ValueId v = reductions[i];
      names += (names.empty() ? "" : " -> ") + p[std::get<ir::Reduce>(p[v].node).reducer].name;
      for (std::size_t j = 0; j < i; ++j) {
        std::map<ValueId, bool> memo;
        if (!depends(p, v, reductions[j], memo)) continue;
        dependent = true;
        if (reason.empty()) reason = forbidden_use(p, live, axis, reductions[j]);
      }
    }
    if (!dependent) continue;
    if (reason.empty()) reason = escape(p, axis);
    if (reason.empty()) reason = "the rule applies, but this planner keeps values over the axis instead of streaming them";
    lines.push_back(fmt::format("streaming over {} ({}): not applied: {}", p[axis].name, names, reason));
  }
  return lines;
}

}  // namespace cosmati::plan
