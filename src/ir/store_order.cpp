// A step of a stream reads what was there before it: a store waits for those that load what it stores.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "ir/program.h"

namespace cosmati::ir {
namespace {

// The tensors that values load, in the streams too whose results they are.
class Loads {
 public:
  explicit Loads(const Program& p) : p_(p) {}
  std::set<TensorId> tensors;

  void store(const Store& s) {
    value(s.value);
    for (const Index& index : s.index)
      for (ValueId part : index) value(part);
  }
  void body(StreamId s) {
    if (!streams_.insert(s).second) return;
    range(p_[s].axis);
    for (const Carry& carry : p_[s].carries) value(carry.init), value(carry.next);
    for (const Store& st : p_.stores)
      if (st.stream == s) store(st);
    for (std::uint32_t child = 0; child < p_.streams.size(); ++child)
      if (p_.streams[child].parent == s) body(StreamId{child});
  }

 private:
  void value(ValueId v) {
    if (!values_.insert(v).second) return;
    const Node& node = p_[v].node;
    if (const auto* load = std::get_if<Load>(&node)) tensors.insert(load->tensor);
    for (ValueId operand : operands(node)) value(operand);
    if (const auto* reduce = std::get_if<Reduce>(&node))
      for (AxisId axis : reduce->axes) range(axis);
    if (const auto* part = std::get_if<Part>(&node))
      if (const auto* s = std::get_if<StreamId>(&part->of)) body(*s);
  }
  void range(AxisId axis) {
    for (const auto& bound : {p_[axis].lo, p_[axis].hi})
      if (bound) value(*bound);
  }

  const Program& p_;
  std::set<ValueId> values_;
  std::set<StreamId> streams_;
};

bool stores_inside(const Program& p, StreamId id) {
  return std::any_of(p.stores.begin(), p.stores.end(), [&](const Store& store) {
    for (std::optional<StreamId> s = store.stream; s; s = p[*s].parent)
      if (*s == id) return true;
    return false;
  });
}

}  // namespace

std::optional<std::vector<std::uint32_t>> stores_in_order(const Program& p, StreamId stream,
                                                          const std::function<bool(TensorId, TensorId)>& same) {
  std::vector<std::pair<std::uint32_t, std::set<TensorId>>> left;
  for (std::uint32_t i = 0; i < p.stores.size(); ++i) {
    if (p.stores[i].stream != stream) continue;
    Loads loads(p);
    loads.store(p.stores[i]);
    left.emplace_back(i, std::move(loads.tensors));
  }
  const auto loaded = [&](const std::set<TensorId>& tensors, std::uint32_t store) {
    return std::any_of(tensors.begin(), tensors.end(), [&](TensorId t) { return same(t, p.stores[store].tensor); });
  };
  for (std::uint32_t child = 0; child < p.streams.size(); ++child) {
    if (p.streams[child].parent != stream || !stores_inside(p, StreamId{child})) continue;
    Loads loads(p);
    loads.body(StreamId{child});
    for (const auto& [store, own] : left)
      if (loaded(loads.tensors, store)) return std::nullopt;
  }
  std::vector<std::uint32_t> order;
  while (!left.empty()) {
    const auto next = std::find_if(left.begin(), left.end(), [&](const auto& one) {
      return std::none_of(left.begin(), left.end(),
                          [&](const auto& other) { return other.first != one.first && loaded(other.second, one.first); });
    });
    if (next == left.end()) return std::nullopt;
    order.push_back(next->first);
    left.erase(next);
  }
  return order;
}

}  // namespace cosmati::ir
