// Emission by demand. A scope binds axes to coordinates (the root binds the grid digits, a loop its axis, a stream its piece); a
// value is emitted once into the innermost scope that it depends on, so whatever a loop does not change stands before it.
// Registers hold values in compute type: narrow types are widened by loads and rounded by stores and casts.
// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/inline_replaces.h"
#include "prove/prove.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::lower {
namespace {

using ir::AxisId;
using ir::AxisSet;
using ir::StreamId;
using ir::TensorId;
using ir::ValueId;
using kernel::Block;
using kernel::BufferId;
using kernel::ExprId;
using kernel::VarId;
using ops::Op;
using support::overloaded;

// An array over some axes in scratch: element (coordinate - lo) of each axis, row-major in the order listed.
struct Array {
  BufferId buffer;
  std::vector<AxisId> axes;
};

struct CarriedState {  // one carry of a stream: a register, or two arrays (the value, and the next one while it is computed)
  std::optional<ExprId> value;
  std::optional<Array> array, next;
};

struct Scope {
  Scope* parent;
  Block* block;
  std::map<AxisId, ExprId> coordinates;
  std::optional<StreamId> stream;
  std::map<ValueId, std::vector<ExprId>> memo;
  std::map<StreamId, std::vector<CarriedState>> results;
  std::map<StreamId, std::vector<CarriedState>> carried;
  std::map<ValueId, bool> filled;
};

using Arguments = std::vector<ExprId>;

class Lowering {
 public:
  Lowering(const ir::Program& program, const plan::Mapping& mapping, const plan::Facts& facts)
      : p_(program), m_(mapping), facts_(facts), b_(k_) {}

  kernel::Kernel run() {
    k_.name = p_.name;
    for (std::uint32_t i = 0; i < p_.tensors.size(); ++i) {
      const ir::Tensor& t = p_.tensors[i];
      auto access = t.access == ir::Access::in    ? kernel::Buffer::Access::read
                    : t.access == ir::Access::out ? kernel::Buffer::Access::write
                                                  : kernel::Buffer::Access::read_write;
      k_.buffers.push_back({kernel::Buffer::Kind::argument, access, i, {}, b_.unique_name(t.name), t.dtype});
    }
    for (const plan::Phase& phase : m_.phases) lower_phase(phase);
    return std::move(k_);
  }

 private:
  // ---- launch-level values ---------------------------------------------------------------------------------------------
  ExprId param(kernel::Param::Source source, std::uint32_t a, std::uint32_t b, const std::string& name, DType dtype) {
    for (std::uint32_t i = 0; i < k_.params.size(); ++i)
      if (k_.params[i].source == source && k_.params[i].a == a && k_.params[i].b == b) return b_.param(kernel::ParamId{i});
    k_.params.push_back({source, a, b, b_.unique_name(name), dtype});
    return b_.param(kernel::ParamId{static_cast<std::uint32_t>(k_.params.size() - 1)});
  }
  ExprId extent(AxisId axis) {
    return param(kernel::Param::Source::extent, axis.index, 0, "extent_" + p_[axis].name, DType::i64_);
  }
  ExprId stride(TensorId tensor, std::uint32_t dim) {
    if (facts_.unit_stride[tensor.index][dim]) return b_.integer(1);
    return param(kernel::Param::Source::stride, tensor.index, dim, fmt::format("stride_{}_{}", p_[tensor].name, dim),
                 DType::i64_);
  }
  ExprId scalar(ir::ScalarId s) { return param(kernel::Param::Source::scalar, s.index, 0, p_[s].name, p_[s].dtype); }
  ExprId add(ExprId a, ExprId b) { return b_.apply(Op::add, {a, b}); }
  ExprId sub(ExprId a, ExprId b) { return b_.apply(Op::sub, {a, b}); }
  ExprId mul(ExprId a, ExprId b) { return b_.apply(Op::mul, {a, b}); }
  ExprId maximum(ExprId a, ExprId b) { return b_.apply(Op::maximum, {a, b}); }

