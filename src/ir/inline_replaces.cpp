// Substitution over the value arena. An environment maps axes to index values of the new program; each environment has its own
// memo.
// SPDX-License-Identifier: Apache-2.0
#include "ir/inline_replaces.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::ir {
namespace {

using support::overloaded;

struct Environment {
  std::map<AxisId, ValueId> coordinates;  // axis of the old program -> value of the new one
  std::map<StreamId, StreamId> streams;   // streams cloned for these coordinates
  bool guarded = false;                   // the coordinates may be outside the ranges: loads must protect themselves
  auto key() const { return std::tie(coordinates, streams, guarded); }
  bool operator<(const Environment& other) const { return key() < other.key(); }
};

class Inliner {
 public:
  explicit Inliner(const Program& program) : p_(program), q_(program) {
    q_.values.clear();
    q_.stores.clear();
    q_.names.clear();
    q_.requires_.clear();
  }

  Program run() {
    refuse_deep();
    const Environment none;
    // Bounds of ranges are stated in extents, also in those that the program does not mention.
    for (std::uint32_t a = 0; a < p_.axes.size(); ++a)
      if (!p_.axes[a].piece && range_axes(p_, AxisId{a}).empty())
        intern({Extent{AxisId{a}}, DType::i64_, false, {}, {}, p_.axes[a].where});
    // In arena order operands come first, so the recursion stays shallow however long a chain of operations is.
    for (std::uint32_t i = 0; i < p_.values.size(); ++i)
      if (!depends_on_lambda(ValueId{i})) substitute(ValueId{i}, none);
    for (std::size_t i = 0; i < p_.axes.size(); ++i) {
      if (p_.axes[i].lo) q_.axes[i].lo = substitute(*p_.axes[i].lo, none);
      if (p_.axes[i].hi) q_.axes[i].hi = substitute(*p_.axes[i].hi, none);
    }
    for (std::size_t i = 0; i < p_.tensors.size(); ++i) {
      auto& contract = q_.tensors[i].contract;
      if (contract.lo) contract.lo = substitute(*p_.tensors[i].contract.lo, none);
      if (contract.hi) contract.hi = substitute(*p_.tensors[i].contract.hi, none);
    }
    for (std::size_t i = 0; i < p_.scalars.size(); ++i)
      if (p_.scalars[i].fallback) q_.scalars[i].fallback = substitute(*p_.scalars[i].fallback, none);
    for (std::size_t i = 0; i < p_.reducers.size(); ++i) {
      Reducer& r = q_.reducers[i];
      for (Lambda* lambda : {&r.identity, &r.lift, &r.merge, &r.finish}) rebuild(*lambda);
    }
    for (std::size_t i = 0; i < p_.streams.size(); ++i) rebuild(StreamId{static_cast<std::uint32_t>(i)}, none);
    for (const Store& s : p_.stores) {
      Store t = s;
      for (Index& index : t.index)
        for (ValueId& part : index) part = substitute(part, none);
      t.value = substitute(s.value, none);
      q_.stores.push_back(std::move(t));
    }
    // A name that nothing uses must not become that of a value that means the same after inlining: it is not printed.
    const std::vector<bool> used = used_values(p_);
    for (const auto& [name, value] : p_.names)
      if (used[value.index] && !depends_on_lambda(value)) q_.names.emplace_back(name, substitute(value, none));
    for (const auto& [condition, where] : p_.requires_) q_.requires_.emplace_back(substitute(condition, none), where);
    return std::move(q_);
  }

 private:
  // What follows this pass walks expressions by recursion: their depth is bounded here, for the stack of any thread.
  void refuse_deep() const {
    constexpr int deepest = 2000;
    std::vector<int> depth(p_.values.size(), 0);
    for (std::uint32_t i = 0; i < p_.values.size(); ++i) {
      for (ValueId operand : operands(p_.values[i].node)) depth[i] = std::max(depth[i], depth[operand.index] + 1);
      if (depth[i] > deepest)
        throw Error(ErrorCode::not_supported, p_.values[i].where, "a value depends on a chain of more than 2000 operations",
                    "split the program, or stream over the steps");
    }
  }

