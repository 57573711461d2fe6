// What the printer decides before it prints: which values are reached, how often each is used, and the innermost stream whose
// body each belongs to.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "language/names.h"
#include "language/printer.h"
#include "support/overloaded.h"

namespace cosmati::language {

using ir::AxisId;
using ir::StreamId;
using ir::ValueId;

Printer::Printer(const ir::Program& program)
    : p_(program),
      uses_(program.values.size(), 0),
      forced_(program.values.size(), false),
      reached_(program.values.size(), false),
      ready_(program.values.size(), false),
      axis_ready_(program.axes.size(), false),
      stream_ready_(program.streams.size(), false),
      homes_(program.values.size()),
      bound_(program.values.size()),
      reducer_names_(program.reducers.size()) {
  choose_names();
  count_uses();
  find_homes();
}

void Printer::choose_names() {
  for (const auto& [is_tensor, at] : p_.parameters) pool_.reserve(is_tensor ? p_.tensors[at].name : p_.scalars[at].name);
  for (const ir::Tensor& t : p_.tensors) tensor_names_.push_back(t.name);
  for (const ir::Scalar& s : p_.scalars) scalar_names_.push_back(s.name);
  for (const ir::Axis& a : p_.axes) axis_names_.push_back(a.piece ? std::string() : pool_.claim(a.name));
  for (const ir::Stream& s : p_.streams) {
    carry_names_.emplace_back();
    for (const ir::Carry& c : s.carries) carry_names_.back().push_back(pool_.claim(c.name));
  }
  for (const auto& [name, value] : p_.names) {
    const bool carried = std::holds_alternative<ir::Carried>(p_[value].node) ||
                         (std::holds_alternative<ir::Part>(p_[value].node) &&
                          std::holds_alternative<StreamId>(std::get<ir::Part>(p_[value].node).of));
    if (!carried && user_names_.emplace(value, name).second) pool_.avoid(name);
  }
  for (const std::string& name : builtin_names()) functions_.reserve(name);
}

void Printer::count_uses() {
  std::vector<ValueId> work;
  std::vector<bool> axis_seen(p_.axes.size(), false), stream_seen(p_.streams.size(), false);
  auto use = [&](ValueId v) {
    ++uses_[v.index];
    if (reached_[v.index]) return;
    reached_[v.index] = true;
    work.push_back(v);
  };
  auto use_axis = [&](AxisId id) {
    id = outside(id);
    const ir::Axis& axis = p_[id];
    if (axis_seen[id.index] || range_axes(p_, id).empty()) return;
    axis_seen[id.index] = true;
    use(*axis.lo);
    use(*axis.hi);
  };
  auto use_stream = [&](StreamId id) {
    if (stream_seen[id.index]) return;
    stream_seen[id.index] = true;
    use_axis(p_[id].axis);
    for (const ir::Carry& c : p_[id].carries) {
      use(c.init);
      use(c.next);
    }
  };
  for (const ir::Store& s : p_.stores) {
    use(s.value);
    for (const ir::Index& dim : s.index)
      for (ValueId v : dim) use(v);
    for (std::optional<StreamId> stream = s.stream; stream; stream = p_[*stream].parent) use_stream(*stream);
  }
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    for (ValueId operand : ir::operands(p_[v].node)) use(operand);
    std::visit(support::overloaded{[&](const ir::Coord& n) { use_axis(n.axis); },
                                   [&](const ir::Reduce& n) {
                                     for (AxisId axis : n.axes) use_axis(axis);
                                   },
                                   [&](const ir::Part& n) {
                                     if (const StreamId* s = std::get_if<StreamId>(&n.of)) use_stream(*s);
                                   },
                                   [&](const ir::Replace& n) {
                                     // Inside a stream's body the same text would mean the piece, so `of` is a let outside.
                                     for (const auto& [axis, to] : n.binds)
                                       for (const ir::Stream& s : p_.streams)
                                         if (s.axis == axis) forced_[n.of.index] = true;
                                   },
                                   [](const auto&) {}},
               p_[v].node);
  }
}

StreamId Printer::inner(StreamId a, StreamId b) const {
  if (!a || !b) return a ? a : b;
  for (std::optional<StreamId> s = a; s; s = p_[*s].parent)
    if (*s == b) return a;
  return b;
}

// Operands come before their users in the arena, so one pass is enough.
void Printer::find_homes() {
  for (std::size_t i = 0; i < p_.values.size(); ++i) {
    StreamId home;
    for (ValueId v : ir::operands(p_.values[i].node)) home = inner(home, homes_[v.index]);
    auto of_axis = [&](AxisId axis) {
      if (p_[axis].piece) home = inner(home, *p_[axis].piece);
    };
    std::visit(support::overloaded{[&](const ir::Coord& n) { of_axis(n.axis); },
                                   [&](const ir::Reduce& n) {
                                     for (AxisId axis : n.axes) of_axis(axis);
                                   },
                                   [&](const ir::Replace& n) {
                                     for (const auto& bind : n.binds) of_axis(bind.first);
                                   },
                                   [&](const ir::Carried& n) { home = inner(home, n.stream); },
                                   [&](const ir::Part& n) {
                                     const StreamId* s = std::get_if<StreamId>(&n.of);
                                     if (s && p_[*s].parent) home = inner(home, *p_[*s].parent);
                                   },
                                   [](const auto&) {}},
               p_.values[i].node);
    homes_[i] = home;
  }
}

AxisId Printer::outside(AxisId axis) const {
  while (p_[axis].piece) axis = p_[*p_[axis].piece].axis;
  return axis;
}

bool Printer::is_local(AxisId axis, ValueId to) const {
  const ir::Coord* coord = std::get_if<ir::Coord>(&p_[to].node);
  return coord && p_[coord->axis].piece && p_[*p_[coord->axis].piece].axis == axis;
}

bool Printer::is_leaf(ValueId v) const { return ir::is_leaf(p_[v].node); }

bool Printer::is_trivial(ValueId v) const {
  if (is_leaf(v)) return true;
  if (const auto* n = std::get_if<ir::Elementwise>(&p_[v].node))
    return n->op == ops::Op::cast && (is_trivial(n->args[0]) || is_let(n->args[0]));
  const auto* n = std::get_if<ir::Load>(&p_[v].node);
  if (!n || n->otherwise) return false;
  return std::all_of(n->index.begin(), n->index.end(), [&](const ir::Index& dim) {
    return std::all_of(dim.begin(), dim.end(), [&](ValueId i) { return is_leaf(i); });
  });
}

bool Printer::is_let(ValueId v) const {
  if (is_leaf(v)) return false;
  if (const auto* n = std::get_if<ir::Replace>(&p_[v].node))
    if (!n->otherwise &&
        std::all_of(n->binds.begin(), n->binds.end(), [&](const auto& b) { return is_local(b.first, b.second); }))
      return false;
  return forced_[v.index] || user_names_.count(v) || (uses_[v.index] > 1 && !is_trivial(v));
}

}  // namespace cosmati::language
