// Values and memory: every node of the program, loads, stores, and the addresses of elements.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/lowering.h"
#include "support/overloaded.h"

namespace cosmati::lower {

using support::overloaded;

std::string Lowering::name_of(ValueId v) {
  if (names_.empty())
    for (const auto& [name, value] : p_.names) names_.emplace(value, name);
  auto it = names_.find(v);
  return it == names_.end() ? "v" : it->second;
}

ExprId Lowering::emit(ValueId v, Scope* from) {
  Arguments results = emit_all(v, from);
  COSMATI_CHECK(results.size() == 1, "a tuple is used as a value");
  return results[0];
}

Arguments Lowering::emit_all(ValueId v, Scope* from) {
  Scope* s = home_scope(v, from);
  const std::pair key{v, copy_key(p_[v].axes, s)};
  if (auto it = s->memo.find(key); it != s->memo.end()) return it->second;
  Arguments results;
  auto home = m_.homes.find(v);
  if (home != m_.homes.end() && home->second == plan::Home::worker && !filling_.count(v) && instances_only(v) &&
      !in_registers(v)) {
    Scope* outer = fill_scope(v, s);
    if (outer->filled[v] || (!s->point && !fills_on_the_way(v, s))) {
      results = {b_.let(*s->block, name_of(v), read(filled_array(v, s), p_[v].axes, s))};
    } else {
      const Array& array = worker_array(v);
      results = emit_node(v, s);
      if (!s->point) {
        // A reduction has emitted all its copies.
        const auto store = [&] { store_element(array, v, s->memo.at({v, copy_key(p_[v].axes, s)})[0], s); };
        if (std::holds_alternative<ir::Reduce>(p_[v].node))
          each_copy(p_[v].axes, s, store);
        else
          store_element(array, v, results[0], s);
        on_the_way_.emplace_back(s->nest, outer, v);
      }
    }
  } else if (home != m_.homes.end() && home->second == plan::Home::launch && kept_.count(v)) {
    results = {b_.let(*s->block, name_of(v), read(kept_.at(v), p_[v].axes, s))};
  } else {
    results = emit_node(v, s);
  }
  return s->memo[key] = std::move(results);
}

Arguments Lowering::emit_node(ValueId v, Scope* s) {
  const ir::Value& value = p_[v];
  auto bind = [&](ExprId e) { return Arguments{b_.let(*s->block, name_of(v), e)}; };
  return std::visit(overloaded{[&](const ir::Const& n) {
                                 if (is_float(value.dtype)) return Arguments{real(value.dtype, n.f)};
                                 if (is_bool(value.dtype)) return Arguments{b_.boolean(n.i != 0)};
                                 return Arguments{b_.integer(n.i, reg(value.dtype))};
                               },
                               [&](const ir::Coord& n) { return Arguments{coordinate(s, n.axis)}; },
                               [&](const ir::Extent& n) { return Arguments{extent(n.axis)}; },
                               [&](const ir::ScalarRef& n) { return bind(scalar_register(n.scalar)); },
                               [&](const ir::Load& n) { return bind(emit_load(n, value, s)); },
                               [&](const ir::Elementwise& n) {
                                 Arguments args;
                                 for (ValueId arg : n.args) args.push_back(emit(arg, s));
                                 return bind(apply(n.op, args, value.dtype));
                               },
                               [&](const ir::Reduce&) {
                                 emit_reduce(v, s);
                                 return s->memo.at({v, copy_key(value.axes, s)});
                               },
                               [&](const ir::Part& n) -> Arguments {
                                 if (const auto* of = std::get_if<ValueId>(&n.of)) return {emit_all(*of, s)[n.slot]};
                                 StreamId stream = std::get<StreamId>(n.of);
                                 const CarriedState& state = stream_results(stream, s)[n.slot];
                                 if (state.value) return {*state.value};
                                 return bind(read(*state.array, value.axes, s));
                               },
                               [&](const ir::Replace& n) { return bind(emit_replaced(n, value, s)); },
                               [&](const ir::Carried& n) -> Arguments {
                                 const CarriedState& state = carried(n.stream, s)[n.slot];
                                 if (state.value) return {*state.value};
                                 return bind(read(*state.array, value.axes, s));
                               },
                               [&](const ir::Arg&) -> Arguments { throw InternalError("an Arg outside of its lambda"); }},
                    value.node);
}

// An operation in registers; `dtype` is the IR's result type, which a cast rounds to before widening again.
ExprId Lowering::apply(Op op, const Arguments& args, DType dtype) {
  if (op == Op::cast) return b_.cast(reg(dtype), b_.cast(dtype, args[0]));
  if (op == Op::bits) return b_.bits(dtype, args[0]);
  return b_.apply(op, args);
}

// ---- memory ------------------------------------------------------------------------------------------------------------

Lowering::Address Lowering::address(TensorId tensor, const std::vector<ir::Index>& index, Scope* s, bool guarded) {
  Address a{b_.integer(0), {}};
  auto check = [&](ExprId at, ExprId extent) {
    if (!guarded) return;
    ExprId in = both(b_.apply(Op::le, {b_.integer(0), at}), b_.apply(Op::lt, {at, extent}));
    a.inside = a.inside ? both(*a.inside, in) : in;
  };
  if (m_.apart) rely_on_alignment(tensor, index, s);
  for (std::uint32_t d = 0; d < index.size(); ++d) {
    const ir::Dim& dim = p_[tensor].dims[d];
    ExprId linear;
    if (index[d].size() == 1) {
      linear = b_.let(*s->block, "i", as_i64(emit(index[d][0], s)));
      ExprId whole = b_.integer(1);
      for (const ir::Factor& factor : dim) whole = mul(whole, factor_extent(factor));
      if (guarded) check(linear, whole);
    } else {
      linear = b_.integer(0);
      for (std::size_t f = 0; f < dim.size(); ++f) {
        ExprId at = b_.let(*s->block, "i", as_i64(emit(index[d][f], s)));
        check(at, factor_extent(dim[f]));
        linear = add(mul(linear, factor_extent(dim[f])), at);
      }
    }
    a.offset = add(a.offset, mul(linear, stride(tensor, d)));
  }
  return a;
}
ExprId Lowering::factor_extent(const ir::Factor& factor) {
  if (!factor.axis.valid()) return b_.integer(factor.offset);
  return add(extent(factor.axis), b_.integer(factor.offset));
}

bool Lowering::loads_as_stored(ValueId v) const {
  const auto* load = std::get_if<ir::Load>(&p_[v].node);
  return load && !load->otherwise && !m_.homes.count(v);
}

ExprId Lowering::as_stored(ValueId v, Scope* s) {
  const ir::Load& load = std::get<ir::Load>(p_[v].node);
  const ExprId offset = address(load.tensor, load.index, s, false).offset;
  return b_.let(*s->block, name_of(v), guarded_load(BufferId{load.tensor.index}, offset, inside(p_[v].axes, s)));
}

ExprId Lowering::emit_load(const ir::Load& load, const ir::Value& value, Scope* s) {
  BufferId buffer{load.tensor.index};
  std::optional<ExprId> otherwise;
  if (load.otherwise) otherwise = emit(*load.otherwise, s);
  Address a = address(load.tensor, load.index, s, load.otherwise.has_value());
  std::optional<ExprId> guard = inside(value.axes, s);
  if (!load.otherwise) return b_.cast(reg(value.dtype), guarded_load(buffer, a.offset, guard));
  if (a.inside) guard = guard ? both(*guard, *a.inside) : *a.inside;
  ExprId read =
      b_.load(buffer, a.offset, guard ? *guard : b_.boolean(true), b_.cast(value.dtype, b_.cast(value.dtype, *otherwise)));
  return b_.cast(reg(value.dtype), read);
}

// Outside of the guard there is nothing to read, and nothing uses the zero.
ExprId Lowering::guarded_load(BufferId buffer, ExprId offset, std::optional<ExprId> guard) {
  if (!guard) return b_.load(buffer, offset);
  const DType t = k_[buffer].dtype;
  return b_.load(buffer, offset, guard, is_float(t) ? b_.constant(t, 0) : is_bool(t) ? b_.boolean(false) : b_.integer(0, t));
}

void Lowering::emit_store(const ir::Store& store, Scope* s) {
  std::vector<AxisId> axes;
  AxisSet all;
  auto need = [&](ValueId v) {
    all = ir::set_union(all, p_[v].axes);
    for (AxisId axis : p_[v].axes)
      if (!binder(s, axis) && std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  };
  for (const ir::Index& index : store.index)
    for (ValueId part : index) need(part);
  need(store.value);
  std::vector<ValueId> values = {store.value};
  for (const ir::Index& index : store.index) values.insert(values.end(), index.begin(), index.end());
  reduce_before(values, s);
  // The store rounds; what a cast to its type would round before it need not be widened in between.
  ValueId stored = store.value;
  if (const auto* e = std::get_if<ir::Elementwise>(&p_[stored].node))
    if (e->op == Op::cast && p_[stored].dtype == p_[store.tensor].dtype && !m_.homes.count(stored)) stored = e->args[0];
  // All copies are evaluated before the first is stored, so that no load waits for a store at its place of another page.
  struct Element {
    ExprId offset, value;
    std::optional<ExprId> guard;
  };
  loops(axes, s, [&](Scope* inner) {
    std::vector<Element> elements;
    each_copy(all, inner, [&] {
      const ExprId offset = address(store.tensor, store.index, inner, false).offset;
      elements.push_back({offset, b_.cast(p_[store.tensor].dtype, emit(stored, inner)), inside(all, inner)});
    });
    for (const Element& e : elements)
      b_.store(*inner->block, BufferId{store.tensor.index}, e.offset, e.value, e.guard, m_.past_caches);
  });
}

// v[a := e] on an array of a stream, or on what an earlier phase kept of it: an index into it.
ExprId Lowering::emit_replaced(const ir::Replace& replace, const ir::Value& value, Scope* s) {
  Array array;
  if (auto kept = kept_.find(replace.of); kept != kept_.end())
    array = kept->second;
  else if (const auto* part = std::get_if<ir::Part>(&p_[replace.of].node))
    array = *stream_results(std::get<StreamId>(part->of), s)[part->slot].array;
  else {
    const auto& c = std::get<ir::Carried>(p_[replace.of].node);
    array = *carried(c.stream, s)[c.slot].array;
  }
  std::map<AxisId, ExprId> at;
  std::optional<ExprId> within;
  for (const auto& [axis, index] : replace.binds) {
    ExprId i = b_.let(*s->block, "i", as_i64(emit(index, s)));
    at[axis] = i;
    if (!replace.otherwise) continue;
    ExprId in = both(b_.apply(Op::le, {lo(axis, s), i}), b_.apply(Op::lt, {i, hi(axis, s)}));
    within = within ? both(*within, in) : in;
  }
  ExprId offset = array_offset(array, [&](AxisId axis) {
    if (auto it = at.find(axis); it != at.end()) return it->second;
    return coordinate(s, axis);
  });
  std::optional<ExprId> guard = inside(value.axes, s);
  if (!replace.otherwise) return guarded_load(array.buffer, offset, guard);
  if (within) guard = guard ? both(*guard, *within) : *within;
  return b_.load(array.buffer, offset, guard, b_.cast(reg(value.dtype), emit(*replace.otherwise, s)));
}

}  // namespace cosmati::lower
