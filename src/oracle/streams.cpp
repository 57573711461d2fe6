// Streams: the body once per index or per piece, with the carried values as arrays between; or, where asked, every piece from the
// initial state and the states merged.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "oracle/interpreter.h"
#include "support/check.h"

namespace cosmati::oracle {

Ref Interpreter::moved(const Ref& value, const Bound& from) {
  std::vector<Gather> by;
  for (const auto& [axis, was] : from) {
    const BindingRef now = binding(axis);
    if (now->id == was->id || was->kind == Binding::Kind::array) continue;
    const bool varies = was->kind == Binding::Kind::span &&
                        std::any_of(value->dims.begin(), value->dims.end(), [&](const Dim& d) { return d.id == was->dim; });
    auto index = std::make_shared<Dense>(*now->coords);
    for (std::int64_t& i : index->i) {
      COSMATI_CHECK(i >= was->lo && i < was->hi, "a carried value is read at {} outside {} .. {}", i, was->lo, was->hi);
      i -= was->lo;
    }
    if (varies && !(was->lo == now->lo && was->hi == now->hi && now->kind == Binding::Kind::span && was->dim == now->dim))
      by.push_back({was->dim, index});
  }
  return gather(value, by);
}

Ref Interpreter::carried(const ir::Carried& n) {
  const StreamState& state = streams_[n.stream.index];
  COSMATI_CHECK(n.slot < state.carries.size(), "a carried value is read outside its stream");
  return moved(state.carries[n.slot], state.axes);
}

Ref Interpreter::part_of_stream(ir::StreamId s, std::uint32_t slot) {
  Bound bound;
  const Ref tuple = stream_tuple(s, false, bound);
  return moved(tuple->parts.at(slot), bound);
}

void Interpreter::run_stream(ir::StreamId s) {
  Bound bound;
  stream_tuple(s, true, bound);
}

Ref Interpreter::stream_tuple(ir::StreamId s, bool with_effects, Bound& bound) {
  const ir::Stream& stream = program_[s];
  const auto entry = static_cast<std::uint32_t>(program_.values.size() + s.index);
  const Slots& slots = facts_.stream[s.index];
  std::vector<std::uint32_t> carried_axes, spanned;
  for (const ir::Carry& c : stream.carries)
    for (const ir::AxisId a : c.axes)
      if (std::find(carried_axes.begin(), carried_axes.end(), a.index) == carried_axes.end()) carried_axes.push_back(a.index);
  for (const std::uint32_t a : carried_axes) {
    const ir::Axis& axis = program_.axes[a];
    if (axis.program ? ir::contains(facts_.rebound[s.index], ir::AxisId{a}) : !axis.piece) spanned.push_back(a);
  }
  Scope scope(*this, false);
  std::unique_ptr<Scope> fresh;
  span_ranges(scope, spanned, slots, fresh);
  for (const std::uint32_t a : carried_axes) bound[a] = binding(a);
  if (!with_effects)
    if (const Ref* known = find(entry, slots)) return *known;

  std::vector<Ref> state;
  for (const ir::Carry& c : stream.carries) state.push_back(eval(c.init));
  const BindingRef range = canonical(stream.axis.index);
  std::vector<std::int64_t> points{range->lo};
  if (options_.cuts && range->lo < range->hi)
    for (const std::int64_t cut : options_.cuts(range->lo, range->hi))
      if (cut > points.back() && cut < range->hi) points.push_back(cut);
  if (range->lo < range->hi) points.push_back(range->hi);
  if (options_.merge_streams && stream.merge && !facts_.stores[s.index]) {
    const std::vector<Ref> init = state;
    for (std::size_t k = 0; k + 1 < points.size(); ++k)
      state = merge_states(stream, state, stream_pieces(s, {points[k], points[k + 1]}, init, bound, with_effects));
  } else {
    const std::vector<Ref> init = state;
    state = stream_pieces(s, points, init, bound, with_effects);
    if (wide_ && stream.tile && !options_.cuts) state = with_any_cuts(s, std::move(state), init, bound, range->lo, range->hi);
  }
  if (range->uncertain)
    for (Ref& r : state) r = unjudged(r);
  auto tuple = std::make_shared<Dense>();
  tuple->parts = std::move(state);
  remember(entry, slots, tuple);
  return tuple;
}

// The bounds of one piece, and what more cuts than that may add: a device cuts where it likes, up to a piece for each element,
// and a carried value rounds once a piece. Beyond `most` pieces the errors are counted in proportion.
std::vector<Ref> Interpreter::with_any_cuts(ir::StreamId s, std::vector<Ref> whole, const std::vector<Ref>& init,
                                            const Bound& bound, std::int64_t lo, std::int64_t hi) {
  constexpr std::int64_t most = 256;
  const std::int64_t length = hi - lo, count = std::min(length, most);
  if (count < 2) return whole;
  std::vector<std::int64_t> points;
  for (std::int64_t k = 0; k < count; ++k) points.push_back(lo + length / count * k + std::min(k, length % count));
  points.push_back(hi);
  const std::vector<Ref> fine = stream_pieces(s, points, init, bound, false);
  const double more = static_cast<double>(length) / static_cast<double>(count);
  for (std::size_t k = 0; k < whole.size(); ++k) whole[k] = with_errors_of(whole[k], fine[k], more);
  return whole;
}

std::vector<Ref> Interpreter::stream_pieces(ir::StreamId s, const std::vector<std::int64_t>& points, const std::vector<Ref>& init,
                                            const Bound& bound, bool with_effects) {
  const ir::Stream& stream = program_[s];
  LongNode progress(*this);
  std::vector<Ref> state = init;
  StreamState& mine = streams_[s.index];
  StreamState outer = mine;
  const auto step = [&](std::int64_t lo, std::int64_t hi) {
    Scope body(*this, true);
    body.span(stream.piece.index, dim_of_axis_[stream.piece.index], lo, hi);
    Binding b;
    b.kind = Binding::Kind::stream;
    b.depth = static_cast<int>(frames_.size()) - 1;
    b.id = next_id_++;
    body.bind(facts_.slot(s), std::make_shared<const Binding>(std::move(b)));
    mine = {state, bound, bindings_[stream.piece.index]};
    std::vector<Ref> next;
    for (const ir::Carry& c : stream.carries) next.push_back(eval(c.next));
    if (with_effects && effects) effects(s);
    state = std::move(next);
  };
  const auto restore = [&] { mine = std::move(outer); };
  try {
    for (std::size_t k = 0; k + 1 < points.size(); ++k) {
      const std::int64_t first = points[k], last = points[k + 1], length = stream.tile ? last - first : 1;
      for (std::int64_t t = first; t < last; t += length) {
        const auto turn = progress.turn(t - points.front(), points.back() - points.front());
        step(t, t + length);
      }
    }
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return state;
}

std::vector<Ref> Interpreter::merge_states(const ir::Stream& stream, const std::vector<Ref>& a, const std::vector<Ref>& b) {
  std::vector<Ref> args = a, merged;
  args.insert(args.end(), b.begin(), b.end());
  for (std::size_t k = 0; k < stream.carries.size(); ++k) {
    Tape tape(program_, {{stream.merge->results.at(k)}, {}}, wide_, outer_);
    Dims dims;
    for (const auto& [r, slot] : tape.inputs()) dims = join(dims, args[slot]->dims);
    auto out = make(stream.carries[k].dtype, dims, wide_);
    Nest nest(dims);
    nest.operand(dims);
    for (const auto& [r, slot] : tape.inputs()) nest.operand(args[slot]->dims);
    nest.collapse();
    std::vector<Num> in(args.size());
    nest.runs([&](const std::int64_t* at, std::int64_t run) {
      for (std::int64_t i = 0; i < run; ++i) {
        for (std::size_t j = 0; j < tape.inputs().size(); ++j) {
          const std::uint32_t slot = tape.inputs()[j].second;
          in[slot] = args[slot]->at(at[j + 1] + i * nest.stride(j + 1));
        }
        Num result;
        tape.run(in.data(), &result);
        out->set(at[0] + i, result);
      }
    });
    merged.push_back(seal(std::move(out)));
  }
  return merged;
}

}  // namespace cosmati::oracle
