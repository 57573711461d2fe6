// Stores, streams and the end of a program.
// A stream's body runs until types and axes of what it carries no longer change; an attempt that changed them leaves no trace.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/describe.h"
#include "support/check.h"

namespace cosmati::ir {
namespace {

// Closes an open stream however its body ends.
class Open {
 public:
  Open(std::vector<StreamId>& streams, StreamId s) : streams_(streams) { streams_.push_back(s); }
  ~Open() { streams_.pop_back(); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  std::vector<StreamId>& streams_;
};

}  // namespace

void Builder::store(TensorId tensor, std::vector<Index> index, ValueId value, const Where& where) {
  const Tensor& t = program_[tensor];
  if (!in_region_)
    throw Error(ErrorCode::not_supported, where, fmt::format("{} is stored before parallel", t.name), "store inside the region");
  if (t.access == Access::in)
    throw Error(ErrorCode::not_supported, where, fmt::format("{} is an in parameter and cannot be stored", t.name),
                fmt::format("declare {} out or inout", t.name));
  index = checked_index(tensor, std::move(index), where);
  value = local(value, where);
  refuse_args(value, where);

  std::vector<ValueId> flat;
  for (const Index& dim : index) flat.insert(flat.end(), dim.begin(), dim.end());
  const Axes place = join_axes(flat, where);
  const Value stored = program_[value];
  const std::string target = describe(program_, tensor, index);
  for (AxisId a : stored.axes) {
    if (contains(place.axes, a)) continue;
    throw program_[a].program
        ? Error(ErrorCode::store_conflict, where, fmt::format("every instance of {} would store {}", program_[a].name, target),
                fmt::format("sum(..., {}), or index {} with {}", program_[a].name, t.name, program_[a].name))
        : Error(ErrorCode::extra_axis, where,
                fmt::format("value stored to {} has axis {}, which the index does not name", t.name, program_[a].name),
                "reduce over it or index with it", describe_entry(program_, value, a));
  }
  for (AxisId a : program_.program_axes) {
    const std::string& axis = program_[a].name;
    const bool reduced = contains(stored.done, a) || contains(place.done, a);
    if (reduced && contains(closure(place.axes), a))
      throw Error(
          ErrorCode::unfinished_reduction, where,
          fmt::format("{} exists only when every instance of {} has finished; it is stored here at {}, which still has {}",
                      contains(stored.done, a) ? describe_reduction(program_, value, a) : target, axis, target, axis),
          fmt::format("leave {} out of the index", axis));
    if (!reduced && !contains(place.axes, a))
      throw Error(ErrorCode::store_conflict, where, fmt::format("every instance of {} would store {}", axis, target),
                  fmt::format("sum(..., {}), or index {} with {}", axis, t.name, axis));
  }
  for (StreamId s : open_streams_) {
    const std::string& axis = program_[program_[s].axis].name;
    if (!contains(place.axes, program_[s].piece))
      throw Error(ErrorCode::store_conflict, where, fmt::format("every step of the stream over {} would store {}", axis, target),
                  fmt::format("index {} with {}, or carry the value and store the stream's result", t.name, axis));
  }
  const auto kept = kept_as(t.dtype, value, where);
  if (!kept) {
    const std::string from =
        stored.weak ? (is_float(stored.dtype) ? "a real number" : "an integer") : std::string(cosmati::name(stored.dtype));
    throw Error(ErrorCode::type_mismatch, where,
                fmt::format("value stored to {} is {}, but {} is {}; this change of kind needs a cast", t.name, from, t.name,
                            cosmati::name(t.dtype)),
                fmt::format("write {}({})", cosmati::name(t.dtype), describe(program_, value)));
  }
  program_.stores.push_back(
      {tensor, std::move(index), *kept, open_streams_.empty() ? std::nullopt : std::optional(open_streams_.back()), where});
}

// Whether the error may come from carried values whose types and axes are still those of their initial values, and then a guess
// that avoids it: an integer literal counts as a real number, and a carried value has the axis that its user misses.
bool Builder::guess_better(const Error& error, StreamId stream, std::vector<Type>& types, std::vector<Axes>& axes) const {
  bool better = false;
  if (error.code == ErrorCode::type_mismatch)
    for (Type& type : types)
      if (type.weak && !is_float(type.dtype)) {
        type = {DType::f64_, true};
        better = true;
      }
  if (error.code == ErrorCode::no_such_axis && missing_) {
    std::vector<ValueId> stack = missing_->in;
    std::set<ValueId> seen;
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      const auto* carried = std::get_if<Carried>(&program_[v].node);
      if (carried && carried->stream == stream && !contains(axes[carried->slot].axes, missing_->axis)) {
        axes[carried->slot].axes = set_union(axes[carried->slot].axes, {missing_->axis});
        better = true;
      }
      for (ValueId operand : operands(program_[v].node)) stack.push_back(operand);
    }
  }
  return better;
}

std::vector<ValueId> Builder::stream(AxisId axis, bool tile, std::vector<std::string> carry_names, std::vector<ValueId> init,
                                     const std::function<StreamResult(const std::vector<ValueId>& carried)>& body,
                                     const Where& where) {
  const std::string axis_name = program_[axis].name;
  const std::size_t n = init.size();
  COSMATI_CHECK(carry_names.size() == n, "{} names for {} carried values", carry_names.size(), n);
  if (!in_region_)
    throw Error(ErrorCode::not_supported, where, fmt::format("the stream over {} is outside the region", axis_name));
  if (program_[axis].program)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("{} is a program axis, whose instances have no order to stream in", axis_name),
                fmt::format("take {} out of parallel", axis_name));
  if (open_stream_over(axis) || program_[axis].piece)
    throw Error(ErrorCode::not_supported, where,
                fmt::format("the stream over {} is inside another stream over {}", axis_name, axis_name));
  for (ValueId& v : init) {
    v = local(v, where);
    refuse_args(v, where);
    if (contains(program_[v].axes, axis))
      throw Error(ErrorCode::extra_axis, where,
                  fmt::format("the initial value {} has the streamed axis {}", describe(program_, v), axis_name),
                  fmt::format("reduce over {} or replace it", axis_name));
  }

