// Reductions: every worker folds its own elements (lane by lane, copy by copy), then copies are merged, then lanes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lower/lowering.h"

namespace cosmati::lower {

void Lowering::emit_reduce(ValueId v, Scope* s) {
  const ir::Reduce& reduce = std::get<ir::Reduce>(p_[v].node);
  const ir::Reducer& r = p_[reduce.reducer];
  const std::string name = name_of(v);
  // The elements of a stream's current piece are one point here.
  std::vector<AxisId> axes;
  for (AxisId axis : reduce.axes)
    if (!p_[axis].piece) axes.push_back(axis);
  // By name, so that a program computes the same bits after it is printed and read back.
  std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
  const bool ordered = reduce.order == ir::Order::left;
  auto shapes = nest(axes, !ordered && !lanes_taken(s));
  if (ordered)
    for (auto& [axis, shape] : shapes) shape = {};
  std::size_t accumulators = 1;
  bool lanes = false;
  for (const auto& [axis, shape] : shapes) {
    accumulators *= shape.copies;
    lanes = lanes || shape.lanes > 1;
  }

  // The states of every copy of the result, one for each accumulator.
  const std::size_t width = r.identity.results.size();
  Arguments state;
  std::vector<std::string> names;
  std::size_t results = 0;
  each_copy(p_[v].axes, s, [&] { ++results; });
  for (std::size_t i = 0; i < results * accumulators; ++i)
    for (std::size_t k = 0; k < width; ++k) {
      std::map<ValueId, ExprId> memo;
      state.push_back(lambda_value(r.identity.results[k], {}, s, memo));
      names.push_back(width == 1 ? name
                                 : fmt::format("{}_{}", name, k < r.state_names.size() ? r.state_names[k] : std::to_string(k)));
    }
  const auto part = [&](const Arguments& all, std::size_t i) {
    return Arguments(all.begin() + static_cast<std::ptrdiff_t>(i * width),
                     all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  };

  state = loops(shapes, 0, state, names, s, [&](Scope* inner, const Arguments& old) {
    Arguments next = old;
    std::size_t result = 0;
    each_copy(p_[v].axes, inner, [&] {
      each_copy(reduce.axes, inner, [&] {
        std::size_t accumulator = 0;
        for (const auto& [axis, shape] : shapes) {
          Scope* by = binder(inner, axis);
          const bool several = by->coordinates.at(axis).at.size() > 1;
          accumulator = accumulator * shape.copies + (several ? copies_.at(axis) : 0);
        }
        const std::size_t at = result * accumulators + accumulator;
        const Arguments folded = fold(reduce, r, part(next, at), inner);
        std::copy(folded.begin(), folded.end(), next.begin() + static_cast<std::ptrdiff_t>(at * width));
      });
      ++result;
    });
    return next;
  });

  std::size_t result = 0;
  each_copy(p_[v].axes, s, [&] {
    std::vector<Arguments> parts;
    for (std::size_t a = 0; a < accumulators; ++a) parts.push_back(part(state, result * accumulators + a));
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
      for (std::size_t a = 0; a < parts.size() / 2; ++a) parts[a] = merge(r, parts[a], parts[(parts.size() + 1) / 2 + a], s);
    Arguments finish = lanes ? settle_lanes(r, parts[0], s) : parts[0];
    if (std::optional<DType> type = count_type(r)) {
      ExprId count = b_.integer(1);
      for (AxisId axis : axes) count = mul(count, maximum(b_.integer(0), sub(hi(axis, s), lo(axis, s))));
      finish.push_back(b_.let(*s->block, "count", b_.cast(*type, count)));
    }
    s->memo[{v, copy_key(p_[v].axes, s)}] = lambda(r.finish, finish, s);
    ++result;
  });
}

Arguments Lowering::merge(const ir::Reducer& r, const Arguments& a, const Arguments& b, Scope* s) {
  Arguments both = a;
  both.insert(both.end(), b.begin(), b.end());
  return lambda(r.merge, both, s);
}

// A butterfly: after log2(lanes) exchanges every lane holds the whole, in the same bits. A built-in merge gives equal bits in
// both orders; a user's may not, so there the lower lane's state always stands on the left.
Arguments Lowering::settle_lanes(const ir::Reducer& r, Arguments state, Scope* s) {
  for (std::uint32_t mask = static_cast<std::uint32_t>(lanes_) / 2; mask > 0; mask /= 2) {
    Arguments left = state, right;
    for (ExprId x : state) right.push_back(b_.let(*s->block, "other", b_.swap(x, mask)));
    if (!r.builtin) {
      const ExprId lower =
          b_.let(*s->block, "lower", b_.apply(Op::eq, {b_.apply(Op::bit_and, {b_.lane(), b_.integer(mask)}), b_.integer(0)}));
      for (std::size_t k = 0; k < state.size(); ++k) {
        const ExprId own = left[k], other = right[k];
        left[k] = b_.let(*s->block, "a", b_.apply(Op::where, {lower, own, other}));
        right[k] = b_.let(*s->block, "b", b_.apply(Op::where, {lower, other, own}));
      }
    }
    state = merge(r, left, right, s);
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
  const std::optional<ExprId> in_range = inside(reduce.axes, s);
  const auto kept = [&](Arguments merged) {
    if (in_range)
      for (std::size_t k = 0; k < merged.size(); ++k)
        merged[k] = b_.let(*s->block, "kept", b_.apply(Op::where, {*in_range, merged[k], state[k]}));
    return merged;
  };
  // Within a reduction a product may be added without rounding in between.
  if (r.fold == Op::add && lifts_unchanged(r) && !m_.homes.count(reduce.args[0])) {
    const ir::Value& arg = p_[reduce.args[0]];
    const auto* e = std::get_if<ir::Elementwise>(&arg.node);
    if (e && e->op == Op::mul && is_float(arg.dtype) && reg(arg.dtype) == k_[state[0]].dtype)
      return kept({b_.let(*s->block, "acc", b_.apply(Op::fma, {emit(e->args[0], s), emit(e->args[1], s), state[0]}))});
  }
  Arguments args;
  for (ValueId arg : reduce.args) args.push_back(emit(arg, s));
  for (std::size_t i = 0; i < args.size(); ++i)
    if (i < r.arg_types.size()) args[i] = b_.let(*s->block, "x", b_.cast(reg(r.arg_types[i]), args[i]));
  return kept(merge(r, state, lambda(r.lift, args, s), s));
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