  // Lambda bodies are functions of Args; they are rebuilt with their lambda and never substituted into.
  bool depends_on_lambda(ValueId v) {
    if (lambda_.size() < p_.values.size()) {
      lambda_.assign(p_.values.size(), false);
      for (std::uint32_t i = 0; i < p_.values.size(); ++i) {
        bool inside = std::holds_alternative<Arg>(p_.values[i].node);
        for (ValueId operand : operands(p_.values[i].node)) inside = inside || lambda_[operand.index];
        lambda_[i] = inside;
      }
    }
    return lambda_[v.index];
  }

  void rebuild(Lambda& lambda) {
    for (ValueId& v : lambda.results) v = substitute(v, {});
    for (auto& [name, v] : lambda.lets) v = substitute(v, {});
  }

  void rebuild(StreamId id, const Environment& env) {
    const Stream& old = p_[id];
    std::vector<ValueId> init, next;
    for (const Carry& carry : old.carries) {
      init.push_back(substitute(carry.init, env));
      next.push_back(substitute(carry.next, env));
    }
    // q_.streams may have grown while substituting: look the stream up only now.
    const StreamId of = env.streams.count(id) ? env.streams.at(id) : id;
    Stream& target = q_.streams[of.index];
    for (std::size_t i = 0; i < init.size(); ++i) {
      Value in_body = p_[old.carries[i].in_body];
      std::get<Carried>(in_body.node).stream = of;
      in_body.axes = target.carries[i].axes;
      target.carries[i].in_body = intern(std::move(in_body));
      target.carries[i].init = init[i];
      target.carries[i].next = next[i];
    }
    if (target.merge) rebuild(*target.merge);
  }

  ValueId intern(Value value) {
    std::string key = key_of(value);
    auto [it, fresh] = interned_.try_emplace(key, ValueId{static_cast<std::uint32_t>(q_.values.size())});
    if (fresh) q_.values.push_back(std::move(value));
    return it->second;
  }

