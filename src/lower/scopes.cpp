// Scopes: where the value of a point is emitted, and the loops that open scopes.
// An axis with lanes or copies runs in blocks of neighbours without a test, and what is left over lane by lane under a guard.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "lower/lowering.h"

namespace cosmati::lower {

Scope* Lowering::binder(Scope* from, AxisId axis) {
  for (Scope* s = from; s; s = s->parent)
    if (s->coordinates.count(axis)) return s;
  return nullptr;
}

Scope* Lowering::root_of(Scope* s) {
  while (s->parent) s = s->parent;
  return s;
}

// The innermost scope on the chain from `from` that a value depends on: through its axes (but for those in `except`, the axes of
// an array to be filled), or through a carried value.
Scope* Lowering::home_scope(ValueId v, Scope* from, const std::vector<AxisId>& except) {
  const auto depth = [](const Scope* s) {
    int d = 0;
    for (; s->parent; s = s->parent) ++d;
    return d;
  };
  Scope* best = root_of(from);
  const auto deeper = [&](Scope* s) {
    if (depth(s) > depth(best)) best = s;
  };
  for (AxisId axis : p_[v].axes) {
    if (std::find(except.begin(), except.end(), axis) != except.end()) continue;
    if (Scope* s = binder(from, axis)) deeper(s);
  }
  for (StreamId stream : streams_in(v))
    for (Scope* s = from; s; s = s->parent)
      if (s->stream == stream) {
        deeper(s);
        break;
      }
  // A stream that stores runs once for an instance.
  if (runs_stores_ && after_stores(v))
    for (Scope* s = from; s; s = s->parent)
      if (s->instance) deeper(s);
  return best;
}

// Whether a value needs the results of a stream that stores.
bool Lowering::after_stores(ValueId v) {
  if (after_stores_.empty()) {
    after_stores_.resize(p_.values.size());
    for (std::uint32_t i = 0; i < p_.values.size(); ++i) {
      const auto* part = std::get_if<ir::Part>(&p_.values[i].node);
      const auto* stream = part ? std::get_if<StreamId>(&part->of) : nullptr;
      bool after = stream && stores_inside(*stream);
      for (ValueId operand : ir::operands(p_.values[i].node)) after = after || after_stores_[operand.index];
      after_stores_[i] = after;
    }
  }
  return after_stores_[v.index];
}

const std::vector<StreamId>& Lowering::streams_in(ValueId v) {
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

ExprId Lowering::lo(AxisId axis, Scope* s) { return p_[axis].lo ? as_i64(emit(*p_[axis].lo, s)) : b_.integer(0); }
ExprId Lowering::hi(AxisId axis, Scope* s) {
  if (p_[axis].hi && !(p_[axis].in_dims && !p_[axis].lo)) return as_i64(emit(*p_[axis].hi, s));
  return extent(axis);
}

std::pair<ExprId, ExprId> Lowering::range(AxisId axis, Scope* s) {
  if (auto it = ranges_.find(axis); it != ranges_.end()) return it->second;
  return {lo(axis, s), hi(axis, s)};
}

// ---- lanes and copies --------------------------------------------------------------------------------------------------

ExprId Lowering::coordinate(Scope* s, AxisId axis) const {
  Scope* by = binder(s, axis);
  COSMATI_CHECK(by, "axis {} is not bound here", p_[axis].name);
  const Coordinates& c = by->coordinates.at(axis);
  return c.at[c.at.size() == 1 ? 0 : copies_.at(axis)];
}

CopyKey Lowering::copy_key(const AxisSet& axes, Scope* s) const {
  CopyKey key;
  for (AxisId axis : axes)
    if (Scope* by = binder(s, axis); by && by->coordinates.at(axis).at.size() > 1) key.push_back(copies_.at(axis));
  return key;
}

bool Lowering::lanes_taken(Scope* s) {
  for (; s; s = s->parent)
    for (const auto& [axis, c] : s->coordinates)
      if (c.lanes) return true;
  return false;
}

std::optional<ExprId> Lowering::inside(const AxisSet& axes, Scope* s) {
  std::optional<ExprId> all;
  for (AxisId axis : axes) {
    Scope* by = binder(s, axis);
    if (!by) continue;
    const Coordinates& c = by->coordinates.at(axis);
    if (c.inside.empty()) continue;
    const auto& one = c.inside[c.inside.size() == 1 ? 0 : copies_.at(axis)];
    if (one) all = all ? both(*all, *one) : *one;
  }
  return all ? std::optional(b_.let(*s->block, "inside", *all)) : std::nullopt;
}

Coordinates Lowering::neighbours(AxisId axis, ExprId base, std::optional<ExprId> last, Shape shape, Block& block) {
  Coordinates c;
  c.lanes = shape.lanes > 1;
  c.base = base;
  for (std::uint32_t u = 0; u < shape.copies; ++u) {
    c.at.push_back(b_.let(block, p_[axis].name, place_in_block(base, u, shape)));
    if (last)
      c.inside.push_back(u % shape.side ? c.inside.back() : b_.let(block, "inside", b_.apply(Op::lt, {c.at.back(), *last})));
  }
  return c;
}

ExprId Lowering::place_in_block(ExprId base, std::uint32_t copy, const Shape& shape) {
  const std::uint32_t before = copy / shape.side * shape.side;
  const ExprId place = add(base, b_.integer(static_cast<std::int64_t>(before) * shape.lanes + copy % shape.side));
  return shape.lanes > 1 ? add(place, mul(b_.lane(), b_.integer(shape.side))) : place;
}

// A lane whose first element is inside has all of its neighbours inside.
void Lowering::rely_on_whole_vectors(AxisId axis, const Shape& shape) {
  if (whole_vectors_.emplace(axis, shape.side).second) k_.conditions.push_back(is_multiple(axis_extent(axis), shape.side));
}

// Neighbours that a lane has side by side are moved at once, as far as that goes, where they lie at a multiple of their size.
void Lowering::rely_on_alignment(TensorId tensor, const std::vector<ir::Index>& index, Scope* s) {
  for (std::uint32_t d = 0; d < index.size(); ++d) {
    const auto* coordinate = index[d].empty() ? nullptr : std::get_if<ir::Coord>(&p_[index[d].back()].node);
    if (!coordinate || !facts_.unit_stride[tensor.index][d]) continue;
    Scope* by = binder(s, coordinate->axis);
    const std::uint32_t side = by && by->coordinates.at(coordinate->axis).lanes ? shape(coordinate->axis).side : 1;
    const auto at_once = std::min(side, static_cast<std::uint32_t>(kernel::aligned_bytes / byte_size(p_[tensor].dtype)));
    if (at_once == 1 || !aligned_.emplace(tensor, at_once).second) continue;
    const ExprId unaligned =
        param(kernel::Param::Source::unaligned, tensor.index, 0, "unaligned_" + p_[tensor].name, DType::i64_);
    k_.conditions.push_back(b_.apply(Op::eq, {unaligned, b_.integer(0)}));
    for (std::uint32_t other = 0; other < index.size(); ++other)
      if (other != d && !facts_.unit_stride[tensor.index][other])
        k_.conditions.push_back(is_multiple(stride(tensor, other), at_once));
  }
}

Lowering::Shape Lowering::shape(AxisId axis) const {
  const place::AxisMap* map = phase_->placement.find(axis);
  if (!map) return {};
  return {static_cast<std::uint32_t>(place::group_lanes(*map)),
          static_cast<std::uint32_t>(place::constant_size(*map, place::Res::reg)), plan::held_whole(*phase_, axis).has_value(),
          static_cast<std::uint32_t>(place::side_by_side(*map))};
}

// What is over these axes then belongs to the instance, a register for each copy.
void Lowering::hold_whole_axes(Scope* s) {
  for (const place::AxisMap& map : phase_->placement.axes) {
    const Shape own = shape(map.axis);
    if (!own.whole) continue;
    if (own.side > 1) rely_on_whole_vectors(map.axis, own);
    const ExprId first = b_.let(*s->block, "first", lo(map.axis, s)), last = b_.let(*s->block, "last", hi(map.axis, s));
    s->coordinates[map.axis] = neighbours(map.axis, first, last, own, *s->block);
    Coordinates& held_at = s->coordinates[map.axis];
    if (const auto full = m_.full.find(map.axis); full != m_.full.end()) {
      for (int copy = 0; copy < full->second; ++copy) held_at.inside[static_cast<std::size_t>(copy)] = std::nullopt;
      k_.conditions.push_back(
          b_.apply(Op::le, {b_.integer(static_cast<std::int64_t>(full->second) * own.lanes), axis_extent(map.axis)}));
    }
    const std::int64_t held = static_cast<std::int64_t>(own.lanes) * own.copies;
    k_.conditions.push_back(b_.apply(Op::le, {axis_extent(map.axis), b_.integer(held)}));
  }
}

std::vector<std::pair<AxisId, Lowering::Shape>> Lowering::nest(std::vector<AxisId> axes, bool lanes) const {
  std::vector<std::pair<AxisId, Shape>> shapes;
  std::optional<std::size_t> taker;
  std::erase_if(axes, [&](AxisId axis) { return shape(axis).whole; });
  if (lanes)
    for (const place::AxisMap& map : phase_->placement.axes) {
      const auto it = std::find(axes.begin(), axes.end(), map.axis);
      if (taker || it == axes.end() || shape(map.axis).lanes == 1) continue;
      std::rotate(it, it + 1, axes.end());
      taker = axes.size() - 1;
    }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Shape own = shape(axes[i]);
    const bool plain = own.lanes > 1 && i != taker;
    shapes.emplace_back(axes[i], plain ? Shape{} : own);
  }
  return shapes;
}

// Whether an expression or a statement made since then has this leaf as an operand.
bool Lowering::used(ExprId leaf, std::size_t first_expr, std::size_t first_stmt) const {
  const auto is = [&](ExprId e) { return e == leaf; };
  for (std::size_t i = first_expr; i < k_.exprs.size(); ++i) {
    const kernel::ExprNode& x = k_.exprs[i].node;
    if (const auto* a = std::get_if<kernel::Apply>(&x); a && std::any_of(a->args.begin(), a->args.end(), is)) return true;
    if (const auto* s = std::get_if<kernel::Shuffle>(&x); s && is(s->value)) return true;
    if (const auto* l = std::get_if<kernel::Load>(&x); l && (is(l->ref.offset) || l->guard == leaf || l->otherwise == leaf))
      return true;
  }
  for (std::size_t i = first_stmt; i < k_.stmts.size(); ++i) {
    const kernel::StmtNode& x = k_.stmts[i].node;
    if (const auto* s = std::get_if<kernel::Store>(&x); s && (is(s->value) || is(s->ref.offset) || s->guard == leaf)) return true;
    const auto* f = std::get_if<kernel::For>(&x);
    if (f && (is(f->lo) || is(f->hi) ||
              std::any_of(f->carries.begin(), f->carries.end(), [&](const auto& c) { return is(c.init) || is(c.next); })))
      return true;
  }
  return false;
}

Arguments Lowering::loop(AxisId axis, ExprId first, ExprId last, const std::function<Coordinates(ExprId, Block&)>& bind,
                         const Arguments& state, const std::vector<std::string>& names, Scope* outer, const Body& body) {
  kernel::For loop{b_.fresh(p_[axis].name, DType::i64_), first, last, {}, {}};
  Arguments inner, results;
  for (std::size_t i = 0; i < state.size(); ++i) {
    DType dtype = k_[state[i]].dtype;
    VarId in = b_.fresh(names[i], dtype), result = b_.fresh(names[i], dtype);
    loop.carries.push_back({in, result, state[i], {}});
    inner.push_back(b_.var(in));
    results.push_back(b_.var(result));
  }
  const std::size_t first_expr = k_.exprs.size(), first_stmt = k_.stmts.size();
  Scope scope{outer, &loop.body, {{axis, bind(b_.var(loop.var), loop.body)}}};
  scope.nest = nest_;
  const Arguments next = body(&scope, inner);
  // What the body neither changes nor reads goes around the loop.
  std::vector<kernel::For::Carry> carries;
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (next[i] == inner[i] && !used(inner[i], first_expr, first_stmt)) {
      results[i] = state[i];
      continue;
    }
    loop.carries[i].next = next[i];
    carries.push_back(loop.carries[i]);
  }
  loop.carries = std::move(carries);
  outer->block->push_back(b_.statement(std::move(loop)));
  return results;
}

