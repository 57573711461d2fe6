// The laws that let a reduction or a stream be cut anywhere: identity, associativity and commutativity on random lifts, and equal
// results for every way of cutting. Values are compared within their error bounds, so rounding alone never fails.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "ir/describe.h"
#include "oracle/interpreter.h"
#include "oracle/oracle.h"
#include "oracle/tape.h"
#include "support/check.h"

namespace cosmati::oracle {

namespace {

constexpr int trials = 64;

using State = std::vector<Num>;

struct Merger {
  Tape tape;
  State operator()(const State& a, const State& b) {
    State both = a, out(tape.results());
    both.insert(both.end(), b.begin(), b.end());
    tape.run(both.data(), out.data());
    return out;
  }
};

bool same(const std::vector<DType>& types, const State& a, const State& b) {
  for (std::size_t k = 0; k < types.size(); ++k)
    if (!agree(types[k], a[k], b[k])) return false;
  return true;
}

// Scalars and extents that a lambda may read get small positive values.
Num stand_in(const ir::Program& p, ir::ValueId v) {
  return is_float(p[v].dtype) ? Num{1.5, 0, 0} : Num{0, is_bool(p[v].dtype) ? 1 : 3, 0};
}

// Small values with many ties among them.
Num random_value(DType t, std::mt19937_64& random, bool positive) {
  const auto pick = [&](std::int64_t lo, std::int64_t hi) { return std::uniform_int_distribution<std::int64_t>(lo, hi)(random); };
  if (is_bool(t)) return {0, pick(0, 1), 0};
  const bool natural = positive || !(is_float(t) || is_signed(t));
  if (!is_float(t)) return {0, pick(natural ? 0 : -9, 9), 0};
  const double v =
      pick(0, 2) == 0 ? static_cast<double>(pick(natural ? 1 : -4, 4)) : std::normal_distribution<double>(0, 2)(random);
  return {ops::round_to(t, natural ? std::fabs(v) : v), 0, 0};
}

void check_reducer(const ir::Program& p, std::uint32_t index, std::mt19937_64& random) {
  const ir::Reducer& r = p.reducers[index];
  bool any_order = false, used = false;
  std::vector<char> coordinate(r.arg_types.size(), false);
  for (const ir::Value& v : p.values) {
    const auto* reduce = std::get_if<ir::Reduce>(&v.node);
    if (!reduce || reduce->reducer.index != index) continue;
    used = true;
    any_order = any_order || reduce->order == ir::Order::tree;
    for (std::size_t k = 0; k < coordinate.size() && k < reduce->args.size(); ++k) {
      ir::ValueId a = reduce->args[k];
      while (const auto* e = std::get_if<ir::Elementwise>(&p[a].node)) {
        if (e->op != ops::Op::cast) break;
        a = e->args[0];
      }
      if (std::holds_alternative<ir::Coord>(p[a].node)) coordinate[k] = true;
    }
  }
  if (!used) any_order = true;
  const Tape::Outer outer = [&](ir::ValueId v) { return stand_in(p, v); };
  Tape lift(p, r.lift, true, outer), identity_tape(p, r.identity, true, outer), finish(p, r.finish, true, outer);
  Merger merge{Tape(p, r.merge, true, outer)};
  State identity(r.state_types.size());
  identity_tape.run(nullptr, identity.data());

  const auto text = [](DType t, const Num& v) { return is_float(t) ? fmt::format("{:.9g}", v.f) : fmt::format("{}", v.i); };
  for (int trial = 0; trial < trials; ++trial) {
    constexpr int lifts = 3;
    std::vector<State> s;
    std::string given;
    for (int k = 0; k < lifts; ++k) {
      State args;
      for (std::size_t a = 0; a < r.arg_types.size(); ++a) {
        args.push_back(coordinate[a] ? Num{static_cast<double>(k), k, 0} : random_value(r.arg_types[a], random, false));
        given += fmt::format("{}{}", given.empty() ? "" : ", ", text(r.arg_types[a], args.back()));
      }
      s.emplace_back(r.state_types.size());
      lift.run(args.data(), s.back().data());
    }
    const auto finished = [&](State state, int count) {
      state.push_back({static_cast<double>(count), 0, 0});
      State out(finish.results());
      finish.run(state.data(), out.data());
      return out;
    };
    const auto require = [&](const char* law, const State& a, const State& b, int count, const char* hint = "") {
      const State x = finished(a, count), y = finished(b, count);
      if (same(r.result_types, x, y)) return;
      std::string got;
      for (std::size_t k = 0; k < x.size(); ++k)
        if (!agree(r.result_types[k], x[k], y[k]) && got.empty())
          got = text(r.result_types[k], x[k]) + " and " + text(r.result_types[k], y[k]);
      throw Error(ErrorCode::reducer_law, r.where,
                  fmt::format("reducer {}: {}: {} differ, for the elements {}", r.name, law, got, given), hint);
    };
    require("merge(identity, a) is not a", merge(identity, s[0]), s[0], 1);
    require("merge(a, identity) is not a", merge(s[0], identity), s[0], 1);
    require("merge(a, merge(b, c)) is not merge(merge(a, b), c)", merge(s[0], merge(s[1], s[2])), merge(merge(s[0], s[1]), s[2]),
            lifts);
    require("merge(a, merge(identity, b)) is not merge(a, b)", merge(s[0], merge(identity, s[1])), merge(s[0], s[1]), 2);
    if (any_order)
      require("merge(b, a) is not merge(a, b)", merge(s[1], s[0]), merge(s[0], s[1]), 2,
              "reduce with `order: left`, which keeps the order of the elements");
  }
}

[[noreturn]] void cut_dependent(const ir::Program& p, const ir::Stream& stream, std::size_t carry) {
  throw Error(
      ErrorCode::cut_dependent, stream.where,
      fmt::format("carried {} depends on where the stream over {} is cut, or on its merge", stream.carries.at(carry).name,
                  p[stream.axis].name),
      stream.merge
          ? ""
          : fmt::format("let next take a piece of any size to what its elements one by one come to, as in {0} + sum(x, {1}) or "
                        "maximum({0}, max(x, {1}))",
                        stream.carries.at(carry).name, p[stream.axis].name));
}

// An initial value that is a literal (through casts), or nothing.
std::optional<Num> literal_init(const ir::Program& p, ir::ValueId v) {
  const DType t = p[v].dtype;
  while (const auto* e = std::get_if<ir::Elementwise>(&p[v].node)) {
    if (e->op != ops::Op::cast || is_float(p[e->args[0]].dtype) != is_float(t)) return std::nullopt;
    v = e->args[0];
  }
  if (!std::holds_alternative<ir::Const>(p[v].node)) return std::nullopt;
  return literal(p[v], true);
}

void check_merge(const ir::Program& p, const ir::Stream& stream, std::mt19937_64& random) {
  Merger merge{Tape(p, *stream.merge, true, [&](ir::ValueId v) { return stand_in(p, v); })};
  std::vector<DType> types;
  std::optional<State> init = State{};
  for (const ir::Carry& c : stream.carries) {
    types.push_back(c.dtype);
    const auto value = literal_init(p, c.init);
    if (!value)
      init.reset();
    else if (init)
      init->push_back(*value);
  }
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<State> s(3);
    for (State& state : s)
      for (const DType t : types) state.push_back(random_value(t, random, true));
    const auto require = [&](const State& a, const State& b) {
      for (std::size_t k = 0; k < types.size(); ++k)
        if (!agree(types[k], a[k], b[k])) cut_dependent(p, stream, k);
    };
    require(merge(s[0], merge(s[1], s[2])), merge(merge(s[0], s[1]), s[2]));
    if (!init) continue;
    require(merge(*init, s[0]), s[0]);
    require(merge(s[0], *init), s[0]);
  }
}

// The first element that differs, in the order of memory.
std::optional<std::size_t> difference(DType t, const Array& a, const Array& b) {
  if (a.shape != b.shape) return 0;
  for (std::size_t k = 0; k < a.values.size(); ++k)
    if (a.stored[k] != b.stored[k] ||
        !agree(t, {a.values[k].f, a.values[k].i, a.error[k]}, {b.values[k].f, b.values[k].i, b.error[k]}))
      return k;
  return std::nullopt;
}

// What a store in the body of a stream writes differs with the cuts, first at element `k`.
[[noreturn]] void cut_dependent(const ir::Program& p, const ir::Store& store, std::size_t k, const Array& whole,
                                const Array& cut) {
  const ir::Tensor& tensor = p[store.tensor];
  const std::string& axis = p[p[*store.stream].axis].name;
  std::vector<std::int64_t> at(whole.shape.size());
  std::size_t rest = k;
  for (std::size_t d = at.size(); d-- > 0; rest /= static_cast<std::size_t>(whole.shape[d]))
    at[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(whole.shape[d]));
  const auto text = [&](const Array& a) {
    return is_float(tensor.dtype) ? fmt::format("{:.6g}", a.values[k].f) : fmt::format("{}", a.values[k].i);
  };
  throw Error(
      ErrorCode::cut_dependent, store.where,
      fmt::format("what is stored to {} depends on where the stream over {} is cut: {} is {} in one piece and {} in several",
                  ir::describe(p, store.tensor, store.index), axis, element_text(tensor.name, at), text(whole), text(cut)),
      fmt::format("a reduction over {0} inside the stream sees one piece: carry what is needed of the others, or reduce "
                  "over {0} outside the stream",
                  axis));
}

}  // namespace