  ExprId bound(const prove::Bound& terms) {
    ExprId total = b_.integer(0);
    for (const auto& term : terms) {
      ExprId product = b_.integer(term.coefficient);
      for (ValueId factor : term.factors) {
        const ir::Value& v = p_[factor];
        if (const auto* e = std::get_if<ir::Extent>(&v.node))
          product = mul(product, extent(e->axis));
        else
          product = mul(product, b_.cast(DType::i64_, scalar(std::get<ir::ScalarRef>(v.node).scalar)));
      }
      total = add(total, product);
    }
    return total;
  }
  // Where an array over the axis starts, and how many elements it needs, whatever the instance.
  ExprId array_lo(AxisId axis) {
    if (!ir::launch_level(p_, axis)) return bound(prove::hull(p_, axis)->lo);
    return p_[axis].lo ? launch_value(*p_[axis].lo) : b_.integer(0);
  }
  ExprId array_extent(AxisId axis) {
    if (ir::launch_level(p_, axis)) return axis_extent(axis);
    auto hull = prove::hull(p_, axis);
    COSMATI_CHECK(hull, "axis {} has no hull", p_[axis].name);
    return maximum(b_.integer(0), sub(bound(hull->hi), bound(hull->lo)));
  }
  // hi - lo of a launch-level axis. Axes made by substitution have no parameter of their own: theirs is computed.
  ExprId axis_extent(AxisId axis) {
    if (!p_[axis].lo && !p_[axis].hi) return extent(axis);
    if (p_[axis].in_dims || p_[axis].program) return extent(axis);
    ExprId lo = p_[axis].lo ? launch_value(*p_[axis].lo) : b_.integer(0);
    return maximum(b_.integer(0), sub(launch_value(*p_[axis].hi), lo));
  }
  // An integer expression of extents, scalars and constants as a tree of params.
  ExprId launch_value(ValueId v) {
    const ir::Value& value = p_[v];
    return std::visit(
        overloaded{[&](const ir::Const& n) {
                     return is_float(value.dtype) ? b_.constant(value.dtype, n.f) : b_.integer(n.i, reg(value.dtype));
                   },
                   [&](const ir::Extent& n) { return axis_extent_of(n.axis); },
                   [&](const ir::ScalarRef& n) { return scalar_register(n.scalar); },
                   [&](const ir::Elementwise& n) {
                     Arguments args;
                     for (ValueId arg : n.args) args.push_back(launch_value(arg));
                     return apply(n.op, args, value.dtype);
                   },
                   [&](const auto&) -> ExprId { throw InternalError("a launch-level value has a node that needs a group"); }},
        value.node);
  }
  ExprId axis_extent_of(AxisId axis) { return extent(axis); }
  ExprId scalar_register(ir::ScalarId s) { return b_.cast(reg(p_[s].dtype), scalar(s)); }

  static DType reg(DType t) { return compute_type(t); }

  // ---- phases ----------------------------------------------------------------------------------------------------------
  void lower_phase(const plan::Phase& phase) {
    kernel::Phase out{phase.name, {}, {}};
    Scope root{nullptr, &out.body, {}, {}, {}, {}, {}, {}};
    out.groups = decode_grid(phase.instances, root);
    instances_ = &phase.instances;
    runs_stores_ = std::any_of(phase.roots.begin(), phase.roots.end(),
                               [](const plan::Root& r) { return std::holds_alternative<plan::StreamRoot>(r); });
    for (const plan::Root& r : phase.roots)
      std::visit(overloaded{[&](const plan::StoreRoot& n) { emit_store(p_.stores[n.store], &root); },
                            [&](const plan::KeepRoot& n) { emit_keep(n.value, &root); },
                            [&](const plan::StreamRoot& n) { stream_results(n.stream, &root); },
                            [&](const plan::FillRoot& n) { emit_fill(n.value, &root); }},
                 r);
    k_.phases.push_back(std::move(out));
  }

  // Binds every axis that has grid digits; returns the number of groups.
  ExprId decode_grid(const place::Placement& instances, Scope& root) {
    ExprId groups = b_.integer(1);
    for (const place::AxisMap& map : instances.axes) {
      ExprId coordinate = b_.integer(0);
      ExprId weight = b_.integer(1);
      bool placed = false;
      place::Size used = place::count(instances, place::Res::grid);
      for (const place::Digit& digit : map.digits) {
        if (digit.res != place::Res::grid) continue;
        placed = true;
        ExprId index = b_.apply(Op::floordiv, {b_.group(), size(digit.pos)});
        // The slowest digit of the grid needs no modulo.
        if (!(digit.pos * digit.size == used)) index = b_.apply(Op::mod, {index, size(digit.size)});
        coordinate = add(coordinate, mul(index, weight));
        weight = mul(weight, size(digit.size));
        groups = mul(groups, size(digit.size));
      }
      if (!placed) continue;
      if (p_[map.axis].lo) coordinate = add(launch_value(*p_[map.axis].lo), coordinate);
      root.coordinates[map.axis] = b_.let(*root.block, p_[map.axis].name, coordinate);
    }
    return groups;
  }
  ExprId size(const place::Size& s) {
    ExprId product = b_.integer(s.factor);
    for (AxisId axis : s.extents) product = mul(product, axis_extent(axis));
    return product;
  }

