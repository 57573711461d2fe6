// Dependencies by one pass over the arena in value order, repeated until nothing changes where a stream refers ahead.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/facts.h"

#include <algorithm>
#include <iterator>

#include "support/overloaded.h"

namespace cosmati::oracle {

Slots slots_union(const Slots& a, const Slots& b) {
  Slots out;
  out.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Slots slots_minus(const Slots& a, const Slots& b) {
  Slots out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

const ir::Elementwise* summed_product(const ir::Program& program, const ir::Reduce& reduce) {
  const ir::Reducer& reducer = program[reduce.reducer];
  if (!reducer.builtin || (reducer.name != "sum" && reducer.name != "mean") || !is_float(program[reduce.args[0]].dtype))
    return nullptr;
  const auto* e = std::get_if<ir::Elementwise>(&program[reduce.args[0]].node);
  return e && e->op == ops::Op::mul ? e : nullptr;
}

namespace {

Slots of_axes(const ir::AxisSet& axes) {
  Slots out;
  for (const ir::AxisId a : axes) out.push_back(a.index);
  std::sort(out.begin(), out.end());
  return out;
}

Slots compute(const ir::Program& p, const Facts& f, const ir::Value& value) {
  Slots out;
  for (const ir::ValueId v : ir::operands(value.node)) out = slots_union(out, f.value[v.index]);
  return std::visit(support::overloaded{[&](const ir::Coord& c) { return Slots{c.axis.index}; },
                                        [&](const ir::Reduce& r) {
                                          for (const ir::AxisId a : r.axes) out = slots_union(out, f.range[a.index]);
                                          return slots_minus(out, of_axes(r.axes));
                                        },
                                        [&](const ir::Replace& r) {
                                          ir::AxisSet bound;
                                          Slots inner = f.value[r.of.index], outer;
                                          for (const auto& [axis, e] : r.binds) {
                                            bound.push_back(axis);
                                            inner = slots_union(inner, f.range[axis.index]);
                                            outer = slots_union(outer, f.value[e.index]);
                                          }
                                          if (r.otherwise) outer = slots_union(outer, f.value[r.otherwise->index]);
                                          return slots_union(outer, slots_minus(inner, of_axes(bound)));
                                        },
                                        [&](const ir::Part& part) {
                                          const auto* s = std::get_if<ir::StreamId>(&part.of);
                                          return s ? f.stream[s->index] : out;
                                        },
                                        [&](const ir::Carried& c) {
                                          return slots_union(of_axes(p[c.stream].carries[c.slot].axes), {f.slot(c.stream)});
                                        },
                                        [&](const auto&) { return out; }},
                    value.node);
}

Slots compute_stream(const ir::Program& p, const Facts& f, std::size_t s) {
  const ir::Stream& stream = p.streams[s];
  Slots out = f.range[stream.axis.index];
  for (const ir::Carry& c : stream.carries) {
    out = slots_union(out, f.value[c.init.index]);
    out = slots_union(out, f.value[c.next.index]);
    out = slots_union(out, of_axes(c.axes));
  }
  return slots_minus(out, {stream.piece.index, f.slot(ir::StreamId{static_cast<std::uint32_t>(s)})});
}

}  // namespace

Facts::Facts(const ir::Program& p) : axis_count(static_cast<std::uint32_t>(p.axes.size())) {
  value.resize(p.values.size());
  stream.resize(p.streams.size());
  range.resize(p.axes.size());
  bounds_a_range.resize(p.axes.size());
  stores.resize(p.streams.size());
  rebound.resize(p.streams.size());
  for (bool changed = true; changed;) {
    changed = false;
    const auto update = [&](Slots& to, Slots now) {
      if (to == now) return;
      to = std::move(now);
      changed = true;
    };
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      Slots now;
      for (const auto& bound : {p.axes[a].lo, p.axes[a].hi})
        if (bound) now = slots_union(now, value[bound->index]);
      if (p.axes[a].piece) now = slots_union(now, {slot(*p.axes[a].piece)});  // the elements of the current piece
      update(range[a], std::move(now));
    }
    for (std::size_t v = 0; v < p.values.size(); ++v) update(value[v], compute(p, *this, p.values[v]));
    for (std::size_t s = 0; s < p.streams.size(); ++s) update(stream[s], compute_stream(p, *this, s));
  }
  for (const Slots& r : range)
    for (const std::uint32_t s : r)
      if (s < axis_count) bounds_a_range[s] = true;

  only_summed.assign(p.values.size(), false);
  std::vector<char> read(p.values.size(), false);
  for (const ir::Value& v : p.values) {
    const auto* r = std::get_if<ir::Reduce>(&v.node);
    if (r && summed_product(p, *r))
      only_summed[r->args[0].index] = true;
    else
      for (const ir::ValueId o : ir::operands(v.node)) read[o.index] = true;
  }
  for (const ir::Store& s : p.stores) {
    read[s.value.index] = true;
    for (auto up = s.stream; up; up = p[*up].parent) stores[up->index] = true;
  }
  for (std::size_t v = 0; v < read.size(); ++v)
    if (read[v]) only_summed[v] = false;

  for (const ir::Value& v : p.values) {
    ir::AxisSet axes;
    Slots reads;
    if (const auto* r = std::get_if<ir::Reduce>(&v.node)) {
      axes = r->axes;
      for (const ir::ValueId a : r->args) reads = slots_union(reads, value[a.index]);
    } else if (const auto* r = std::get_if<ir::Replace>(&v.node)) {
      for (const auto& bind : r->binds) axes.push_back(bind.first);
      reads = value[r->of.index];
    }
    for (const std::uint32_t s : reads)
      if (s >= axis_count)
        for (const ir::AxisId a : axes)
          if (p[a].program) rebound[s - axis_count] = ir::set_union(rebound[s - axis_count], {a});
  }

  ambient.assign(p.values.size(), false);
  std::vector<ir::ValueId> stack;
  for (const ir::Store& s : p.stores) {
    stack.push_back(s.value);
    for (const ir::Index& index : s.index) stack.insert(stack.end(), index.begin(), index.end());
  }
  for (const ir::Stream& s : p.streams)
    for (const ir::Carry& c : s.carries) stack.insert(stack.end(), {c.init, c.next});
  while (!stack.empty()) {
    const ir::ValueId v = stack.back();
    stack.pop_back();
    if (ambient[v.index]) continue;
    ambient[v.index] = true;
    const auto* replaced = std::get_if<ir::Replace>(&p[v].node);
    for (const ir::ValueId o : ir::operands(p[v].node))
      if (!replaced || o != replaced->of) stack.push_back(o);
  }
}

}  // namespace cosmati::oracle
