// Homes: arrays in scratch, filled before the first use.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/lowering.h"

namespace cosmati::lower {

ExprId Lowering::array_lo(AxisId axis) {
  if (!ir::launch_level(p_, axis)) return bound(hulls_.of(axis)->lo);
  return p_[axis].lo ? launch_value(*p_[axis].lo) : b_.integer(0);
}

ExprId Lowering::array_extent(AxisId axis) {
  if (ir::launch_level(p_, axis)) return axis_extent(axis);
  const std::optional<prove::Hull>& hull = hulls_.of(axis);
  COSMATI_CHECK(hull, "axis {} has no hull", p_[axis].name);
  return maximum(b_.integer(0), sub(bound(hull->hi), bound(hull->lo)));
}

Array Lowering::scratch(kernel::Buffer::Kind kind, const std::string& name, DType dtype, std::vector<AxisId> axes) {
  const int lanes = kind == kernel::Buffer::Kind::worker_scratch ? instance_lanes_ : 1;
  ExprId elements = b_.integer(lanes);
  for (AxisId axis : axes) elements = mul(elements, array_extent(axis));
  k_.buffers.push_back({kind, kernel::Buffer::Access::read_write, 0, elements, b_.unique_name(name), reg(dtype)});
  return {BufferId{static_cast<std::uint32_t>(k_.buffers.size() - 1)}, std::move(axes), lanes};
}

ExprId Lowering::array_offset(const Array& array, Scope* s) {
  return array_offset(array, [&](AxisId axis) { return coordinate(s, axis); });
}

// The element of a value over `axes`.
ExprId Lowering::read(const Array& array, const AxisSet& axes, Scope* s) {
  return guarded_load(array.buffer, array_offset(array, s), inside(axes, s));
}

std::vector<AxisId> Lowering::step_axes(ValueId v) const {
  std::vector<AxisId> steps;
  for (AxisId axis : p_[v].axes) {
    const auto& bound = phase_->instance_axes;
    if (std::find(bound.begin(), bound.end(), axis) == bound.end() && !p_[axis].piece) steps.push_back(axis);
  }
  return steps;
}

// A phase that loops over program axes evaluates again: an array over all instances is not a worker's.
bool Lowering::instances_only(ValueId v) const {
  auto steps = step_axes(v);
  return std::none_of(steps.begin(), steps.end(), [&](AxisId axis) { return p_[axis].program; });
}

// All of it is there at once.
bool Lowering::in_registers(ValueId v) const {
  const auto steps = step_axes(v);
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [&](AxisId axis) { return shape(axis).whole; });
}

const Array& Lowering::worker_array(ValueId v) {
  std::vector<AxisId> steps = step_axes(v);
  auto key = std::make_tuple(v, steps, instance_lanes_);
  auto it = worker_arrays_.find(key);
  if (it == worker_arrays_.end())
    it = worker_arrays_.emplace(key, scratch(kernel::Buffer::Kind::worker_scratch, name_of(v), p_[v].dtype, steps)).first;
  return it->second;
}

// Where the array of a value is filled.
Scope* Lowering::fill_scope(ValueId v, Scope* from) { return home_scope(v, from, step_axes(v)); }

// Whether the nest of loops that `s` is the innermost of visits every element of the array of `v` once, with lanes where a nest
// of its own would have them: it then fills the array on its way.
bool Lowering::fills_on_the_way(ValueId v, Scope* s) {
  const std::vector<AxisId> steps = step_axes(v);
  Scope* outer = fill_scope(v, s);
  if (outer->nest == s->nest) return false;  // the array is of this nest, and ends with it
  std::size_t bound = 0;
  for (Scope* loop = s; loop != outer; loop = loop->parent, ++bound) {
    const bool step = std::any_of(steps.begin(), steps.end(), [&](AxisId axis) { return loop->coordinates.count(axis); });
    if (loop->nest == 0 || loop->nest != s->nest || !step) return false;
  }
  const auto own = nest(steps, !lanes_taken(outer));
  const bool lanes = std::any_of(own.begin(), own.end(), [](const auto& axis) { return axis.second.lanes > 1; });
  return bound == steps.size() && (!lanes || lanes_taken(s));
}

void Lowering::store_element(const Array& array, ValueId v, ExprId value, Scope* s) {
  b_.store(*s->block, array.buffer, array_offset(array, s), value, inside(p_[v].axes, s));
}

const Array& Lowering::filled_array(ValueId v, Scope* from) {
  const Array& array = worker_array(v);
  Scope* s = fill_scope(v, from);
  if (s->filled[v]) return array;
  s->filled[v] = true;
  filling_.insert(v);
  reduce_before({v}, s);
  loops(array.axes, s,
        [&](Scope* inner) { each_copy(p_[v].axes, inner, [&] { store_element(array, v, emit(v, inner), inner); }); });
  filling_.erase(v);
  return array;
}

void Lowering::emit_fill(ValueId v, Scope* root) {
  if (step_axes(v).empty() || in_registers(v))
    each_copy(p_[v].axes, root, [&] { emit(v, root); });
  else
    filled_array(v, root);
}

void Lowering::emit_keep(ValueId v, Scope* root) {
  std::vector<AxisId> axes(p_[v].axes.begin(), p_[v].axes.end());
  auto it = keeping_.find(v);
  if (it == keeping_.end())
    it = keeping_.emplace(v, scratch(kernel::Buffer::Kind::launch_scratch, name_of(v), p_[v].dtype, axes)).first;
  const Array& array = it->second;
  reduce_before({v}, root);
  loops(step_axes(v), root,
        [&](Scope* inner) { each_copy(p_[v].axes, inner, [&] { store_element(array, v, emit(v, inner), inner); }); });
}

}  // namespace cosmati::lower
