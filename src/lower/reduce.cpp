// Reductions: every worker folds its own elements (lane by lane, copy by copy), then copies are merged, then lanes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "lower/lowering.h"

namespace cosmati::lower {

// The states of every copy of `v`, folded over all points of its reduction.
std::vector<Arguments> Lowering::folded(ValueId v, const Fold& f, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const std::vector<AxisId> axes = reduced_axes(reduce);
  const bool ordered = reduce.order == ir::Order::left;
  auto shapes = nest(axes, !ordered && !lanes_taken(s));
  if (ordered)
    for (auto& [axis, shape] : shapes) shape = {};
  reduce_before(reduce.args, s);
  // A few chains hide the latency of a step; more states than registers would be moved to memory and back. What is told from a
  // state and its place needs one for every copy.
  constexpr std::uint32_t enough = 8, shared = 4;
  // What the lanes hold whole is folded like the loops.
  std::vector<std::pair<AxisId, Shape>> all = shapes;
  for (AxisId axis : axes)
    if (shape(axis).whole) all.emplace_back(axis, shape(axis));
  const auto chains = [&](const Shape& shape) { return f.close || shape.copies <= enough ? shape.copies : shared; };
  std::size_t accumulators = 1;
  bool lanes = false;
  for (const auto& [axis, shape] : all) {
    accumulators *= chains(shape);
    lanes = lanes || shape.lanes > 1;
  }

  // Every copy of the result has a state for each accumulator.
  const std::size_t width = f.identity.size();
  std::size_t results = 0;
  each_copy(p_[v].axes, s, [&] { ++results; });
  Arguments state;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < results * accumulators; ++i) {
    state.insert(state.end(), f.identity.begin(), f.identity.end());
    names.insert(names.end(), f.names.begin(), f.names.end());
  }
  const auto state_at = [&](const Arguments& all, std::size_t i) { return part(all, i * width, width); };
  state = loops(shapes, state, names, s, [&](Scope* inner, const Arguments& old) {
    Arguments next = old;
    std::size_t result = 0;
    each_copy(p_[v].axes, inner, [&] {
      each_copy(reduce.axes, inner, [&] {
        std::size_t accumulator = 0;
        for (const auto& [axis, shape] : all) {
          const bool several = binder(inner, axis)->coordinates.at(axis).at.size() > 1;
          accumulator = accumulator * chains(shape) + (several ? copies_.at(axis) % chains(shape) : 0);
        }
        const std::optional<ExprId> in_range = inside(reduce.axes, inner);
        const std::size_t at = (result * accumulators + accumulator) * width;
        const Arguments before = state_at(next, at / width), after = f.step(before, result, inner);
        for (std::size_t k = 0; k < width; ++k)
          next[at + k] =
              in_range ? b_.let(*inner->block, "kept", b_.apply(Op::where, {*in_range, after[k], before[k]})) : after[k];
      });
      ++result;
    });
    return next;
  });

  std::vector<Arguments> settled;
  for (std::size_t result = 0; result < results; ++result) {
    std::vector<Arguments> parts;
    for (std::size_t a = 0; a < accumulators; ++a) {
      const Arguments one = state_at(state, result * accumulators + a);
      parts.push_back(f.close ? f.close(one, a, all.back().second) : one);
    }
    settled.push_back(settle(f, std::move(parts), lanes, s));
  }
  return settled;
}

// One state from those of the copies, and of the lanes where they have elements too.
Arguments Lowering::settle(const Fold& f, std::vector<Arguments> parts, bool lanes, Scope* s) {
  if (f.settle) return f.settle(parts, lanes, s);
  for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
    for (std::size_t a = 0; a < parts.size() / 2; ++a) parts[a] = f.merge(parts[a], parts[(parts.size() + 1) / 2 + a], s);
  return lanes ? settle_lanes(f, parts[0], s) : parts[0];
}