  // ---- scopes ----------------------------------------------------------------------------------------------------------
  static Scope* binder(Scope* from, AxisId axis) {
    for (Scope* s = from; s; s = s->parent)
      if (s->coordinates.count(axis)) return s;
    return nullptr;
  }
  static int depth(const Scope* s) {
    int d = 0;
    for (; s->parent; s = s->parent) ++d;
    return d;
  }
  static Scope* root_of(Scope* s) {
    while (s->parent) s = s->parent;
    return s;
  }
  static Scope* deeper(Scope* a, Scope* b) { return depth(a) >= depth(b) ? a : b; }

  // The innermost scope on the chain from `from` that a value depends on: through its axes (but for those in `except`, the axes
  // of an array to be filled), or through a carried value.
  Scope* home_scope(ValueId v, Scope* from, const std::vector<AxisId>& except = {}) {
    Scope* best = root_of(from);
    for (AxisId axis : p_[v].axes) {
      if (std::find(except.begin(), except.end(), axis) != except.end()) continue;
      if (Scope* s = binder(from, axis)) best = deeper(best, s);
    }
    for (StreamId stream : streams_in(v))
      for (Scope* s = from; s; s = s->parent)
        if (s->stream == stream) {
          best = deeper(best, s);
          break;
        }
    return best;
  }
  // The streams in whose body `v` lives.
  const std::vector<StreamId>& streams_in(ValueId v) {
    if (streams_in_.empty()) {
      streams_in_.resize(p_.values.size());
      for (std::uint32_t i = 0; i < p_.values.size(); ++i) {
        auto& list = streams_in_[i];
        auto also = [&](StreamId s) {
          if (std::find(list.begin(), list.end(), s) == list.end()) list.push_back(s);
        };
        if (const auto* c = std::get_if<ir::Carried>(&p_.values[i].node)) also(c->stream);
        // A reduction over the current piece is a value of the body, though the piece is no longer among its axes.
        if (const auto* reduce = std::get_if<ir::Reduce>(&p_.values[i].node))
          for (AxisId axis : reduce->axes)
            if (p_[axis].piece) also(*p_[axis].piece);
        // A nested stream's result lives in the body of the stream around it.
        if (const auto* part = std::get_if<ir::Part>(&p_.values[i].node))
          if (const auto* s = std::get_if<StreamId>(&part->of))
            if (p_[*s].parent) also(*p_[*s].parent);
        for (ValueId operand : ir::operands(p_.values[i].node))
          for (StreamId s : streams_in_[operand.index]) also(s);
      }
    }
    return streams_in_[v.index];
  }

  ExprId lo(AxisId axis, Scope* s) { return p_[axis].lo ? as_i64(emit(*p_[axis].lo, s)) : b_.integer(0); }
  ExprId hi(AxisId axis, Scope* s) {
    if (p_[axis].hi && !(p_[axis].in_dims && !p_[axis].lo)) return as_i64(emit(*p_[axis].hi, s));
    return extent(axis);
  }
  ExprId as_i64(ExprId e) { return b_.cast(DType::i64_, e); }

  // Loops over `axes`, outermost first, around `body`, which gets the innermost scope and the carried registers and returns their
  // next. `init` holds the values before the loops; the result holds those after.
  template <class Body>
  Arguments loops(const std::vector<AxisId>& axes, std::size_t at, Arguments state, const std::vector<std::string>& names,
                  Scope* outer, const Body& body) {
    if (at == axes.size()) return body(outer, state);
    AxisId axis = axes[at];
    kernel::For loop{b_.fresh(p_[axis].name, DType::i64_), lo(axis, outer), hi(axis, outer), {}, {}};
    Arguments inner, results;
    for (std::size_t i = 0; i < state.size(); ++i) {
      DType dtype = k_[state[i]].dtype;
      VarId in = b_.fresh(names[i], dtype), result = b_.fresh(names[i], dtype);
      loop.carries.push_back({in, result, state[i], {}});
      inner.push_back(b_.var(in));
      results.push_back(b_.var(result));
    }
    Scope scope{outer, &loop.body, {{axis, b_.var(loop.var)}}, {}, {}, {}, {}, {}};
    Arguments next = loops(axes, at + 1, inner, names, &scope, body);
    for (std::size_t i = 0; i < next.size(); ++i) loop.carries[i].next = next[i];
    outer->block->push_back(b_.statement(std::move(loop)));
    return results;
  }
  template <class Body>
  void loops(const std::vector<AxisId>& axes, Scope* outer, const Body& body) {
    loops(axes, 0, {}, {}, outer, [&](Scope* s, const Arguments&) {
      body(s);
      return Arguments{};
    });
  }