Arguments Lowering::loops(const std::vector<std::pair<AxisId, Shape>>& axes, const Arguments& state,
                          const std::vector<std::string>& names, Scope* outer, const Body& body) {
  const int number = ++nests_, around = std::exchange(nest_, number);
  Arguments results = loops(axes, 0, state, names, outer, body);
  nest_ = around;
  std::erase_if(on_the_way_, [&](const auto& array) {
    const auto& [nest, scope, value] = array;
    if (nest == number) scope->filled[value] = true;
    return nest == number;
  });
  return results;
}

Arguments Lowering::loops(const std::vector<std::pair<AxisId, Shape>>& axes, std::size_t at, Arguments state,
                          const std::vector<std::string>& names, Scope* outer, const Body& body) {
  if (at == axes.size()) return body(outer, state);
  const auto& [axis, shape] = axes[at];
  const Body inner = [&](Scope* s, const Arguments& old) { return loops(axes, at + 1, old, names, s, body); };
  const auto [first, last] = range(axis, outer);
  if (shape.lanes == 1 && shape.copies == 1)
    return loop(axis, first, last, [&](ExprId i, Block&) { return Coordinates{{i}, {}, false, i}; }, state, names, outer, inner);

  if (shape.side > 1) rely_on_whole_vectors(axis, shape);
  Block& block = *outer->block;
  const std::uint32_t side = shape.side;
  const ExprId lanes = b_.integer(static_cast<std::int64_t>(shape.lanes) * side),
               size = b_.integer(static_cast<std::int64_t>(shape.lanes) * shape.copies);
  const ExprId from = b_.let(block, "first", first), to = b_.let(block, "last", last);
  const ExprId total = b_.let(block, "total", maximum(b_.integer(0), sub(to, from)));
  const ExprId blocks = b_.let(block, "blocks", b_.apply(Op::floordiv, {total, size}));
  state = loop(
      axis, b_.integer(0), blocks,
      [&](ExprId i, Block& in) {
        const ExprId at = b_.let(in, p_[axis].name, add(from, mul(i, size)));
        return neighbours(axis, at, {}, shape, in);
      },
      state, names, outer, inner);
  const ExprId done = b_.let(block, "done", mul(blocks, size));
  const ExprId left = add(sub(total, done), sub(lanes, b_.integer(1)));
  return loop(
      axis, b_.integer(0), b_.let(block, "rest", b_.apply(Op::floordiv, {left, lanes})),
      [&](ExprId i, Block& in) {
        const ExprId base = b_.let(in, p_[axis].name, add(from, add(done, mul(i, lanes))));
        return neighbours(axis, base, shape.lanes > 1 ? std::optional(to) : std::nullopt, {shape.lanes, side, false, side}, in);
      },
      state, names, outer, inner);
}

void Lowering::reduce_before(const std::vector<ValueId>& values, Scope* s) {
  std::set<ValueId> seen;
  const std::function<void(ValueId)> visit = [&](ValueId v) {
    if (!seen.insert(v).second || kept_.count(v)) return;
    const ir::AxisSet& axes = p_[v].axes;
    const bool unchanged = std::all_of(axes.begin(), axes.end(), [&](AxisId axis) { return binder(s, axis); });
    if (unchanged && std::holds_alternative<ir::Reduce>(p_[v].node))
      each_copy(axes, s, [&] { emit_all(v, s); });
    else
      for (ValueId operand : ir::operands(p_[v].node)) visit(operand);
  };
  for (ValueId v : values) visit(v);
}

void Lowering::loops(const std::vector<AxisId>& axes, Scope* outer, const std::function<void(Scope*)>& body) {
  loops(nest(axes, !lanes_taken(outer)), {}, {}, outer, [&](Scope* s, const Arguments&) {
    body(s);
    return Arguments{};
  });
}

}  // namespace cosmati::lower