// By name, so that a program computes the same bits after it is printed and read back. The elements of a stream's current piece
// are one point here.
std::vector<AxisId> Lowering::reduced_axes(const ir::Reduce& reduce) const {
  std::vector<AxisId> axes;
  for (AxisId axis : reduce.axes)
    if (!p_[axis].piece) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
  return axes;
}

ExprId Lowering::count(const ir::Reduce& reduce, Scope* s) {
  ExprId count = b_.integer(1);
  for (AxisId axis : reduced_axes(reduce)) count = mul(count, maximum(b_.integer(0), sub(hi(axis, s), lo(axis, s))));
  return count;
}

Lowering::Fold Lowering::fold_of(ValueId v, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const ir::Reducer& r = p_[reduce.reducer];
  const std::string name = name_of(v);
  Fold f;
  for (std::size_t k = 0; k < r.identity.results.size(); ++k) {
    std::map<ValueId, ExprId> memo;
    f.identity.push_back(lambda_value(r.identity.results[k], {}, s, memo));
    f.names.push_back(r.identity.results.size() == 1
                          ? name
                          : fmt::format("{}_{}", name, k < r.state_names.size() ? r.state_names[k] : std::to_string(k)));
  }
  f.step = [this, &reduce, &r](const Arguments& state, std::size_t, Scope* inner) { return fold(reduce, r, state, inner); };
  f.merge = [this, &r](const Arguments& a, const Arguments& b, Scope* at) { return merge(r, a, b, at); };
  f.symmetric = r.builtin;
  return f;
}

// Where the groups of this phase leave the states of their parts.
Lowering::Parts& Lowering::parts_of(ValueId v, const Fold& f) {
  const std::vector<AxisId> axes(p_[v].axes.begin(), p_[v].axes.end());
  const auto [found, fresh] = leaving_parts_.try_emplace(v, Parts{{}, part_->second});
  Parts& parts = found->second;
  for (std::size_t k = 0; fresh && k < f.identity.size(); ++k) {
    parts.states.push_back(scratch(kernel::Buffer::Kind::launch_scratch, f.names[k] + "_parts", k_[f.identity[k]].dtype, axes));
    kernel::Buffer& buffer = k_.buffers[parts.states.back().buffer.index];
    buffer.elements = mul(buffer.elements, b_.integer(parts.count));
  }
  return parts;
}

ExprId Lowering::part_offset(const Array& states, ExprId part, Scope* s) {
  for (AxisId axis : states.axes) part = mul(part, array_extent(axis));
  return add(part, array_offset(states, s));
}

void Lowering::emit_parts(ValueId v, Scope* root) {
  const Fold f = fold_of(v, root);
  const std::vector<Arguments> states = folded(v, f, root);
  const Parts& parts = parts_of(v, f);
  std::size_t result = 0;
  each_copy(p_[v].axes, root, [&] {
    for (std::size_t k = 0; k < f.identity.size(); ++k)
      b_.store(*root->block, parts.states[k].buffer, part_offset(parts.states[k], part_->first, root), states[result][k],
               inside(p_[v].axes, root));
    ++result;
  });
}

// A group adds to the states of its part, one instance after the other: before the first they are those of no element.
void Lowering::begin_accumulating(ValueId v, Scope* root) {
  const Fold f = fold_of(v, root);
  const Parts& parts = parts_of(v, f);
  loops(std::vector<AxisId>(p_[v].axes.begin(), p_[v].axes.end()), root, [&](Scope* inner) {
    each_copy(p_[v].axes, inner, [&] {
      for (std::size_t k = 0; k < f.identity.size(); ++k)
        b_.store(*inner->block, parts.states[k].buffer, part_offset(parts.states[k], part_->first, inner), f.identity[k],
                 inside(p_[v].axes, inner));
    });
  });
}