  // ---- values ----------------------------------------------------------------------------------------------------------
  std::string name_of(ValueId v) {
    if (names_.empty())
      for (const auto& [name, value] : p_.names) names_.emplace(value, name);
    auto it = names_.find(v);
    return it == names_.end() ? "v" : it->second;
  }

  ExprId emit(ValueId v, Scope* from) {
    Arguments results = emit_all(v, from);
    COSMATI_CHECK(results.size() == 1, "a tuple is used as a value");
    return results[0];
  }

  const Arguments& emit_all(ValueId v, Scope* from) {
    Scope* s = home_scope(v, from);
    if (auto it = s->memo.find(v); it != s->memo.end()) return it->second;
    Arguments results;
    auto home = m_.homes.find(v);
    if (home != m_.homes.end() && home->second == plan::Home::worker && !filling_.count(v) && instances_only(v)) {
      results = {b_.let(*s->block, name_of(v), read(worker_array(v, s), s))};
    } else if (home != m_.homes.end() && home->second == plan::Home::launch && kept_.count(v)) {
      results = {b_.let(*s->block, name_of(v), read(kept_.at(v), s))};
    } else {
      results = emit_node(v, s);
    }
    return s->memo[v] = std::move(results);
  }

  Arguments emit_node(ValueId v, Scope* s) {
    const ir::Value& value = p_[v];
    auto bind = [&](ExprId e) { return Arguments{b_.let(*s->block, name_of(v), e)}; };
    return std::visit(overloaded{[&](const ir::Const& n) {
                                   if (is_float(value.dtype)) return Arguments{b_.constant(reg(value.dtype), n.f)};
                                   if (is_bool(value.dtype)) return Arguments{b_.boolean(n.i != 0)};
                                   return Arguments{b_.integer(n.i, reg(value.dtype))};
                                 },
                                 [&](const ir::Coord& n) {
                                   Scope* binding = binder(s, n.axis);
                                   COSMATI_CHECK(binding, "axis {} is not bound here", p_[n.axis].name);
                                   return Arguments{binding->coordinates.at(n.axis)};
                                 },
                                 [&](const ir::Extent& n) { return Arguments{extent(n.axis)}; },
                                 [&](const ir::ScalarRef& n) { return bind(scalar_register(n.scalar)); },
                                 [&](const ir::Load& n) { return bind(emit_load(n, value, s)); },
                                 [&](const ir::Elementwise& n) {
                                   Arguments args;
                                   for (ValueId arg : n.args) args.push_back(emit(arg, s));
                                   return bind(apply(n.op, args, value.dtype));
                                 },
                                 [&](const ir::Reduce& n) { return emit_reduce(n, name_of(v), s); },
                                 [&](const ir::Part& n) -> Arguments {
                                   if (const auto* of = std::get_if<ValueId>(&n.of)) return {emit_all(*of, s)[n.slot]};
                                   StreamId stream = std::get<StreamId>(n.of);
                                   const CarriedState& state = stream_results(stream, s)[n.slot];
                                   if (state.value) return {*state.value};
                                   return bind(read(*state.array, s));
                                 },
                                 [&](const ir::Replace& n) { return bind(emit_replaced(n, value, s)); },
                                 [&](const ir::Carried& n) -> Arguments {
                                   const CarriedState& state = carried(n.stream, s)[n.slot];
                                   if (state.value) return {*state.value};
                                   return bind(read(*state.array, s));
                                 },
                                 [&](const ir::Arg&) -> Arguments { throw InternalError("an Arg outside of its lambda"); }},
                      value.node);
  }

  // An operation in registers; `dtype` is the IR's result type, which a cast rounds to before widening again.
  ExprId apply(Op op, const Arguments& args, DType dtype) {
    if (op == Op::cast) return b_.cast(reg(dtype), b_.cast(dtype, args[0]));
    if (op == Op::bits) return b_.bits(dtype, args[0]);
    return b_.apply(op, args);
  }

