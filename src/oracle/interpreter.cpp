// Environments, memory of results, and the nodes whose operands live in the same environment. Those are scheduled on an explicit
// stack, and every few hundred nested environments continue on a fresh thread's stack, so depth of a program is no limit.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/interpreter.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::oracle {

Interpreter::Interpreter(const ir::Program& program, const Inputs& inputs, const Options& options)
    : program_(program),
      inputs_(inputs),
      options_(options),
      facts_(program),
      wide_(options.mode == Mode::wide),
      progress_(options.progress),
      long_nodes_(static_cast<int>(program.streams.size())) {
  for (const ir::Value& v : program.values) long_nodes_ += std::holds_alternative<ir::Reduce>(v.node) ? 1 : 0;
  outer_ = [this](ir::ValueId v) {
    const Ref value = eval(v);
    COSMATI_CHECK(value->dims.empty(), "a lambda reads a value that has axes");
    return value->at(0);
  };
  const std::size_t slots = program.axes.size() + program.streams.size();
  bindings_.resize(slots);
  entries_.resize(program.values.size() + program.streams.size());
  ranges_.resize(program.axes.size());
  streams_.resize(program.streams.size());
  frames_.resize(1);
  // Program axes are the slow dimensions, in `parallel` order.
  dim_of_axis_.assign(program.axes.size(), 0);
  next_dim_ = 0;
  for (const ir::AxisId a : program.program_axes) dim_of_axis_[a.index] = next_dim_++;
  for (std::size_t a = 0; a < program.axes.size(); ++a)
    if (!program.axes[a].program) dim_of_axis_[a] = next_dim_++;
}

// ---- environments ------------------------------------------------------------------------------------------------------

Interpreter::Scope::Scope(Interpreter& owner, bool frame) : owner_(owner), frame_(frame) {
  if (frame_) owner_.frames_.emplace_back();
}

Interpreter::Scope::~Scope() {
  while (!saved_.empty()) {
    owner_.bindings_[saved_.back().first] = std::move(saved_.back().second);
    saved_.pop_back();
  }
  if (!frame_) return;
  const int depth = static_cast<int>(owner_.frames_.size()) - 1;
  const auto mine = [&](const auto& e) { return e.depth == depth; };
  for (const std::uint32_t v : owner_.frames_.back().entries) std::erase_if(owner_.entries_[v], mine);
  for (const std::uint32_t a : owner_.frames_.back().ranges) std::erase_if(owner_.ranges_[a], mine);
  owner_.frames_.pop_back();
}

void Interpreter::Scope::bind(std::uint32_t slot, BindingRef b) {
  saved_.emplace_back(slot, std::exchange(owner_.bindings_[slot], std::move(b)));
}

void Interpreter::Scope::fixed(std::uint32_t axis, std::int64_t at) { span(axis, 0, at, at + 1); }

void Interpreter::Scope::span(std::uint32_t axis, std::uint32_t dim, std::int64_t lo, std::int64_t hi, bool uncertain) {
  COSMATI_CHECK(frame_, "bindings need a frame");
  bind(axis, owner_.range(dim, lo, hi, static_cast<int>(owner_.frames_.size()) - 1, uncertain));
}

BindingRef Interpreter::range(std::uint32_t dim, std::int64_t lo, std::int64_t hi, int depth, bool uncertain) {
  Binding b;
  const bool one = hi > lo && hi - 1 == lo;
  b.kind = one ? Binding::Kind::fixed : Binding::Kind::span;
  b.lo = lo;
  b.hi = std::max(lo, hi);
  b.dim = dim;
  b.coords = one ? scalar(DType::i64_, {0, lo, 0}) : iota(dim, lo, b.hi);
  b.depth = depth;
  b.id = next_id_++;
  b.uncertain = uncertain;
  return std::make_shared<const Binding>(std::move(b));
}

BindingRef Interpreter::binding(std::uint32_t slot) {
  if (bindings_[slot]) return bindings_[slot];
  COSMATI_CHECK(slot < facts_.axis_count, "a carried value is read outside its stream");
  return canonical(slot);
}

BindingRef Interpreter::canonical(std::uint32_t axis) {
  const ir::Axis& a = program_.axes[axis];
  if (a.piece) {
    COSMATI_CHECK(streams_[a.piece->index].piece, "axis {} is read outside its stream", a.name);
    return streams_[a.piece->index].piece;
  }
  const Slots& slots = facts_.range[axis];
  const std::uint64_t k = key(slots);
  for (const Range& r : ranges_[axis])
    if (r.key == k) return r.binding;
  bool uncertain = false;
  const auto bound = [&](ir::ValueId v) {
    const Ref value = eval(v);
    COSMATI_CHECK(value->dims.empty(), "the range of {} varies within one evaluation", a.name);
    uncertain = uncertain || value->uncertain();
    return value->i[0];
  };
  const std::int64_t lo = a.lo ? bound(*a.lo) : 0;
  const std::int64_t hi = a.hi ? bound(*a.hi) : lo + inputs_.extents.at(axis);
  const int at = depth(slots);
  BindingRef b = range(dim_of_axis_[axis], lo, std::max(lo, hi), at, uncertain);
  ranges_[axis].push_back({k, at, b});
  frames_[at].ranges.push_back(axis);
  return b;
}