// Over the same axes, so that what several reductions read is loaded once.
void Lowering::emit_accumulate(const std::vector<ValueId>& values, Scope* s) {
  for (ValueId v : values) reduce_before(std::get<ir::Reduce>(p_[v].node).args, s);
  const ir::AxisSet& axes = p_[values[0]].axes;
  loops(std::vector<AxisId>(axes.begin(), axes.end()), s, [&](Scope* inner) {
    for (ValueId v : values) accumulate_element(v, inner);
  });
}

void Lowering::accumulate_element(ValueId v, Scope* inner) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const Fold f = fold_of(v, inner);
  const Parts& parts = leaving_parts_.at(v);
  each_copy(p_[v].axes, inner, [&] {
    const std::optional<ExprId> guard = inside(p_[v].axes, inner);
    Arguments state, at;
    for (const Array& array : parts.states) {
      at.push_back(b_.let(*inner->block, "at", part_offset(array, part_->first, inner)));
      state.push_back(b_.let(*inner->block, "state", guarded_load(array.buffer, at.back(), guard)));
    }
    each_copy(reduce.axes, inner, [&] {
      const std::optional<ExprId> in_range = inside(reduce.axes, inner);
      const Arguments after = f.step(state, 0, inner);
      for (std::size_t k = 0; k < state.size(); ++k)
        state[k] = in_range ? b_.let(*inner->block, "kept", b_.apply(Op::where, {*in_range, after[k], state[k]})) : after[k];
    });
    for (std::size_t k = 0; k < state.size(); ++k) b_.store(*inner->block, parts.states[k].buffer, at[k], state[k], guard);
  });
}

std::vector<Arguments> Lowering::merged_parts(ValueId v, const Fold& f, Scope* s) {
  const Parts& parts = parts_.at(v);
  std::vector<Arguments> all;
  each_copy(p_[v].axes, s, [&] {
    kernel::For loop{b_.fresh("part", DType::i64_), b_.integer(0), b_.integer(parts.count), {}, {}};
    Arguments before, results;
    for (std::size_t k = 0; k < f.identity.size(); ++k) {
      const DType t = k_[f.identity[k]].dtype;
      loop.carries.push_back({b_.fresh(f.names[k], t), b_.fresh(f.names[k], t), f.identity[k], {}});
      before.push_back(b_.var(loop.carries[k].inner));
      results.push_back(b_.var(loop.carries[k].result));
    }
    Scope body{s, &loop.body, {}};
    const std::optional<ExprId> guard = inside(p_[v].axes, s);
    Arguments state;
    for (const Array& array : parts.states) {
      const ExprId at = part_offset(array, b_.var(loop.var), s);
      state.push_back(b_.let(loop.body, "state", guarded_load(array.buffer, at, guard)));
    }
    const Arguments after = f.merge(before, state, &body);
    for (std::size_t k = 0; k < after.size(); ++k) loop.carries[k].next = after[k];
    s->block->push_back(b_.statement(std::move(loop)));
    all.push_back(std::move(results));
  });
  return all;
}

// Reductions over the same points that do not need each other share one nest, and so the loads of what they read.
void Lowering::emit_reduce(ValueId v, Scope* s) {
  if (m_.two_passes.count(v)) return emit_moments(v, s);
  if (parts_.count(v)) {
    const Folding one = by_table(v, s);
    return one.finish(merged_parts(v, one.fold, s));
  }
  reduce_before(std::get<ir::Reduce>(p_[v].node).args, s);
  const std::vector<ValueId> values = beside(v, s);
  const std::set<ValueId> outer = pending_;
  pending_.insert(values.begin(), values.end());
  for (ValueId w : values) reduce_before(std::get<ir::Reduce>(p_[w].node).args, s);
  pending_ = outer;
  std::vector<Folding> all;
  for (ValueId w : values) all.push_back(folding(w, values, s));
  // Extremes of one value are told from the same states.
  std::vector<std::size_t> first(all.size()), distinct;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto same = std::find_if(distinct.begin(), distinct.end(),
                                   [&](std::size_t k) { return all[i].extreme_of && all[i].extreme_of == all[k].extreme_of; });
    first[i] = same == distinct.end() ? i : *same;
    if (first[i] == i) distinct.push_back(i);
  }
  if (distinct.size() == 1) {
    const std::vector<Arguments> states = folded(v, all[0].fold, s);
    for (const Folding& f : all) f.finish(states);
    return;
  }
  std::map<std::size_t, std::size_t> begins;
  const std::vector<Arguments> states = folded(v, joined(all, distinct, begins), s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Arguments> own;
    for (const Arguments& state : states) own.push_back(part(state, begins[first[i]], all[i].fold.identity.size()));
    all[i].finish(own);
  }
}