  static std::string key_of(const Value& value) {
    std::string key;
    auto put = [&key](std::uint64_t x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
    put(value.node.index());
    put(static_cast<std::uint64_t>(value.dtype));
    put(value.weak);
    for (ValueId operand : operands(value.node)) put(operand.index);
    std::visit(overloaded{[&](const Const& n) {
                            std::uint64_t bits;
                            static_assert(sizeof bits == sizeof n.f);
                            std::memcpy(&bits, &n.f, sizeof bits);
                            put(bits);
                            put(static_cast<std::uint64_t>(n.i));
                          },
                          [&](const Coord& n) { put(n.axis.index); }, [&](const Extent& n) { put(n.axis.index); },
                          [&](const ScalarRef& n) { put(n.scalar.index); },
                          [&](const Load& n) {
                            put(n.tensor.index);
                            put(n.otherwise.has_value());
                            for (const Index& index : n.index) put(index.size());
                          },
                          [&](const Elementwise& n) { put(static_cast<std::uint64_t>(n.op)); },
                          [&](const Reduce& n) {
                            put(n.reducer.index);
                            put(static_cast<std::uint64_t>(n.order) * 16 + static_cast<std::uint64_t>(n.relax));
                            for (AxisId axis : n.axes) put(axis.index);
                          },
                          [&](const Part& n) {
                            if (const auto* stream = std::get_if<StreamId>(&n.of)) put(stream->index);
                            put(n.slot);
                          },
                          [&](const Replace& n) {
                            for (const auto& bind : n.binds) put(bind.first.index);
                            put(n.otherwise.has_value());
                          },
                          [&](const Carried& n) {
                            put(n.stream.index);
                            put(n.slot);
                          },
                          [&](const Arg& n) { put(n.slot); }},
               value.node);
    return key;
  }

  AxisSet axes_of(const Node& node) const {
    AxisSet axes;
    for (ValueId operand : operands(node)) axes = set_union(axes, q_[operand].axes);
    if (const auto* coord = std::get_if<Coord>(&node)) axes = {coord->axis};
    if (const auto* reduce = std::get_if<Reduce>(&node)) {
      for (AxisId axis : reduce->axes) axes = set_union(axes, range_axes_of(axis));
      axes = set_minus(axes, reduce->axes);
    }
    return axes;
  }

  // Axes of a range in the new program (fresh axes have their range there; the others keep the old one until the end).
  AxisSet range_axes_of(AxisId axis) const {
    if (axis.index < p_.axes.size()) return range_axes(p_, axis);
    AxisSet axes;
    for (const auto& bound : {q_[axis].lo, q_[axis].hi})
      if (bound) axes = set_union(axes, q_[*bound].axes);
    return axes;
  }

  ValueId rebuilt(const Value& old, Node node) {
    Value value = old;
    value.axes = axes_of(node);
    value.node = std::move(node);
    return intern(std::move(value));
  }

  ValueId elementwise(ops::Op op, std::vector<ValueId> args, DType dtype, const Where& where) {
    Node node = Elementwise{op, std::move(args)};
    AxisSet done;
    for (ValueId operand : operands(node)) done = set_union(done, q_[operand].done);
    return intern({node, dtype, false, axes_of(node), done, where});
  }

  ValueId zero(DType dtype, const Where& where) { return intern({Const{}, dtype, false, {}, {}, where}); }

  ValueId substitute(ValueId v, const Environment& outer) {
    const Value& old = p_[v];
    // Only what the value depends on matters: this shares work between environments and ends recursion early.
    Environment env;
    env.streams = outer.streams;
    for (const auto& [axis, value] : outer.coordinates)
      if (contains(old.axes, axis)) env.coordinates.emplace(axis, value);
    env.guarded = outer.guarded && !env.coordinates.empty();
    auto& memo = memos_[env];
    if (auto it = memo.find(v); it != memo.end()) return it->second;
    ValueId result = substitute_node(old, env);
    memos_[env][v] = result;
    return result;
  }

  ValueId substitute_node(const Value& old, const Environment& env) {
    auto each = [&](const Environment& e) {
      std::vector<ValueId> mapped;
      for (ValueId operand : operands(old.node)) mapped.push_back(substitute(operand, e));
      return mapped;
    };
    return std::visit(overloaded{[&](const Coord& n) {
                                   auto it = env.coordinates.find(n.axis);
                                   if (it == env.coordinates.end()) return intern(old);
                                   return it->second;
                                 },
                                 [&](const Load& n) {
                                   Node node = map_operands(old.node, each(env));
                                   if (env.guarded && !n.otherwise) std::get<Load>(node).otherwise = zero(old.dtype, old.where);
                                   return rebuilt(old, std::move(node));
                                 },
                                 [&](const Reduce& n) { return substitute_reduce(old, n, env); },
                                 [&](const Replace& n) { return substitute_replace(old, n, env); },
                                 [&](const Part& n) {
                                   if (const auto* stream = std::get_if<StreamId>(&n.of))
                                     return substitute_stream_value(old, *stream, n.slot, env);
                                   return rebuilt(old, map_operands(old.node, each(env)));
                                 },
                                 [&](const Carried& n) { return substitute_stream_value(old, n.stream, n.slot, env); },
                                 [&](const auto&) { return rebuilt(old, map_operands(old.node, each(env))); }},
                      old.node);
  }

  // A bound axis is renamed when an index value mentions it, or when its range moves with the replaced coordinates.
  ValueId substitute_reduce(const Value& old, const Reduce& reduce, const Environment& env) {
    Environment inner = env;
    Reduce node = reduce;
    bool rename = false;
    for (AxisId axis : reduce.axes)
      for (const auto& [from, to] : env.coordinates)
        rename = rename || contains(q_[to].axes, axis) || contains(range_axes(p_, axis), from);
    for (AxisId& axis : node.axes) {
      const AxisId old_axis = axis;
      const auto& piece = p_[axis].piece;
      if (piece && env.streams.count(*piece))  // the pieces of a stream that runs again are those of its copy
        axis = q_[env.streams.at(*piece)].piece;
      else if (rename && piece)
        throw Error(ErrorCode::not_supported, old.where,
                    "a reduction over a piece of a stream is replaced along an axis that the piece goes with",
                    "reduce over the whole axis, outside the stream");
      else if (rename)
        axis = renamed(axis, env);
      if (axis != old_axis)
        inner.coordinates[old_axis] = intern({Coord{axis}, DType::i64_, false, {axis}, {}, p_[old_axis].where});
    }
    std::sort(node.axes.begin(), node.axes.end());
    for (ValueId& arg : node.args) arg = substitute(arg, inner);
    return rebuilt(old, node);
  }

  // A new axis with the range of `axis` at other coordinates.
  AxisId renamed(AxisId axis, const Environment& env) {
    Axis copy = p_[axis];
    copy.program = copy.in_dims = false;
    copy.derived = true;
    copy.lo = p_[axis].lo ? substitute(*p_[axis].lo, env) : integer(0, copy.where);
    copy.hi = p_[axis].hi ? substitute(*p_[axis].hi, env) : intern({Extent{axis}, DType::i64_, false, {}, {}, copy.where});
    q_.axes.push_back(copy);
    return AxisId{static_cast<std::uint32_t>(q_.axes.size() - 1)};
  }

  // The axis that a piece is taken from: a replaced coordinate may leave the piece.
  AxisId outside(AxisId axis) const {
    while (p_[axis].piece) axis = p_[*p_[axis].piece].axis;
    return axis;
  }

  ValueId integer(std::int64_t i, const Where& where) { return intern({Const{0, i}, DType::i64_, false, {}, {}, where}); }

  ValueId substitute_replace(const Value& old, const Replace& replace, const Environment& env) {
    Environment inner = env;
    for (const auto& [axis, index] : replace.binds) inner.coordinates[axis] = substitute(index, env);
    inner.guarded = env.guarded || replace.otherwise.has_value();
    ValueId inside = substitute(replace.of, inner);
    if (!replace.otherwise) {
      // Weakness is only a rule of typing: a replacement that took a type gives a value of that type.
      Value typed = q_[inside];
      typed.weak = typed.weak && old.weak;
      return intern(typed);
    }
    ValueId in_range = intern({Const{0, 1}, DType::bool_, false, {}, {}, old.where});
    bool first = true;
    auto also = [&](ValueId condition) {
      in_range = first ? condition : elementwise(ops::Op::logical_and, {in_range, condition}, DType::bool_, old.where);
      first = false;
    };
    for (const auto& [axis, index] : replace.binds) {
      const AxisId whole = outside(axis);
      ValueId at = as_i64(inner.coordinates[axis], old.where);
      ValueId lo = p_[whole].lo ? substitute(*p_[whole].lo, inner) : integer(0, old.where);
      ValueId hi =
          p_[whole].hi ? substitute(*p_[whole].hi, inner) : intern({Extent{whole}, DType::i64_, false, {}, {}, old.where});
      also(elementwise(ops::Op::le, {as_i64(lo, old.where), at}, DType::bool_, old.where));
      also(elementwise(ops::Op::lt, {at, as_i64(hi, old.where)}, DType::bool_, old.where));
    }
    // A choice is an operation, so narrow types take it through their compute type.
    const DType type = compute_type(old.dtype);
    ValueId otherwise = as_type(substitute(*replace.otherwise, env), type, old.where);
    return as_type(elementwise(ops::Op::where, {in_range, as_type(inside, type, old.where), otherwise}, type, old.where),
                   old.dtype, old.where);
  }

  ValueId as_type(ValueId v, DType dtype, const Where& where) {
    return q_[v].dtype == dtype ? v : elementwise(ops::Op::cast, {v}, dtype, where);
  }
  ValueId as_i64(ValueId v, const Where& where) { return as_type(v, DType::i64_, where); }

  // Array axes of a stream's value stay replaced (they become an index into its array); any other coordinate needs the stream to
  // run again there.
  ValueId substitute_stream_value(const Value& old, StreamId stream, std::uint32_t slot, const Environment& env) {
    AxisSet arrays = array_axes(p_, stream, slot);
    std::vector<std::pair<AxisId, ValueId>> binds;
    Environment context;
    context.streams = env.streams;
    for (const auto& [axis, value] : env.coordinates) {
      if (contains(arrays, axis))
        binds.emplace_back(axis, value);
      else
        context.coordinates.emplace(axis, value);
    }
    StreamId target = stream;
    if (auto it = env.streams.find(stream); it != env.streams.end()) {
      target = it->second;
    } else if (!context.coordinates.empty()) {
      if (std::holds_alternative<Carried>(old.node) || env.guarded)
        throw Error(ErrorCode::not_supported, old.where,
                    "the result of a stream is replaced along a program axis with `else`, or inside its own body",
                    "compute the stream's operands at the replaced coordinate instead");
      for (const auto& [from, to] : context.coordinates)
        for (AxisId axis : q_[to].axes)
          if (q_[axis].piece)
            throw Error(
                ErrorCode::not_supported, old.where,
                fmt::format("the stream over {} would run again for each step of another stream", p_[p_[stream].axis].name),
                "replace its result before that stream, or carry what the step needs");
      target = clone(stream, context);
    }
    Value base = old;
    if (auto* part = std::get_if<Part>(&base.node))
      part->of = target;
    else
      std::get<Carried>(base.node).stream = target;
    base.axes = q_.streams[target.index].carries[slot].axes;
    if (target == stream) base.axes = old.axes;
    ValueId value = intern(base);
    if (binds.empty()) return value;
    Value replaced = old;
    replaced.axes = q_[value].axes;
    for (const auto& [axis, index] : binds) replaced.axes = set_minus(replaced.axes, {axis});
    for (const auto& [axis, index] : binds) replaced.axes = set_union(replaced.axes, q_[index].axes);
    Replace node{value, binds, {}};
    if (env.guarded) node.otherwise = zero(old.dtype, old.where);
    replaced.node = node;
    return intern(replaced);
  }

  StreamId clone(StreamId stream, const Environment& context) {
    if (auto it = clones_.find({stream, context}); it != clones_.end()) return it->second;
    for (const Store& store : p_.stores)
      if (store.stream == stream)
        throw Error(ErrorCode::not_supported, store.where, "a stream that stores is replaced along a program axis",
                    "split the stream into one that stores and one whose result is replaced");
    StreamId id{static_cast<std::uint32_t>(q_.streams.size())};
    clones_[{stream, context}] = id;
    Stream copy = p_[stream];
    Axis outer = p_[copy.axis];
    outer.program = outer.in_dims = false;
    outer.derived = true;
    outer.lo = outer.lo ? substitute(*outer.lo, context) : integer(0, outer.where);
    outer.hi = outer.hi ? substitute(*outer.hi, context) : intern({Extent{copy.axis}, DType::i64_, false, {}, {}, outer.where});
    const AxisId axis{static_cast<std::uint32_t>(q_.axes.size())}, piece{axis.index + 1};
    q_.axes.push_back(outer);
    outer.piece = id;
    q_.axes.push_back(outer);
    AxisId old_piece = copy.piece;
    copy.piece = piece;
    copy.axis = axis;
    AxisSet moved;
    for (auto& [from, to] : context.coordinates) moved = set_union(moved, q_[to].axes);
    for (Carry& carry : copy.carries) {
      AxisSet kept = carry.axes;
      bool touched = false;
      for (auto& [from, to] : context.coordinates) {
        touched = touched || contains(kept, from);
        kept = set_minus(kept, {from});
      }
      carry.axes = touched ? set_union(kept, moved) : kept;
    }
    q_.streams.push_back(copy);
    Environment env = context;
    env.streams[stream] = id;
    env.coordinates[old_piece] = intern({Coord{piece}, DType::i64_, false, {piece}, {}, copy.where});
    rebuild(stream, env);
    return id;
  }

  const Program& p_;
  Program q_;
  std::map<std::string, ValueId> interned_;
  std::map<Environment, std::map<ValueId, ValueId>> memos_;
  std::map<std::pair<StreamId, Environment>, StreamId> clones_;
  std::vector<bool> lambda_;
};

}  // namespace

AxisSet array_axes(const Program& p, StreamId stream, std::uint32_t slot) {
  AxisSet arrays;
  for (AxisId axis : p[stream].carries[slot].axes)
    if (!p[axis].program && !p[axis].piece) arrays.push_back(axis);
  return arrays;
}

Program inline_replaces(const Program& program) {
  Program inlined = Inliner(program).run();
  verify(inlined, "inline_replaces");
  return inlined;
}

}  // namespace cosmati::ir
