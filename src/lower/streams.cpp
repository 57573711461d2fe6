// Streams: a loop over the pieces that carries registers, or arrays where a carried value has axes of its own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/lowering.h"

namespace cosmati::lower {

std::vector<CarriedState>& Lowering::carried(StreamId stream, Scope* from) {
  for (Scope* s = from; s; s = s->parent)
    if (auto it = s->carried.find(stream); it != s->carried.end()) return it->second;
  throw InternalError("a carried value outside of its stream");
}

// Runs the stream where its results are first needed: in the body of the stream around it, or once per instance.
std::vector<CarriedState>& Lowering::stream_results(StreamId id, Scope* from) {
  const ir::Stream& stream = p_[id];
  Scope* s = from;
  while (s->parent && !s->instance && !(stream.parent && s->stream == stream.parent)) s = s->parent;
  if (auto it = s->results.find(id); it != s->results.end()) return it->second;

  std::vector<CarriedState> state(stream.carries.size());
  kernel::For loop{b_.fresh(p_[stream.axis].name, DType::i64_), lo(stream.axis, s), hi(stream.axis, s), {}, {}};
  Scope body{s, &loop.body, {{stream.piece, {{b_.var(loop.var)}}}}, id};
  std::vector<CarriedState> within(stream.carries.size());
  for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
    const ir::Carry& carry = stream.carries[i];
    std::vector<AxisId> axes = carried_axes(carry, s);
    if (axes.empty()) {
      DType dtype = reg(carry.dtype);
      VarId inner = b_.fresh(carry.name, dtype), result = b_.fresh(carry.name, dtype);
      loop.carries.push_back({inner, result, b_.cast(dtype, emit(carry.init, s)), {}});
      within[i].value = b_.var(inner);
      state[i].value = b_.var(result);
    } else {
      state[i].array = stream_array(id, i, 0, carry, axes);
      state[i].next = stream_array(id, i, 1, carry, axes);
      within[i] = state[i];
      fill(*state[i].array, carry, carry.init, s);
    }
  }
  body.carried[id] = within;
  std::size_t scalar = 0;
  for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
    const ir::Carry& carry = stream.carries[i];
    if (!state[i].array) {
      loop.carries[scalar++].next = b_.let(loop.body, carry.name, b_.cast(reg(carry.dtype), emit(carry.next, &body)));
      continue;
    }
    fill(*state[i].next, carry, carry.next, &body);
  }
  // After every next, and after other stores that read it: what is there before a step is what the step reads.
  if (runs_stores_) {
    const auto same = [&](TensorId loaded, TensorId stored) {
      return loaded == stored || facts_.aliases.count({loaded, stored}) > 0;
    };
    const auto order = ir::stores_in_order(p_, id, same);
    COSMATI_CHECK(order, "the stores of a stream over {} read what each other store", p_[stream.axis].name);
    for (const std::uint32_t store : *order) emit_store(p_.stores[store], &body);
  }
  for (std::uint32_t child = 0; child < p_.streams.size(); ++child)
    if (p_.streams[child].parent == id && stores_inside(StreamId{child})) stream_results(StreamId{child}, &body);
  for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
    if (!state[i].array) continue;
    const AxisSet& axes = stream.carries[i].axes;
    loops(state[i].array->axes, &body, [&](Scope* inner) {
      each_copy(axes, inner, [&] {
        ExprId offset = b_.let(*inner->block, "i", array_offset(*state[i].array, inner));
        std::optional<ExprId> guard = inside(axes, inner);
        b_.store(*inner->block, state[i].array->buffer, offset, guarded_load(state[i].next->buffer, offset, guard), guard);
      });
    });
  }
  s->block->push_back(b_.statement(std::move(loop)));
  return s->results[id] = std::move(state);
}
// Every element of an array of a carry from a value of it.
void Lowering::fill(const Array& array, const ir::Carry& carry, ValueId v, Scope* s) {
  reduce_before({v}, s);
  loops(array.axes, s, [&](Scope* inner) {
    each_copy(carry.axes, inner, [&] {
      const ExprId value = b_.cast(reg(carry.dtype), emit(v, inner));
      b_.store(*inner->block, array.buffer, array_offset(array, inner), value, inside(carry.axes, inner));
    });
  });
}

bool Lowering::stores_inside(StreamId id) const {
  for (const ir::Store& store : p_.stores)
    for (std::optional<StreamId> s = store.stream; s; s = p_[*s].parent)
      if (*s == id) return true;
  return false;
}
std::vector<AxisId> Lowering::carried_axes(const ir::Carry& carry, Scope* s) const {
  std::vector<AxisId> axes;
  for (AxisId axis : carry.axes)
    if (!binder(s, axis)) axes.push_back(axis);
  return axes;
}
Array Lowering::stream_array(StreamId id, std::uint32_t slot, int which, const ir::Carry& carry,
                             const std::vector<AxisId>& axes) {
  auto key = std::make_tuple(id, slot, which, axes, instance_lanes_);
  auto it = stream_arrays_.find(key);
  if (it == stream_arrays_.end())
    it = stream_arrays_
             .emplace(key,
                      scratch(kernel::Buffer::Kind::worker_scratch, which ? carry.name + "_next" : carry.name, carry.dtype, axes))
             .first;
  return it->second;
}

}  // namespace cosmati::lower