std::uint64_t Interpreter::key(const Slots& slots) {
  std::uint64_t h = 0x9e3779b97f4a7c15;
  for (const std::uint32_t s : slots) {
    const std::uint64_t id = bindings_[s] ? bindings_[s]->id : binding(s)->id;
    h = (h ^ id) * 0xbf58476d1ce4e5b9;
    h ^= h >> 29;
  }
  return h;
}

int Interpreter::depth(const Slots& slots) {
  int d = 0;
  for (const std::uint32_t s : slots) d = std::max(d, binding(s)->depth);
  return d;
}

const Ref* Interpreter::find(std::uint32_t entry, const Slots& slots) {
  if (entries_[entry].empty()) return nullptr;
  const std::uint64_t k = key(slots);
  for (const Entry& e : entries_[entry])
    if (e.key == k) return &e.value;
  return nullptr;
}

void Interpreter::remember(std::uint32_t entry, const Slots& slots, Ref value) {
  const std::uint64_t k = key(slots);
  const int at = depth(slots);
  for (Entry& e : entries_[entry])
    if (e.key == k) {
      e.value = std::move(value);
      return;
    }
  entries_[entry].push_back({k, at, std::move(value)});
  frames_[at].entries.push_back(entry);
}

void Interpreter::span_ranges(Scope& scope, const std::vector<std::uint32_t>& axes, const Slots& values,
                              std::unique_ptr<Scope>& fresh) {
  std::vector<std::uint32_t> taken;
  for (const std::uint32_t s : values)
    if (s < facts_.axis_count && std::find(axes.begin(), axes.end(), s) == axes.end())
      for (const Dim& d : binding(s)->coords->dims) taken.push_back(d.id);
  for (const std::uint32_t a : axes) scope.bind(a, nullptr);
  for (const std::uint32_t a : axes) {
    const BindingRef b = canonical(a);
    if (b->kind != Binding::Kind::span || std::find(taken.begin(), taken.end(), b->dim) == taken.end()) {
      scope.bind(a, b);
      continue;
    }
    if (!fresh) fresh = std::make_unique<Scope>(*this, true);
    fresh->span(a, next_dim_++, b->lo, b->hi, b->uncertain);
  }
}

Dims Interpreter::dims_of(const ir::AxisSet& axes) {
  Dims out;
  for (const ir::AxisId a : axes) out = join(out, binding(a.index)->coords->dims);
  return out;
}

// ---- evaluation --------------------------------------------------------------------------------------------------------

Ref Interpreter::eval(ir::ValueId root) {
  if (const Ref* known = find(root.index, facts_.value[root.index])) return *known;
  std::vector<ir::ValueId> stack{root};
  Ref last;
  while (!stack.empty()) {
    const ir::ValueId v = stack.back();
    const ir::Node& node = program_[v].node;
    const std::size_t height = stack.size();
    if (height == 1 || !find(v.index, facts_.value[v.index])) {
      const auto need = [&](ir::ValueId o) {
        if (!find(o.index, facts_.value[o.index])) stack.push_back(o);
      };
      if (const auto* r = std::get_if<ir::Replace>(&node)) {
        for (const auto& bind : r->binds) need(bind.second);
        if (r->otherwise) need(*r->otherwise);
      } else if (!std::holds_alternative<ir::Reduce>(node)) {
        for (const ir::ValueId o : ir::operands(node)) need(o);
      }
      if (stack.size() > height) continue;
      last = compute(v);
      remember(v.index, facts_.value[v.index], last);
    }
    stack.pop_back();
  }
  return last;
}

// Continues on a fresh stack now and then; the nesting of environments follows the program text, which may be long.
template <class F>
Ref Interpreter::nested(F&& f) {
  constexpr int levels_per_stack = 256;
  struct Level {
    int& n;
    explicit Level(int& count) : n(++count) {}
    ~Level() { --n; }
  } level(nesting_);
  if (nesting_ % levels_per_stack != 0) return f();
  Ref out;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      out = f();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return out;
}