// v itself first.
std::vector<ValueId> Lowering::beside(ValueId v, Scope* s) {
  constexpr std::size_t most = 4;  // their states are in registers
  const auto& reduce = std::get<ir::Reduce>(p_[v].node);
  std::vector<ValueId> all = {v};
  const auto needs = [&](ValueId a, ValueId b) {
    std::set<ValueId> seen;
    const std::function<bool(ValueId)> visit = [&](ValueId x) {
      if (x == b) return true;
      if (!seen.insert(x).second) return false;
      const std::vector<ValueId> parts = ir::operands(p_[x].node);
      // What a stream leaves may need whatever its body evaluates.
      const auto* part = std::get_if<ir::Part>(&p_[x].node);
      return (part && std::holds_alternative<StreamId>(part->of)) || std::any_of(parts.begin(), parts.end(), visit);
    };
    return visit(a);
  };
  for (ValueId w : phase_values_) {
    const auto* other = std::get_if<ir::Reduce>(&p_[w].node);
    if (!other || w == v || all.size() == most || other->axes != reduce.axes || p_[w].axes != p_[v].axes) continue;
    if (other->order != reduce.order || m_.two_passes.count(w) || parts_.count(w) || kept_.count(w) || m_.homes.count(w))
      continue;
    if (streams_in(w) != streams_in(v) || s->memo.count({w, copy_key(p_[w].axes, s)})) continue;
    // Reductions whose operands are being written wait for this one: what needs them cannot come before.
    if (std::any_of(pending_.begin(), pending_.end(), [&](ValueId x) { return needs(w, x); })) continue;
    if (std::none_of(all.begin(), all.end(), [&](ValueId x) { return needs(w, x) || needs(x, w); })) all.push_back(w);
  }
  return all;
}

Arguments Lowering::part(const Arguments& all, std::size_t first, std::size_t count) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {at, at + static_cast<std::ptrdiff_t>(count)};
}

// One fold whose state is the states of several, next to each other; `begins`: where that of each is.
Lowering::Fold Lowering::joined(const std::vector<Folding>& all, const std::vector<std::size_t>& distinct,
                                std::map<std::size_t, std::size_t>& begins) {
  Fold f;
  for (std::size_t i : distinct) {
    const Fold& one = all[i].fold;
    begins[i] = f.identity.size();
    f.identity.insert(f.identity.end(), one.identity.begin(), one.identity.end());
    f.names.insert(f.names.end(), one.names.begin(), one.names.end());
    f.symmetric = f.symmetric && one.symmetric;
  }
  const auto each = [&all, distinct](const auto& apply) {
    Arguments together;
    std::size_t first = 0;
    for (std::size_t i : distinct) {
      const std::size_t count = all[i].fold.identity.size();
      const Arguments own = apply(all[i].fold, first, count);
      together.insert(together.end(), own.begin(), own.end());
      first += count;
    }
    return together;
  };
  f.step = [each](const Arguments& state, std::size_t result, Scope* at) {
    return each([&](const Fold& one, std::size_t first, std::size_t n) { return one.step(part(state, first, n), result, at); });
  };
  f.merge = [each](const Arguments& a, const Arguments& b, Scope* at) {
    return each(
        [&](const Fold& one, std::size_t first, std::size_t n) { return one.merge(part(a, first, n), part(b, first, n), at); });
  };
  if (std::any_of(distinct.begin(), distinct.end(), [&](std::size_t i) { return bool(all[i].fold.close); }))
    f.close = [each](const Arguments& state, std::size_t copy, const Shape& shape) {
      return each([&](const Fold& one, std::size_t first, std::size_t n) {
        return one.close ? one.close(part(state, first, n), copy, shape) : part(state, first, n);
      });
    };
  if (std::any_of(distinct.begin(), distinct.end(), [&](std::size_t i) { return bool(all[i].fold.settle); }))
    f.settle = [this, each](const std::vector<Arguments>& states, bool lanes, Scope* at) {
      return each([&](const Fold& one, std::size_t first, std::size_t n) {
        std::vector<Arguments> own;
        for (const Arguments& state : states) own.push_back(part(state, first, n));
        return settle(one, std::move(own), lanes, at);
      });
    };
  return f;
}

