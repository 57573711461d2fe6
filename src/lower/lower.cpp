// Phases, the grid, and what is known when a launch starts.
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <utility>

#include "kernel/ahead.h"
#include "kernel/fences.h"
#include "lower/lowering.h"
#include "plan/lanes.h"
#include "support/overloaded.h"

namespace cosmati::lower {

using support::overloaded;

kernel::Kernel Lowering::run() {
  k_.name = p_.name;
  for (std::uint32_t i = 0; i < p_.tensors.size(); ++i) {
    const ir::Tensor& t = p_.tensors[i];
    auto access = t.access == ir::Access::in    ? kernel::Buffer::Access::read
                  : t.access == ir::Access::out ? kernel::Buffer::Access::write
                                                : kernel::Buffer::Access::read_write;
    const bool aliased = std::any_of(facts_.aliases.begin(), facts_.aliases.end(),
                                     [&](const auto& pair) { return pair.first.index == i || pair.second.index == i; });
    k_.buffers.push_back({kernel::Buffer::Kind::argument, access, i, {}, b_.unique_name(t.name), t.dtype, aliased});
  }
  for (const plan::Phase& phase : m_.phases) lower_phase(phase);
  return std::move(k_);
}

// ---- launch-level values -----------------------------------------------------------------------------------------------

ExprId Lowering::param(kernel::Param::Source source, std::uint32_t a, std::uint32_t b, const std::string& name, DType dtype) {
  for (std::uint32_t i = 0; i < k_.params.size(); ++i)
    if (k_.params[i].source == source && k_.params[i].a == a && k_.params[i].b == b) return b_.param(kernel::ParamId{i});
  k_.params.push_back({source, a, b, b_.unique_name(name), dtype});
  return b_.param(kernel::ParamId{static_cast<std::uint32_t>(k_.params.size() - 1)});
}

ExprId Lowering::extent(AxisId axis) {
  return param(kernel::Param::Source::extent, axis.index, 0, "extent_" + p_[axis].name, DType::i64_);
}

ExprId Lowering::stride(TensorId tensor, std::uint32_t dim) {
  if (facts_.unit_stride[tensor.index][dim]) return b_.integer(1);
  return param(kernel::Param::Source::stride, tensor.index, dim, fmt::format("stride_{}_{}", p_[tensor].name, dim), DType::i64_);
}

ExprId Lowering::scalar_register(ir::ScalarId s) {
  return b_.cast(reg(p_[s].dtype), param(kernel::Param::Source::scalar, s.index, 0, p_[s].name, p_[s].dtype));
}

ExprId Lowering::bound(const prove::Bound& terms) {
  ExprId total = b_.integer(0);
  for (const auto& term : terms) {
    ExprId product = b_.integer(term.coefficient);
    for (ValueId factor : term.factors) {
      const ir::Value& v = p_[factor];
      if (const auto* e = std::get_if<ir::Extent>(&v.node))
        product = mul(product, extent(e->axis));
      else
        product = mul(product, as_i64(scalar_register(std::get<ir::ScalarRef>(v.node).scalar)));
    }
    total = add(total, product);
  }
  return total;
}

// Axes made by substitution have no parameter of their own: theirs is computed.
ExprId Lowering::axis_extent(AxisId axis) {
  if ((!p_[axis].lo && !p_[axis].hi) || p_[axis].in_dims || p_[axis].program) return extent(axis);
  ExprId lo = p_[axis].lo ? launch_value(*p_[axis].lo) : b_.integer(0);
  return maximum(b_.integer(0), sub(launch_value(*p_[axis].hi), lo));
}

ExprId Lowering::launch_value(ValueId v) {
  const ir::Value& value = p_[v];
  return std::visit(
      overloaded{
          [&](const ir::Const& n) { return is_float(value.dtype) ? real(value.dtype, n.f) : b_.integer(n.i, reg(value.dtype)); },
          [&](const ir::Extent& n) { return extent(n.axis); }, [&](const ir::ScalarRef& n) { return scalar_register(n.scalar); },
          [&](const ir::Elementwise& n) {
            Arguments args;
            for (ValueId arg : n.args) args.push_back(launch_value(arg));
            return apply(n.op, args, value.dtype);
          },
          [&](const auto&) -> ExprId { throw InternalError("a launch-level value has a node that needs a group"); }},
      value.node);
}

// ---- phases ------------------------------------------------------------------------------------------------------------

void Lowering::lower_phase(const plan::Phase& phase) {
  kernel::Phase out{phase.name, {}, {}};
  Scope root{nullptr, &out.body, {}};
  phase_ = &phase;
  const std::set<ValueId> values = plan::values_of(p_, m_, phase);
  phase_values_.assign(values.begin(), values.end());
  lanes_ = instance_lanes_ = 1;
  for (const place::AxisMap& map : phase.placement.axes) lanes_ = std::max(lanes_, static_cast<int>(place::group_lanes(map)));
  out.lanes = lanes_;
  out.apart = m_.apart && lanes_ > 1;
  out.packed = m_.packed;
  ranges_.clear();
  part_.reset();
  out.groups = only_where_needed(phase, decode_grid(phase, root));
  runs_stores_ = std::any_of(phase.roots.begin(), phase.roots.end(),
                             [](const plan::Root& r) { return std::holds_alternative<plan::StreamRoot>(r); });

  std::vector<AxisId> looped;
  for (AxisId axis : phase.instance_axes)
    if (!root.coordinates.count(axis)) looped.push_back(axis);
  const auto shapes = nest(looped, true);
  for (const auto& [axis, shape] : shapes) instance_lanes_ = std::max(instance_lanes_, static_cast<int>(shape.lanes));
  std::map<ValueId, std::vector<ValueId>> accumulated;  // by the first of those over the same axes
  for (const plan::Root& r : phase.roots)
    if (const auto* n = std::get_if<plan::AccumulateRoot>(&r)) {
      begin_accumulating(n->reduce, &root);
      const auto same = std::find_if(accumulated.begin(), accumulated.end(),
                                     [&](const auto& group) { return p_[group.first].axes == p_[n->reduce].axes; });
      (same == accumulated.end() ? accumulated[n->reduce] : same->second).push_back(n->reduce);
    }
  loops(shapes, {}, {}, &root, [&](Scope* s, const Arguments&) {
    s->instance = true;
    const auto ranges = ranges_;
    for (AxisId axis : phase.instance_axes) ranges_.erase(axis);
    hold_whole_axes(s);
    for (const plan::Root& r : phase.roots)
      std::visit(overloaded{[&](const plan::StoreRoot& n) { emit_store(p_.stores[n.store], s); },
                            [&](const plan::KeepRoot& n) { emit_keep(n.value, s); },
                            [&](const plan::PartRoot& n) { emit_parts(n.reduce, s); },
                            [&](const plan::AccumulateRoot& n) {
                              if (const auto same = accumulated.find(n.reduce); same != accumulated.end())
                                emit_accumulate(same->second, s);
                            },
                            [&](const plan::StreamRoot& n) { stream_results(n.stream, s); },
                            [&](const plan::FillRoot& n) { emit_fill(n.value, s); }},
                 r);
    ranges_ = ranges;
    return Arguments{};
  });
  kept_.merge(keeping_);
  parts_.merge(leaving_parts_);
  k_.phases.push_back(std::move(out));
}

// What is kept for others is left out where none of them runs: its loads may rely on the axes that those have.
ExprId Lowering::only_where_needed(const plan::Phase& phase, ExprId groups) {
  if (within_.empty()) within_ = ir::evaluated_within(p_);
  std::optional<AxisSet> needed;
  for (const plan::Root& root : phase.roots) {
    const auto* keep = std::get_if<plan::KeepRoot>(&root);
    const auto* part = std::get_if<plan::PartRoot>(&root);
    const auto* accumulate = std::get_if<plan::AccumulateRoot>(&root);
    if (!keep && !part && !accumulate) return groups;
    const AxisSet& here = within_[(keep ? keep->value : part ? part->reduce : accumulate->reduce).index];
    needed = needed ? ir::set_minus(*needed, ir::set_minus(*needed, here)) : here;
  }
  for (AxisId axis : p_.program_axes) {
    const auto& bound = phase.instance_axes;
    if (!needed || !ir::contains(*needed, axis) || std::find(bound.begin(), bound.end(), axis) != bound.end()) continue;
    if (ir::launch_level(p_, axis))
      groups = b_.apply(Op::where, {b_.apply(Op::lt, {b_.integer(0), axis_extent(axis)}), groups, b_.integer(0)});
  }
  return groups;
}

// Digits fast to slow, each worth the product of the faster ones. An axis that only has grid digits is bound here; of one that
// has others a group gets a range of neighbours.
ExprId Lowering::decode_grid(const plan::Phase& phase, Scope& root) {
  ExprId groups = b_.integer(1);
  const place::Size used = place::count(phase.placement, place::Res::grid);
  for (const place::AxisMap& map : phase.placement.axes) {
    const auto on_grid = [](const place::Digit& d) { return d.res == place::Res::grid; };
    if (std::none_of(map.digits.begin(), map.digits.end(), on_grid)) continue;
    ExprId base = b_.integer(0), weight = b_.integer(1), block = b_.integer(1);
    for (const place::Digit& digit : map.digits) {
      if (on_grid(digit)) {
        ExprId index = b_.apply(Op::floordiv, {b_.group(), size(digit.pos)});
        // The slowest digit of the grid needs no modulo.
        if (!(digit.pos * digit.size == used)) index = b_.apply(Op::mod, {index, size(digit.size)});
        base = add(base, mul(index, weight));
        groups = mul(groups, size(digit.size));
      } else {
        block = mul(block, size(digit.size));
      }
      weight = mul(weight, size(digit.size));
    }
    const bool others = !std::all_of(map.digits.begin(), map.digits.end(), on_grid);
    const ExprId lo = p_[map.axis].lo ? launch_value(*p_[map.axis].lo) : b_.integer(0);
    const ExprId first = b_.let(*root.block, p_[map.axis].name, add(lo, base));
    if (!others) {
      root.coordinates[map.axis] = {{first}};
      continue;
    }
    const auto& instances = phase.instance_axes;
    if (plan::accumulates(phase) || std::find(instances.begin(), instances.end(), map.axis) == instances.end()) {
      const place::Digit& digit = map.digits.back();
      ExprId index = b_.apply(Op::mod, {b_.apply(Op::floordiv, {b_.group(), size(digit.pos)}), size(digit.size)});
      index = b_.let(*root.block, "part", index);
      if (part_) index = add(mul(part_->first, size(digit.size)), index);
      part_ = {b_.let(*root.block, "part", index), (part_ ? part_->second : 1) * digit.size.factor};
    }
    const ExprId end = add(p_[map.axis].lo ? launch_value(*p_[map.axis].lo) : b_.integer(0), axis_extent(map.axis));
    const ExprId last = b_.let(*root.block, "last", b_.apply(Op::minimum, {add(first, block), end}));
    ranges_[map.axis] = {first, last};
  }
  return groups;
}

ExprId Lowering::size(const place::Size& s) {
  ExprId product = b_.integer(s.factor);
  for (const place::Part& part : s.parts) {
    ExprId extent = axis_extent(part.axis);
    if (part.over != 1) extent = b_.apply(Op::floordiv, {add(extent, b_.integer(part.over - 1)), b_.integer(part.over)});
    product = mul(product, extent);
  }
  return product;
}

kernel::Kernel lower(const ir::Program& program, const plan::Mapping& mapping, const plan::Facts& facts) {
  kernel::Kernel k = Lowering(program, mapping, facts).run();
  if (mapping.ahead) kernel::fetch_ahead(k);
  if (mapping.apart) {
    kernel::SameMemory same;
    for (const auto& [in, out] : facts.aliases) same.insert({in.index, out.index});
    kernel::add_fences(k, same);
  }
  kernel::verify(k, "lower");
  return k;
}

}  // namespace cosmati::lower