  const Saved before = save();
  std::vector<Type> types;
  std::vector<Axes> axes;
  for (ValueId v : init) {
    types.push_back({program_[v].dtype, program_[v].weak});
    axes.push_back({set_union(program_[v].axes, range_axes(program_, axis)), program_[v].done});
  }
  const std::size_t most_attempts = 8 + 2 * program_.axes.size();
  for (std::size_t attempt = 0; attempt < most_attempts; ++attempt) {
    if (attempt > 0) restore(before);
    const StreamId id{static_cast<std::uint32_t>(program_.streams.size())};
    const AxisId piece = this->axis(axis_name, where);
    Stream stream{axis, piece, tile, {}, std::nullopt, open_streams_.empty() ? std::nullopt : std::optional(open_streams_.back()),
                  where};
    for (std::size_t k = 0; k < n; ++k)
      stream.carries.push_back({carry_names[k], init[k], init[k], init[k], types[k].dtype, axes[k].axes});
    program_.streams.push_back(std::move(stream));
    const bool ranged = program_[axis].lo.has_value();
    const ValueId lo = ranged ? *program_[axis].lo : adapt(literal(std::int64_t{0}), {DType::i64_, false}, where);
    const ValueId hi = ranged ? *program_[axis].hi : adapt(extent(axis, where), {DType::i64_, false}, where);
    program_.axes[piece.index].lo = lo;
    program_.axes[piece.index].hi = hi;
    program_.axes[piece.index].piece = id;

    std::vector<ValueId> carried;
    for (std::uint32_t k = 0; k < n; ++k) {
      carried.push_back(intern(Carried{id, k}, types[k], axes[k], where));
      program_.streams[id.index].carries[k].in_body = carried[k];
    }
    StreamResult result;
    std::vector<ValueId> next;
    {
      const Open open(open_streams_, id);
      missing_.reset();
      try {
        result = body(carried);
      } catch (const Error& error) {
        // The initial values are a first guess. What the body needs of a carried value is the next one; it is held to it at the
        // end.
        if (!guess_better(error, id, types, axes)) throw;
        continue;
      }
      for (ValueId v : result.next) {
        next.push_back(local(v, where));
        refuse_args(next.back(), where);
      }
    }
    if (next.size() != n)
      throw Error(ErrorCode::type_mismatch, where,
                  fmt::format("the stream over {} carries {} values, and next gives {}", axis_name, n, next.size()));

    bool stable = true;
    for (std::size_t k = 0; k < n; ++k) {
      const Value& v = program_[next[k]];
      const std::string what = fmt::format("carried {}", carry_names[k]);
      if (tile && contains(v.axes, piece))
        throw Error(
            ErrorCode::cut_dependent, where,
            fmt::format("{} depends on where the stream over {} is cut: its next still has axis {}", what, axis_name, axis_name),
            "reduce over it or index with it", describe_entry(program_, next[k], piece));
      const Axes seen{set_union(axes[k].axes, set_minus(v.axes, {piece})), set_union(axes[k].done, v.done)};
      Type type = types[k];
      if (!v.weak)
        type = {v.dtype, false};
      else if (type.weak && is_float(v.dtype))
        type.dtype = v.dtype;
      stable = stable && seen.axes == axes[k].axes && seen.done == axes[k].done && type.dtype == types[k].dtype &&
               type.weak == types[k].weak;
      axes[k] = seen;
      types[k] = type;
    }
    if (!stable) continue;
    if (std::any_of(types.begin(), types.end(), [](const Type& t) { return t.weak; })) {
      for (Type& t : types)
        if (t.weak) t = {is_float(t.dtype) ? DType::f32_ : DType::i64_, false};
      continue;
    }

    for (std::uint32_t k = 0; k < n; ++k)
      for (AxisId a : set_minus(axes[k].axes, set_union(program_[next[k]].axes, range_axes(program_, axis))))
        if (!contains(program_[init[k]].axes, a))
          throw Error(ErrorCode::no_such_axis, where,
                      fmt::format("carried {} is used over {}, but its next has no axis {}", carry_names[k], program_[a].name,
                                  program_[a].name));

    std::vector<ValueId> results;
    for (std::uint32_t k = 0; k < n; ++k) {
      const auto start = kept_as(types[k].dtype, init[k], where);
      const auto step = kept_as(types[k].dtype, next[k], where);
      if (!start || !step) {
        const Value& v = program_[start ? next[k] : init[k]];
        throw Error(ErrorCode::type_mismatch, where,
                    fmt::format("carried {} is {}, but {} is {}", carry_names[k], cosmati::name(types[k].dtype),
                                start ? "its next" : "its initial value", v.weak ? "a real number" : cosmati::name(v.dtype)),
                    fmt::format("cast it to {}", cosmati::name(types[k].dtype)));
      }
      Carry& carry = program_.streams[id.index].carries[k];
      carry.init = *start;
      carry.next = *step;
    }
    if (result.merge) {
      Lambda merge = lambda([&] { return result.merge->results; }, n, "merge of the stream over " + axis_name, where);
      merge.lets = result.merge->lets;
      for (std::size_t k = 0; k < n; ++k) {
        const auto kept = kept_as(types[k].dtype, merge.results[k], where);
        if (!kept)
          throw Error(ErrorCode::type_mismatch, where,
                      fmt::format("carried {} is {}, but its merge is {}", carry_names[k], cosmati::name(types[k].dtype),
                                  cosmati::name(program_[merge.results[k]].dtype)));
        merge.results[k] = *kept;
      }
      program_.streams[id.index].merge = std::move(merge);
    }
    for (std::uint32_t k = 0; k < n; ++k) results.push_back(intern(Part{id, k}, types[k], axes[k], where));
    return results;
  }
  throw Error(ErrorCode::type_mismatch, where,
              fmt::format("the types of what the stream over {} carries never settle", axis_name), "cast the next values");
}