void check_laws(const ir::Program& program, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t r = 0; r < program.reducers.size(); ++r)
    if (!program.reducers[r].builtin) check_reducer(program, static_cast<std::uint32_t>(r), random);
  for (const ir::Stream& s : program.streams)
    if (s.merge) check_merge(program, s, random);
}

void check_cuts(const ir::Program& program, const Inputs& inputs, std::uint64_t seed) {
  const bool any =
      std::any_of(program.streams.begin(), program.streams.end(), [](const ir::Stream& s) { return s.tile || s.merge; });
  if (!any) return;
  const auto everywhere = [](std::int64_t lo, std::int64_t hi) {
    std::vector<std::int64_t> points;
    for (std::int64_t p = lo + 1; p < hi; ++p) points.push_back(p);
    return points;
  };
  std::mt19937_64 random(seed);
  const auto somewhere = [&](std::int64_t lo, std::int64_t hi) {
    std::vector<std::int64_t> points;
    for (std::int64_t p = lo + 1; p < hi; ++p)
      if (random() & 1) points.push_back(p);
    return points;
  };
  struct Way {
    Cuts cuts;
    bool merge;
  };
  const std::vector<Way> ways{{everywhere, false}, {somewhere, false}, {nullptr, true}, {everywhere, true}, {somewhere, true}};
  const auto run_with = [&](const Way& way, std::optional<ir::ValueId> probe) {
    Options options;
    options.cuts = way.cuts;
    options.merge_streams = way.merge;
    options.probe = probe;
    return run(program, inputs, options);
  };
  // First the final value of every carried value, so that the error names it.
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const auto* part = std::get_if<ir::Part>(&program.values[v].node);
    const auto* s = part ? std::get_if<ir::StreamId>(&part->of) : nullptr;
    if (!s || !(program[*s].tile || program[*s].merge)) continue;
    const ir::ValueId probe{static_cast<std::uint32_t>(v)};
    const Result whole = run_with({nullptr, false}, probe);
    for (const Way& way : ways)
      if (difference(program[probe].dtype, *whole.probe, *run_with(way, probe).probe))
        cut_dependent(program, program[*s], part->slot);
  }
  // Then what is stored, also from inside the bodies.
  const Result whole = run_with({nullptr, false}, std::nullopt);
  for (const Way& way : ways) {
    const Result cut = run_with(way, std::nullopt);
    std::size_t output = 0;
    for (const ir::Tensor& t : program.tensors) {
      if (t.access == ir::Access::in) continue;
      if (const auto k = difference(t.dtype, whole.outputs[output], cut.outputs[output])) {
        const auto stored = std::find_if(program.stores.begin(), program.stores.end(), [&](const ir::Store& s) {
          return s.stream && program[*s.stream].tile && program[s.tensor].name == t.name;
        });
        if (stored != program.stores.end()) cut_dependent(program, *stored, *k, whole.outputs[output], cut.outputs[output]);
        const auto first =
            std::find_if(program.streams.begin(), program.streams.end(), [](const ir::Stream& s) { return s.tile || s.merge; });
        cut_dependent(program, *first, 0);
      }
      ++output;
    }
  }
}

}  // namespace cosmati::oracle