Ref Interpreter::compute(ir::ValueId v) {
  const ir::Value& value = program_[v];
  return std::visit(
      support::overloaded{[&](const ir::Const&) { return scalar(value.dtype, literal(value, wide_)); },
                          [&](const ir::Coord& n) { return binding(n.axis.index)->coords; },
                          [&](const ir::Extent& n) {
                            const auto& piece = program_[n.axis].piece;
                            const std::uint32_t axis = piece ? program_[*piece].axis.index : n.axis.index;
                            return scalar(value.dtype, {0, inputs_.extents.at(axis), 0});
                          },
                          [&](const ir::ScalarRef& n) {
                            const ops::Scalar s = inputs_.scalars.at(n.scalar.index);
                            return scalar(value.dtype, {s.f, s.i, 0});
                          },
                          [&](const ir::Load& n) { return load(n, value); },
                          [&](const ir::Elementwise& n) {
                            std::vector<Ref> args;
                            for (const ir::ValueId a : n.args) args.push_back(eval(a));
                            return elementwise(wide_, n.op, program_[n.args.back()].dtype, value.dtype, args);
                          },
                          [&](const ir::Reduce& n) { return nested([&] { return reduce(n, value); }); },
                          [&](const ir::Part& n) {
                            if (const auto* s = std::get_if<ir::StreamId>(&n.of))
                              return nested([&] { return part_of_stream(*s, n.slot); });
                            return eval(std::get<ir::ValueId>(n.of))->parts.at(n.slot);
                          },
                          [&](const ir::Replace& n) {
                            std::vector<Ref> at;
                            for (const auto& bind : n.binds) at.push_back(eval(bind.second));
                            return nested([&] { return replace(n, value, at); });
                          },
                          [&](const ir::Carried& n) { return carried(n); },
                          [&](const ir::Arg&) -> Ref { throw InternalError("a lambda's argument is read outside its lambda"); }},
      value.node);
}

Ref Interpreter::replace(const ir::Replace& n, const ir::Value& value, std::vector<Ref> at) {
  // Ranges must be the same for all that is evaluated at once: an axis that bounds a range takes its values one by one.
  for (std::size_t k = 0; k < at.size(); ++k) {
    const ir::AxisId axis = n.binds[k].first;
    if (!facts_.bounds_a_range[axis.index] || at[k]->dims.empty()) continue;
    std::vector<std::int64_t> points = at[k]->i;
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    const Ref index = at[k];
    Ref out;
    for (const std::int64_t point : points) {
      at[k] = scalar(index->dtype, {0, point, 0});
      const Ref one = replace(n, value, at);
      const Ref here = elementwise(wide_, ops::Op::eq, index->dtype, DType::bool_, {index, at[k]});
      out = out ? choose(here, one, out) : one;
    }
    if (out) return out;
    return make(value.dtype, index->dims, false);
  }
  const Ref otherwise = n.otherwise ? eval(*n.otherwise) : nullptr;
  Scope inner(*this, true);
  const int here = static_cast<int>(frames_.size()) - 1;
  Ref valid;
  for (const bool program_axes : {true, false})  // the other axes' ranges may depend on these
    for (std::size_t k = 0; k < at.size(); ++k) {
      const ir::AxisId axis = n.binds[k].first;
      if (program_[axis].program != program_axes) continue;
      const auto& piece = program_[axis].piece;  // a replaced coordinate may leave the piece
      const BindingRef range = canonical(piece ? program_[*piece].axis.index : axis.index);
      const auto& i = at[k]->i;
      const auto outside = [&](std::int64_t c) { return c < range->lo || c >= range->hi; };
      if (const auto bad = std::find_if(i.begin(), i.end(), outside); bad != i.end()) {
        if (!n.otherwise)
          throw Error(ErrorCode::out_of_bounds, value.where,
                      fmt::format("{} := {} leaves its range {} .. {}", program_[axis].name, *bad, range->lo, range->hi),
                      "write `else` behind the replacement");
        if (range->lo == range->hi) return otherwise;
        auto mask = make(DType::bool_, at[k]->dims, at[k]->uncertain());
        auto clamped = std::make_shared<Dense>(*at[k]);
        for (std::int64_t j = 0; j < at[k]->size(); ++j) {
          mask->i[j] = !outside(i[j]);
          clamped->i[j] = std::clamp(i[j], range->lo, range->hi - 1);
          if (mask->uncertain()) mask->err[j] = at[k]->err[j] > 0 ? 1 : 0;
        }
        const Ref sealed = seal(std::move(mask));
        valid = valid ? elementwise(wide_, ops::Op::logical_and, DType::bool_, DType::bool_, {valid, sealed}) : sealed;
        at[k] = clamped;
      }
      Binding b;
      b.kind = at[k]->dims.empty() ? Binding::Kind::fixed : Binding::Kind::array;
      b.coords = program_[n.binds[k].second].dtype == DType::i64_
                     ? at[k]
                     : elementwise(wide_, ops::Op::cast, program_[n.binds[k].second].dtype, DType::i64_, {at[k]});
      b.lo = at[k]->size() == 1 ? b.coords->i[0] : range->lo;
      b.hi = at[k]->size() == 1 ? b.lo + 1 : range->hi;
      b.depth = here;
      b.id = next_id_++;
      inner.bind(axis.index, std::make_shared<const Binding>(std::move(b)));
    }
  if (valid && std::none_of(valid->i.begin(), valid->i.end(), [](std::int64_t v) { return v != 0; }) && !valid->uncertain())
    return otherwise;
  const Ref of = eval(n.of);
  return valid ? choose(valid, of, otherwise) : of;
}

}  // namespace cosmati::oracle