bool Lowering::is_extreme(ValueId v) const {
  const ir::Reducer& r = p_[std::get<ir::Reduce>(p_[v].node).reducer];
  return r.builtin && (r.fold == Op::maximum || r.fold == Op::minimum) && reg(r.state_types[0]) == DType::f32_;
}

Lowering::Folding Lowering::folding(ValueId v, const std::vector<ValueId>& beside, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const auto other_end = [&](ValueId w) {
    const ir::Reduce& other = std::get<ir::Reduce>(p_[w].node);
    return w != v && is_extreme(w) && other.args[0] == reduce.args[0] && lifts_unchanged(p_[other.reducer]);
  };
  if (is_extreme(v) && !m_.apart) return by_bits(v, s, std::any_of(beside.begin(), beside.end(), other_end));
  if (places_in_order(reduce)) return by_places(v, s);
  return by_table(v, s);
}

Lowering::Folding Lowering::by_table(ValueId v, Scope* s) {
  return {fold_of(v, s), [this, v, s](const std::vector<Arguments>& states) {
            const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
            const ir::Reducer& r = p_[reduce.reducer];
            std::size_t result = 0;
            each_copy(p_[v].axes, s, [&] {
              Arguments finish = states[result++];
              if (std::optional<DType> type = count_type(r))
                finish.push_back(b_.let(*s->block, "count", b_.cast(*type, count(reduce, s))));
              s->memo[{v, copy_key(p_[v].axes, s)}] = lambda(r.finish, finish, s);
            });
          }};
}

// Mean and variance of elements that can be read twice: the first pass finds a center near the mean, the second how far it is
// off, and the squares around it. Differences to the first element, then to the center, keep the error at the size of the spread.
void Lowering::emit_moments(ValueId v, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const DType t = reg(p_[reduce.args[0]].dtype);
  const auto plus = [&](const Arguments& a, const Arguments& b, Scope* at) {
    Arguments sums;
    for (std::size_t k = 0; k < a.size(); ++k) sums.push_back(b_.let(*at->block, "t", add(a[k], b[k])));
    return sums;
  };
  const auto let = [&](Scope* at, const char* name, ExprId e) { return b_.let(*at->block, name, e); };
  const auto element = [&](Scope* at) { return let(at, "x", b_.cast(t, emit(reduce.args[0], at))); };
  const ExprId zero = b_.constant(t, 0), points = let(s, "points", count(reduce, s)), n = let(s, "n", b_.cast(t, points));

  Scope start{s, s->block, {}};
  start.point = true;
  const ExprId any = let(s, "any", b_.apply(Op::lt, {b_.integer(0), points}));
  for (AxisId axis : reduced_axes(reduce)) start.coordinates[axis] = {{let(s, p_[axis].name.c_str(), lo(axis, s))}, {any}};
  Arguments first;
  each_copy(p_[v].axes, s, [&] { first.push_back(element(&start)); });

  // The plain sum is what the mean is where an element is not finite.
  const std::vector<Arguments> near = folded(v,
                                             {{zero, zero},
                                              {"offset", "total"},
                                              [&](const Arguments& state, std::size_t result, Scope* at) {
                                                const ExprId x = element(at);
                                                return plus(state, {let(at, "d", sub(x, first[result])), x}, at);
                                              },
                                              plus,
                                              true},
                                             s);
  Arguments center;
  for (std::size_t i = 0; i < near.size(); ++i)
    center.push_back(let(s, "center", add(first[i], b_.apply(Op::div, {near[i][0], n}))));
  const std::vector<Arguments> off =
      folded(v,
             {{zero, zero},
              {"rest", "squares"},
              [&](const Arguments& state, std::size_t result, Scope* at) -> Arguments {
                const ExprId d = let(at, "d", sub(element(at), center[result]));
                return {let(at, "t", add(state[0], d)), let(at, "t", b_.apply(Op::fma, {d, d, state[1]}))};
              },
              plus,
              true},
             s);
  std::size_t i = 0;
  each_copy(p_[v].axes, s, [&] {
    const ExprId shift = let(s, "shift", b_.apply(Op::div, {off[i][0], n}));
    const ExprId mean = let(s, "mean", add(center[i], shift));
    const ExprId finite = b_.apply(Op::eq, {sub(mean, mean), zero});
    const ExprId squares = sub(off[i][1], mul(off[i][0], shift));
    s->memo[{v, copy_key(p_[v].axes, s)}] = {
        let(s, "mean", b_.apply(Op::where, {finite, mean, b_.apply(Op::div, {near[i][1], n})})),
        let(s, "variance", b_.apply(Op::div, {maximum(squares, zero), n}))};
    ++i;
  });
}

