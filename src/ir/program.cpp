// The small questions about tile IR that every later level asks: axis sets, the operands of a node, ranges.
// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include <algorithm>
#include <iterator>

#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::ir {

bool contains(const AxisSet& set, AxisId a) { return std::binary_search(set.begin(), set.end(), a); }

AxisSet set_union(const AxisSet& a, const AxisSet& b) {
  AxisSet out;
  out.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

AxisSet set_minus(const AxisSet& a, const AxisSet& b) {
  AxisSet out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::vector<ValueId> operands(const Node& node) {
  std::vector<ValueId> out;
  std::visit(support::overloaded{
                 [](const Const&) {},
                 [](const Coord&) {},
                 [](const Extent&) {},
                 [](const ScalarRef&) {},
                 [&](const Load& n) {
                   for (const Index& dim : n.index) out.insert(out.end(), dim.begin(), dim.end());
                   if (n.otherwise) out.push_back(*n.otherwise);
                 },
                 [&](const Elementwise& n) { out = n.args; },
                 [&](const Reduce& n) { out = n.args; },
                 [&](const Part& n) {
                   if (const auto* of = std::get_if<ValueId>(&n.of)) out.push_back(*of);
                 },
                 [&](const Replace& n) {
                   out.push_back(n.of);
                   for (const auto& [axis, value] : n.binds) out.push_back(value);
                   if (n.otherwise) out.push_back(*n.otherwise);
                 },
                 [](const Carried&) {},
                 [](const Arg&) {},
             },
             node);
  return out;
}

Node map_operands(const Node& node, const std::vector<ValueId>& mapped) {
  std::size_t at = 0;
  auto next = [&](ValueId& slot) {
    COSMATI_CHECK(at < mapped.size(), "{} operands for a node that has more", mapped.size());
    slot = mapped[at++];
  };
  Node out = node;
  std::visit(support::overloaded{
                 [](Const&) {},
                 [](Coord&) {},
                 [](Extent&) {},
                 [](ScalarRef&) {},
                 [&](Load& n) {
                   for (Index& dim : n.index)
                     for (ValueId& v : dim) next(v);
                   if (n.otherwise) next(*n.otherwise);
                 },
                 [&](Elementwise& n) {
                   for (ValueId& v : n.args) next(v);
                 },
                 [&](Reduce& n) {
                   for (ValueId& v : n.args) next(v);
                 },
                 [&](Part& n) {
                   if (auto* of = std::get_if<ValueId>(&n.of)) next(*of);
                 },
                 [&](Replace& n) {
                   next(n.of);
                   for (auto& [axis, value] : n.binds) next(value);
                   if (n.otherwise) next(*n.otherwise);
                 },
                 [](Carried&) {},
                 [](Arg&) {},
             },
             out);
  COSMATI_CHECK(at == mapped.size(), "{} operands for a node that has {}", mapped.size(), at);
  return out;
}

std::vector<bool> used_values(const Program& p) {
  std::vector<bool> used(p.values.size(), false);
  std::vector<ValueId> work;
  const auto use = [&](ValueId v) {
    if (!used[v.index]) work.push_back(v);
    used[v.index] = true;
  };
  const auto use_range = [&](AxisId axis) {
    for (const auto& bound : {p[axis].lo, p[axis].hi})
      if (bound) use(*bound);
  };
  const auto use_stream = [&](StreamId s) {
    use_range(p[s].axis);
    for (const Carry& c : p[s].carries) use(c.init), use(c.next);
  };
  for (const Store& store : p.stores) {
    use(store.value);
    for (const Index& index : store.index)
      for (ValueId part : index) use(part);
    for (std::optional<StreamId> s = store.stream; s; s = p[*s].parent) use_stream(*s);
  }
  while (!work.empty()) {
    const Node& node = p[work.back()].node;
    work.pop_back();
    for (ValueId operand : operands(node)) use(operand);
    if (const auto* coordinate = std::get_if<Coord>(&node)) use_range(coordinate->axis);
    if (const auto* reduce = std::get_if<Reduce>(&node))
      for (AxisId axis : reduce->axes) use_range(axis);
    if (const auto* part = std::get_if<Part>(&node))
      if (const auto* stream = std::get_if<StreamId>(&part->of)) use_stream(*stream);
  }
  return used;
}

std::size_t result_count(const Program& p, const Reduce& r) { return p[r.reducer].finish.results.size(); }

AxisSet range_axes(const Program& p, AxisId a) {
  AxisSet out;
  if (p[a].lo) out = p[*p[a].lo].axes;
  if (p[a].hi) out = set_union(out, p[*p[a].hi].axes);
  return out;
}

static bool reads_memory(const Program& p, ValueId v) {
  const std::vector<ValueId> read = operands(p[v].node);
  return std::holds_alternative<Load>(p[v].node) ||
         std::any_of(read.begin(), read.end(), [&](ValueId operand) { return reads_memory(p, operand); });
}

// Extents and coordinates have 64 bits, and proofs take what they become for exact.
bool narrows_integers(const Program& p) {
  return std::any_of(p.values.begin(), p.values.end(), [&](const Value& v) {
    const auto* n = std::get_if<Elementwise>(&v.node);
    return n && n->op == ops::Op::cast && is_int(v.dtype) && v.dtype != DType::i64_ && p[n->args[0]].dtype == DType::i64_;
  });
}

bool launch_level(const Program& p, AxisId a) {
  if (p[a].piece || !range_axes(p, a).empty()) return false;
  for (const auto& bound : {p[a].lo, p[a].hi})
    if (bound && reads_memory(p, *bound)) return false;
  return true;
}

}  // namespace cosmati::ir