  // ---- memory ----------------------------------------------------------------------------------------------------------
  struct Address {
    ExprId offset;
    std::optional<ExprId> inside;  // whether every index is within its extents
  };
  Address address(TensorId tensor, const std::vector<ir::Index>& index, Scope* s, bool guarded) {
    Address a{b_.integer(0), {}};
    auto check = [&](ExprId at, ExprId extent) {
      if (!guarded) return;
      ExprId in = b_.apply(Op::logical_and, {b_.apply(Op::le, {b_.integer(0), at}), b_.apply(Op::lt, {at, extent})});
      a.inside = a.inside ? b_.apply(Op::logical_and, {*a.inside, in}) : in;
    };
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
  ExprId factor_extent(const ir::Factor& factor) {
    if (!factor.axis.valid()) return b_.integer(factor.offset);
    return add(extent(factor.axis), b_.integer(factor.offset));
  }

  ExprId emit_load(const ir::Load& load, const ir::Value& value, Scope* s) {
    BufferId buffer{load.tensor.index};
    std::optional<ExprId> otherwise;
    if (load.otherwise) otherwise = emit(*load.otherwise, s);
    Address a = address(load.tensor, load.index, s, load.otherwise.has_value());
    ExprId read = load.otherwise ? b_.load(buffer, a.offset, a.inside ? *a.inside : b_.boolean(true),
                                           b_.cast(value.dtype, b_.cast(value.dtype, *otherwise)))
                                 : b_.load(buffer, a.offset);
    return b_.cast(reg(value.dtype), read);
  }

  void emit_store(const ir::Store& store, Scope* s) {
    std::vector<AxisId> axes;
    auto need = [&](ValueId v) {
      for (AxisId axis : p_[v].axes)
        if (!binder(s, axis) && std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    };
    for (const ir::Index& index : store.index)
      for (ValueId part : index) need(part);
    need(store.value);
    loops(axes, s, [&](Scope* inner) {
      Address a = address(store.tensor, store.index, inner, false);
      ExprId value = emit(store.value, inner);
      b_.store(*inner->block, BufferId{store.tensor.index}, a.offset, b_.cast(p_[store.tensor].dtype, value));
    });
  }

  Array scratch(kernel::Buffer::Kind kind, const std::string& name, DType dtype, std::vector<AxisId> axes) {
    ExprId elements = b_.integer(1);
    for (AxisId axis : axes) elements = mul(elements, array_extent(axis));
    k_.buffers.push_back({kind, kernel::Buffer::Access::read_write, 0, elements, b_.unique_name(name), reg(dtype)});
    return {BufferId{static_cast<std::uint32_t>(k_.buffers.size() - 1)}, std::move(axes)};
  }
  template <class Coordinate>
  ExprId array_offset(const Array& array, const Coordinate& coordinate) {
    ExprId offset = b_.integer(0);
    for (AxisId axis : array.axes) offset = add(mul(offset, array_extent(axis)), sub(coordinate(axis), array_lo(axis)));
    return offset;
  }
  ExprId array_offset(const Array& array, Scope* s) {
    return array_offset(array, [&](AxisId axis) {
      Scope* binding = binder(s, axis);
      COSMATI_CHECK(binding, "axis {} of an array is not bound", p_[axis].name);
      return binding->coordinates.at(axis);
    });
  }
  ExprId read(const Array& array, Scope* s) { return b_.load(array.buffer, array_offset(array, s)); }

  // v[a := e] on an array of a stream: an index into it.
  ExprId emit_replaced(const ir::Replace& replace, const ir::Value& value, Scope* s) {
    Array array;
    if (const auto* part = std::get_if<ir::Part>(&p_[replace.of].node))
      array = *stream_results(std::get<StreamId>(part->of), s)[part->slot].array;
    else {
      const auto& c = std::get<ir::Carried>(p_[replace.of].node);
      array = *carried(c.stream, s)[c.slot].array;
    }
    std::map<AxisId, ExprId> at;
    std::optional<ExprId> inside;
    for (const auto& [axis, index] : replace.binds) {
      ExprId i = b_.let(*s->block, "i", as_i64(emit(index, s)));
      at[axis] = i;
      if (!replace.otherwise) continue;
      ExprId in = b_.apply(Op::logical_and, {b_.apply(Op::le, {lo(axis, s), i}), b_.apply(Op::lt, {i, hi(axis, s)})});
      inside = inside ? b_.apply(Op::logical_and, {*inside, in}) : in;
    }
    ExprId offset = array_offset(array, [&](AxisId axis) {
      if (auto it = at.find(axis); it != at.end()) return it->second;
      return binder(s, axis)->coordinates.at(axis);
    });
    if (!replace.otherwise) return b_.load(array.buffer, offset);
    return b_.load(array.buffer, offset, inside, b_.cast(reg(value.dtype), emit(*replace.otherwise, s)));
  }

  // ---- homes -----------------------------------------------------------------------------------------------------------
  std::vector<AxisId> step_axes(ValueId v) const {
    std::vector<AxisId> steps;
    for (AxisId axis : p_[v].axes) {
      const place::AxisMap* map = instances_->find(axis);
      bool on_grid = map && std::any_of(map->digits.begin(), map->digits.end(),
                                        [](const place::Digit& d) { return d.res == place::Res::grid; });
      if (!on_grid && !p_[axis].piece) steps.push_back(axis);
    }
    return steps;
  }
  // A phase that loops over program axes evaluates again: an array over all instances is not a worker's.
  bool instances_only(ValueId v) const {
    auto steps = step_axes(v);
    return std::none_of(steps.begin(), steps.end(), [&](AxisId axis) { return p_[axis].program; });
  }
  const Array& worker_array(ValueId v, Scope* from) {
    std::vector<AxisId> steps = step_axes(v);
    auto key = std::make_pair(v, steps);
    auto it = worker_arrays_.find(key);
    if (it == worker_arrays_.end())
      it = worker_arrays_.emplace(key, scratch(kernel::Buffer::Kind::worker_scratch, name_of(v), p_[v].dtype, steps)).first;
    Scope* s = home_scope(v, from, steps);
    if (!s->filled[v]) {
      s->filled[v] = true;
      filling_.insert(v);
      loops(steps, s, [&](Scope* inner) {
        ExprId value = emit(v, inner);
        b_.store(*inner->block, it->second.buffer, array_offset(it->second, inner), value);
      });
      filling_.erase(v);
    }
    return it->second;
  }
  void emit_fill(ValueId v, Scope* root) {
    if (step_axes(v).empty())
      emit(v, root);
    else
      worker_array(v, root);
  }
  void emit_keep(ValueId v, Scope* root) {
    std::vector<AxisId> axes(p_[v].axes.begin(), p_[v].axes.end());
    Array array = scratch(kernel::Buffer::Kind::launch_scratch, name_of(v), p_[v].dtype, axes);
    loops(step_axes(v), root, [&](Scope* inner) {
      ExprId value = emit(v, inner);
      b_.store(*inner->block, array.buffer, array_offset(array, inner), value);
    });
    kept_.emplace(v, array);
  }

  // ---- reductions ------------------------------------------------------------------------------------------------------
  Arguments emit_reduce(const ir::Reduce& reduce, const std::string& name, Scope* s) {
    const ir::Reducer& r = p_[reduce.reducer];
    // The elements of a stream's current piece are one point here.
    std::vector<AxisId> axes;
    for (AxisId axis : reduce.axes)
      if (!p_[axis].piece) axes.push_back(axis);
    // By name, so that a program computes the same bits after it is printed and read back.
    std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
    Arguments state;
    for (ValueId identity : r.identity.results) state.push_back(lambda_value(identity, {}, s));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state.size(); ++i)
      names.push_back(
          state.size() == 1 ? name : fmt::format("{}_{}", name, i < r.state_names.size() ? r.state_names[i] : std::to_string(i)));
    if (!axes.empty()) {
      state = loops(axes, 0, state, names, s, [&](Scope* inner, const Arguments& old) { return fold(reduce, r, old, inner); });
    } else {
      state = fold(reduce, r, state, s);
    }
    Arguments finish = state;
    if (std::optional<DType> type = count_type(r)) {
      ExprId count = b_.integer(1);
      for (AxisId axis : axes) count = mul(count, maximum(b_.integer(0), sub(hi(axis, s), lo(axis, s))));
      finish.push_back(b_.let(*s->block, "count", b_.cast(*type, count)));
    }
    return lambda(r.finish, finish, s);
  }

  // The type in which the finish of a reducer takes the count of elements, if it does.
  std::optional<DType> count_type(const ir::Reducer& r) const {
    std::optional<DType> found;
    for (ValueId v : r.finish.results)
      visit_args(v, [&](const ir::Arg& arg, DType dtype) {
        if (arg.slot == r.state_types.size()) found = reg(dtype);
      });
    return found;
  }
  template <class Visit>
  void visit_args(ValueId v, const Visit& visit) const {
    if (const auto* arg = std::get_if<ir::Arg>(&p_[v].node)) visit(*arg, p_[v].dtype);
    for (ValueId operand : ir::operands(p_[v].node)) visit_args(operand, visit);
  }
  // Whether an element enters the state as it is, but for its type.
  bool lifts_unchanged(const ir::Reducer& r) const {
    ValueId v = r.lift.results[0];
    while (const auto* e = std::get_if<ir::Elementwise>(&p_[v].node)) {
      if (e->op != Op::cast) return false;
      v = e->args[0];
    }
    return r.lift.results.size() == 1 && std::holds_alternative<ir::Arg>(p_[v].node);
  }

  Arguments fold(const ir::Reduce& reduce, const ir::Reducer& r, const Arguments& state, Scope* s) {
    // Within a reduction a product may be added without rounding in between.
    if (r.fold == Op::add && lifts_unchanged(r) && !m_.homes.count(reduce.args[0])) {
      const ir::Value& arg = p_[reduce.args[0]];
      const auto* e = std::get_if<ir::Elementwise>(&arg.node);
      if (e && e->op == Op::mul && is_float(arg.dtype) && reg(arg.dtype) == k_[state[0]].dtype)
        return {b_.let(*s->block, "acc", b_.apply(Op::fma, {emit(e->args[0], s), emit(e->args[1], s), state[0]}))};
    }
    Arguments args;
    for (ValueId arg : reduce.args) args.push_back(emit(arg, s));
    for (std::size_t i = 0; i < args.size(); ++i)
      if (i < r.arg_types.size()) args[i] = b_.let(*s->block, "x", b_.cast(reg(r.arg_types[i]), args[i]));
    Arguments lifted = lambda(r.lift, args, s);
    Arguments both = state;
    both.insert(both.end(), lifted.begin(), lifted.end());
    return lambda(r.merge, both, s);
  }

  Arguments lambda(const ir::Lambda& f, const Arguments& args, Scope* s) {
    std::map<ValueId, ExprId> memo;
    Arguments results;
    for (ValueId v : f.results) results.push_back(lambda_value(v, args, s, memo));
    return results;
  }
  ExprId lambda_value(ValueId v, const Arguments& args, Scope* s) {
    std::map<ValueId, ExprId> memo;
    return lambda_value(v, args, s, memo);
  }
  ExprId lambda_value(ValueId v, const Arguments& args, Scope* s, std::map<ValueId, ExprId>& memo) {
    if (auto it = memo.find(v); it != memo.end()) return it->second;
    const ir::Value& value = p_[v];
    ExprId result;
    if (const auto* arg = std::get_if<ir::Arg>(&value.node)) {
      result = args[arg->slot];
    } else if (const auto* e = std::get_if<ir::Elementwise>(&value.node)) {
      Arguments operands;
      for (ValueId operand : e->args) operands.push_back(lambda_value(operand, args, s, memo));
      result = b_.let(*s->block, "t", apply(e->op, operands, value.dtype));
    } else {
      result = emit(v, s);
    }
    return memo[v] = result;
  }

  // ---- streams ---------------------------------------------------------------------------------------------------------
  std::vector<CarriedState>& carried(StreamId stream, Scope* from) {
    for (Scope* s = from; s; s = s->parent)
      if (auto it = s->carried.find(stream); it != s->carried.end()) return it->second;
    throw InternalError("a carried value outside of its stream");
  }

  // Runs the stream where its results are first needed: in the body of the stream around it, or once per instance.
  std::vector<CarriedState>& stream_results(StreamId id, Scope* from) {
    const ir::Stream& stream = p_[id];
    Scope* s = root_of(from);
    for (Scope* c = from; c; c = c->parent)
      if (c->stream && stream.parent && *c->stream == *stream.parent) {
        s = c;
        break;
      }
    if (auto it = s->results.find(id); it != s->results.end()) return it->second;

    std::vector<CarriedState> state(stream.carries.size());
    kernel::For loop{b_.fresh(p_[stream.axis].name, DType::i64_), lo(stream.axis, s), hi(stream.axis, s), {}, {}};
    Scope body{s, &loop.body, {{stream.piece, b_.var(loop.var)}}, id, {}, {}, {}, {}};
    std::vector<CarriedState> inside(stream.carries.size());
    for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
      const ir::Carry& carry = stream.carries[i];
      std::vector<AxisId> axes = carried_axes(carry, s);
      if (axes.empty()) {
        DType dtype = reg(carry.dtype);
        VarId inner = b_.fresh(carry.name, dtype), result = b_.fresh(carry.name, dtype);
        loop.carries.push_back({inner, result, b_.cast(dtype, emit(carry.init, s)), {}});
        inside[i].value = b_.var(inner);
        state[i].value = b_.var(result);
      } else {
        state[i].array = stream_array(id, i, 0, carry, axes);
        state[i].next = stream_array(id, i, 1, carry, axes);
        inside[i] = state[i];
        loops(axes, s, [&](Scope* inner) {
          b_.store(*inner->block, state[i].array->buffer, array_offset(*state[i].array, inner),
                   b_.cast(reg(carry.dtype), emit(carry.init, inner)));
        });
      }
    }
    body.carried[id] = inside;
    std::size_t scalar = 0;
    for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
      const ir::Carry& carry = stream.carries[i];
      if (!state[i].array) {
        loop.carries[scalar++].next = b_.let(loop.body, carry.name, b_.cast(reg(carry.dtype), emit(carry.next, &body)));
        continue;
      }
      loops(state[i].next->axes, &body, [&](Scope* inner) {
        b_.store(*inner->block, state[i].next->buffer, array_offset(*state[i].next, inner),
                 b_.cast(reg(carry.dtype), emit(carry.next, inner)));
      });
    }
    // After every next: a next may read an element that a store of this body overwrites.
    for (const ir::Store& store : p_.stores)
      if (store.stream == id && runs_stores_) emit_store(store, &body);
    for (std::uint32_t child = 0; child < p_.streams.size(); ++child)
      if (p_.streams[child].parent == id && stores_inside(StreamId{child})) stream_results(StreamId{child}, &body);
    for (std::uint32_t i = 0; i < stream.carries.size(); ++i) {
      if (!state[i].array) continue;
      loops(state[i].array->axes, &body, [&](Scope* inner) {
        ExprId offset = b_.let(*inner->block, "i", array_offset(*state[i].array, inner));
        b_.store(*inner->block, state[i].array->buffer, offset, b_.load(state[i].next->buffer, offset));
      });
    }
    s->block->push_back(b_.statement(std::move(loop)));
    return s->results[id] = std::move(state);
  }
  bool stores_inside(StreamId id) const {
    for (const ir::Store& store : p_.stores)
      for (std::optional<StreamId> s = store.stream; s; s = p_[*s].parent)
        if (*s == id) return true;
    return false;
  }
  std::vector<AxisId> carried_axes(const ir::Carry& carry, Scope* s) const {
    std::vector<AxisId> axes;
    for (AxisId axis : carry.axes)
      if (!binder(s, axis)) axes.push_back(axis);
    return axes;
  }
  Array stream_array(StreamId id, std::uint32_t slot, int which, const ir::Carry& carry, const std::vector<AxisId>& axes) {
    auto key = std::make_tuple(id, slot, which, axes);
    auto it = stream_arrays_.find(key);
    if (it == stream_arrays_.end())
      it = stream_arrays_
               .emplace(key, scratch(kernel::Buffer::Kind::worker_scratch, which ? carry.name + "_next" : carry.name, carry.dtype,
                                     axes))
               .first;
    return it->second;
  }

  const ir::Program& p_;
  const plan::Mapping& m_;
  const plan::Facts& facts_;
  kernel::Kernel k_;
  kernel::Builder b_;
  const place::Placement* instances_ = nullptr;
  std::map<ValueId, std::string> names_;
  std::vector<std::vector<StreamId>> streams_in_;
  std::map<std::pair<ValueId, std::vector<AxisId>>, Array> worker_arrays_;
  std::map<std::tuple<StreamId, std::uint32_t, int, std::vector<AxisId>>, Array> stream_arrays_;
  std::map<ValueId, Array> kept_;
  std::set<ValueId> filling_;
  bool runs_stores_ = false;
};

}  // namespace

kernel::Kernel lower(const ir::Program& program, const plan::Mapping& mapping, const plan::Facts& facts) {
  kernel::Kernel k = Lowering(program, mapping, facts).run();
  kernel::verify(k, "lower");
  return k;
}

}  // namespace cosmati::lower