// Every axis gets its extent from a dimension, from division by known factors of one, or from a range over known extents.
void Builder::require_extents(const Where& where) const {
  const std::size_t count = program_.axes.size();
  std::vector<bool> known(count, false);
  std::vector<std::vector<AxisId>> needs(count);
  for (std::size_t a = 0; a < count; ++a) {
    const Axis& axis = program_.axes[a];
    if (axis.piece || (axis.lo && (!facts(*axis.lo).pure || !facts(*axis.hi).pure))) {
      known[a] = true;
      continue;
    }
    if (!axis.lo) continue;
    std::vector<ValueId> work{*axis.lo, *axis.hi};
    std::unordered_set<ValueId> seen;
    while (!work.empty()) {
      const ValueId v = work.back();
      work.pop_back();
      if (!seen.insert(v).second) continue;
      if (const auto* e = std::get_if<Extent>(&program_[v].node)) needs[a].push_back(e->axis);
      for (ValueId operand : operands(program_[v].node)) work.push_back(operand);
    }
  }
  for (const Tensor& t : program_.tensors)
    for (const Dim& dim : t.dims)
      if (dim.size() == 1 && dim[0].axis) known[dim[0].axis.index] = true;
  for (bool changed = true; changed;) {
    changed = false;
    auto learn = [&](std::size_t a) {
      known[a] = true;
      changed = true;
    };
    for (std::size_t a = 0; a < count; ++a)
      if (!known[a] && program_.axes[a].lo &&
          std::all_of(needs[a].begin(), needs[a].end(), [&](AxisId b) { return known[b.index]; }))
        learn(a);
    for (const Tensor& t : program_.tensors)
      for (const Dim& dim : t.dims) {
        std::vector<AxisId> unknown;
        for (const Factor& f : dim)
          if (f.axis && !known[f.axis.index]) unknown.push_back(f.axis);
        if (unknown.size() == 1) learn(unknown[0].index);
      }
  }
  for (std::size_t a = 0; a < count; ++a) {
    if (known[a]) continue;
    const Axis& axis = program_.axes[a];
    const Where& at = axis.where.line > 0 ? axis.where : where;
    if (axis.lo) throw Error(ErrorCode::unknown_name, at, fmt::format("the extent of axis {} depends on itself", axis.name));
    throw Error(ErrorCode::unknown_name, at,
                axis.in_dims ? fmt::format("nothing tells the extent of axis {} from the others of its dimension", axis.name)
                             : fmt::format("nothing binds the extent of axis {}", axis.name),
                fmt::format("write axis {} = ..., or make it a dimension of a parameter", axis.name));
  }
  for (const Value& v : program_.values)
    if (const auto* e = std::get_if<Extent>(&v.node))
      if (program_[e->axis].lo && (!facts(*program_[e->axis].lo).pure || !facts(*program_[e->axis].hi).pure))
        throw Error(ErrorCode::not_supported, v.where,
                    fmt::format("extent({}) is not known at launch: its range depends on instances", program_[e->axis].name),
                    "use the expressions of its range");
}

Program Builder::finish(const Where& where) {
  if (!in_region_)
    throw Error(ErrorCode::syntax, where, fmt::format("program {} has no region", program_.name), "write parallel axes { ... }");
  require_extents(where);
  for (std::size_t k = 0; k < program_.tensors.size(); ++k) {
    const Tensor& t = program_.tensors[k];
    const bool stored =
        std::any_of(program_.stores.begin(), program_.stores.end(), [&](const Store& s) { return s.tensor.index == k; });
    if (t.access == Access::out && !stored)
      throw Error(ErrorCode::partial_out, t.where.line > 0 ? t.where : where, fmt::format("out {} is never stored", t.name),
                  fmt::format("store it, or declare {} inout to keep what is there", t.name));
  }
  program_.arg_names.clear();
  verify(program_, "build");
  return std::move(program_);
}

}  // namespace cosmati::ir