Arguments Lowering::merge(const ir::Reducer& r, const Arguments& a, const Arguments& b, Scope* s) {
  Arguments both = a;
  both.insert(both.end(), b.begin(), b.end());
  return lambda(r.merge, both, s);
}

// A butterfly: after log2(lanes) exchanges every lane holds the whole, in the same bits. A merge that does not give equal bits in
// both orders always has the lower lane's state on the left.
Arguments Lowering::butterfly(const Fold& f, Arguments state, std::uint32_t lanes, Scope* s) {
  for (std::uint32_t mask = lanes / 2; mask > 0; mask /= 2) {
    Arguments left = state, right;
    for (ExprId x : state) right.push_back(b_.let(*s->block, "other", b_.swap(x, mask)));
    if (!f.symmetric) {
      const ExprId lower =
          b_.let(*s->block, "lower", b_.apply(Op::eq, {b_.apply(Op::bit_and, {b_.lane(), b_.integer(mask)}), b_.integer(0)}));
      for (std::size_t k = 0; k < state.size(); ++k) {
        const ExprId own = left[k], other = right[k];
        left[k] = b_.let(*s->block, "a", b_.apply(Op::where, {lower, own, other}));
        right[k] = b_.let(*s->block, "b", b_.apply(Op::where, {lower, other, own}));
      }
    }
    state = f.merge(left, right, s);
  }
  return state;
}

// Where there are several subgroups, the first lane of each leaves its whole, and every subgroup merges all of them again.
Arguments Lowering::settle_lanes(const Fold& f, Arguments state, Scope* s) {
  const auto subgroup = static_cast<std::uint32_t>(kernel::subgroup_lanes), lanes = static_cast<std::uint32_t>(lanes_);
  state = butterfly(f, state, std::min(lanes, subgroup), s);
  if (const std::uint32_t count = lanes / subgroup; count > 1) {
    const auto let = [&](const char* name, ExprId e) { return b_.let(*s->block, name, e); };
    const ExprId which = let("subgroup", b_.apply(Op::shift_right, {b_.lane(), b_.integer(std::countr_zero(subgroup))}));
    const ExprId leads =
        let("leads", b_.apply(Op::eq, {b_.apply(Op::bit_and, {b_.lane(), b_.integer(subgroup - 1)}), b_.integer(0)}));
    std::vector<BufferId> partials;
    for (ExprId x : state) {
      k_.buffers.push_back({kernel::Buffer::Kind::worker_scratch, kernel::Buffer::Access::read_write, 0, b_.integer(count),
                            b_.unique_name("partial"), k_[x].dtype});
      partials.emplace_back(static_cast<std::uint32_t>(k_.buffers.size() - 1));
      b_.store(*s->block, partials.back(), which, x, leads);
    }
    s->block->push_back(b_.statement(kernel::Fence{}));
    const std::uint32_t width = std::bit_ceil(count);
    const ExprId mine = let("mine", b_.apply(Op::bit_and, {b_.lane(), b_.integer(width - 1)}));
    std::optional<ExprId> any;
    if (width > count) any = let("any", b_.apply(Op::lt, {mine, b_.integer(count)}));
    for (std::size_t k = 0; k < state.size(); ++k) {
      const ExprId none = b_.cast(k_[state[k]].dtype, f.identity[k]);
      state[k] = let("part", any ? b_.load(partials[k], mine, *any, none) : b_.load(partials[k], mine));
    }
    state = butterfly(f, state, width, s);
  }
  for (ExprId& x : state) x = b_.let(*s->block, "all", b_.first(x));
  return state;
}

// The type in which the finish of a reducer takes the count of elements, if it does.
std::optional<DType> Lowering::count_type(const ir::Reducer& r) const {
  std::optional<DType> found;
  const std::function<void(ValueId)> visit = [&](ValueId v) {
    if (const auto* arg = std::get_if<ir::Arg>(&p_[v].node); arg && arg->slot == r.state_types.size()) found = reg(p_[v].dtype);
    for (ValueId operand : ir::operands(p_[v].node)) visit(operand);
  };
  for (ValueId v : r.finish.results) visit(v);
  return found;
}
// Whether an element enters the state as it is, but for its type.
bool Lowering::lifts_unchanged(const ir::Reducer& r) const {
  ValueId v = r.lift.results[0];
  while (const auto* e = std::get_if<ir::Elementwise>(&p_[v].node)) {
    if (e->op != Op::cast) return false;
    v = e->args[0];
  }
  return r.lift.results.size() == 1 && std::holds_alternative<ir::Arg>(p_[v].node);
}

Arguments Lowering::fold(const ir::Reduce& reduce, const ir::Reducer& r, const Arguments& state, Scope* s) {
  // Within a reduction a product may be added without rounding in between.
  if (r.fold == Op::add && lifts_unchanged(r) && !m_.homes.count(reduce.args[0])) {
    const ir::Value& arg = p_[reduce.args[0]];
    const auto* e = std::get_if<ir::Elementwise>(&arg.node);
    if (e && e->op == Op::mul && is_float(arg.dtype) && reg(arg.dtype) == k_[state[0]].dtype)
      return {b_.let(*s->block, "acc", b_.apply(Op::fma, {emit(e->args[0], s), emit(e->args[1], s), state[0]}))};
  }
  return merge(r, state, lifted(reduce, r, s), s);
}

// The state of one element.
Arguments Lowering::lifted(const ir::Reduce& reduce, const ir::Reducer& r, Scope* s) {
  Arguments args;
  for (ValueId arg : reduce.args) args.push_back(emit(arg, s));
  for (std::size_t i = 0; i < args.size(); ++i)
    if (i < r.arg_types.size()) args[i] = b_.let(*s->block, "x", b_.cast(reg(r.arg_types[i]), args[i]));
  return lambda(r.lift, args, s);
}

Arguments Lowering::lambda(const ir::Lambda& f, const Arguments& args, Scope* s) {
  std::map<ValueId, ExprId> memo;
  Arguments results;
  for (ValueId v : f.results) results.push_back(lambda_value(v, args, s, memo));
  return results;
}

ExprId Lowering::lambda_value(ValueId v, const Arguments& args, Scope* s, std::map<ValueId, ExprId>& memo) {
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

}  // namespace cosmati::lower
