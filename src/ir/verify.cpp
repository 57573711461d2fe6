// The invariants of a finished program. Values reachable from an effect obey all of them; the arena may hold values that nothing
// reads.
//  V1  Every id names an entry, and a value's operands come before it in the arena.
//  V2  Axis sets are sorted and unique, and no value has an axis that it has reduced away.
//  V3  The axes of a value are those its node implies: an access and an operation have the union of their operands', a reduction
//      loses its axes and gains what their ranges depend on, a replacement has the axes of its places instead.
//  V4  The arguments of an operation have one compute type (the condition of where is bool); comparisons and tests give bool.
//  V5  Index expressions and replaced places are i64, one per dimension or one per factor; an `else` has the type of its value;
//      out parameters are not loaded.
//  V6  A reduction's arguments have the types its reducer was made for; lambdas have one result a state, of the state's type, and
//      consist of constants, extents, scalars, parameters and operations.
//  V7  A part names a result of its reduction or stream.
//  V8  A store's value has the tensor's type, its axes are in the index, and each program axis is in the index or reduced away,
//      never both; inside streams the index has every piece.
//  V9  A range is of i64, not weak, and depends on program axes only (that of a derived axis on any); contracts, defaults and
//  requires depend on no axis. V10 A stream's carried values have the type and axes it states, without the piece; a tile stream's
//  next has no piece. V11 Carried values, pieces and parameters of lambdas do not escape: effects outside a stream or lambda
//  never reach them. V12 No weak value is stored, reduced, carried or used as a bound. V13 The parameter list holds every tensor
//  and scalar once; program axes are marked; outs are stored.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "ir/describe.h"
#include "ir/program.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::ir {
namespace {

class Verifier {
 public:
  Verifier(const Program& p, const char* pass) : p_(p), pass_(pass) {}

  void run() {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) value(ValueId{k});
    for (std::uint32_t k = 0; k < p_.reducers.size(); ++k) reducer(p_.reducers[k]);
    for (std::uint32_t k = 0; k < p_.axes.size(); ++k) axis(AxisId{k});
    for (std::uint32_t k = 0; k < p_.streams.size(); ++k) stream(StreamId{k});
    for (const Store& s : p_.stores) store(s);
    parameters();
  }

 private:
  void need(bool holds, const char* invariant, const std::string& what) const {
    if (!holds) throw InternalError(fmt::format("program {} breaks {} after {}: {}", p_.name, invariant, pass_, what));
  }
  std::string at(ValueId v) const { return fmt::format("value {} ({})", v.index, describe_expression(p_, v)); }
  static bool proper(const AxisSet& set) {
    return std::is_sorted(set.begin(), set.end()) && std::adjacent_find(set.begin(), set.end()) == set.end();
  }
  const Value& known(ValueId v) const {
    need(v.index < p_.values.size(), "V1", fmt::format("value {} does not exist", v.index));
    return p_[v];
  }
  void known(AxisId a) const { need(a.index < p_.axes.size(), "V1", fmt::format("axis {} does not exist", a.index)); }

  void value(ValueId v) const {
    const Value& value = p_[v];
    for (ValueId operand : operands(value.node))
      need(operand.index < v.index, "V1", fmt::format("value {} reads value {}", v.index, operand.index));
    need(proper(value.axes) && proper(value.done), "V2", at(v));
    for (AxisId a : value.axes) {
      known(a);
      need(!contains(value.done, a), "V2", at(v));
    }
    std::visit(support::overloaded{
                   [&](const Const&) { need(value.axes.empty(), "V3", at(v)); },
                   [&](const Coord& n) { need(value.axes == AxisSet{n.axis} && value.dtype == DType::i64_, "V3", at(v)); },
                   [&](const Extent& n) {
                     known(n.axis);
                     need(value.axes.empty() && value.dtype == DType::i64_, "V3", at(v));
                   },
                   [&](const ScalarRef& n) {
                     need(n.scalar.index < p_.scalars.size(), "V1", at(v));
                     need(value.dtype == p_[n.scalar].dtype, "V4", at(v));
                   },
                   [&](const Load& n) { load(v, n); },
                   [&](const Elementwise& n) { operation(v, n); },
                   [&](const Reduce& n) { reduce(v, n); },
                   [&](const Part& n) { part(v, n); },
                   [&](const Replace& n) { replace(v, n); },
                   [&](const Carried& n) {
                     need(n.stream.index < p_.streams.size() && n.slot < p_[n.stream].carries.size(), "V7", at(v));
                   },
                   [&](const Arg&) { need(value.axes.empty(), "V3", at(v)); },
               },
               value.node);
  }

  AxisSet joined(const std::vector<ValueId>& args) const {
    AxisSet out;
    for (ValueId v : args) out = set_union(out, p_[v].axes);
    return out;
  }

  void index(TensorId tensor, const std::vector<Index>& index, const std::string& what) const {
    need(tensor.index < p_.tensors.size(), "V1", what);
    const std::vector<Dim>& dims = p_[tensor].dims;
    need(index.size() == dims.size(), "V5", what);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      need(index[d].size() == 1 || index[d].size() == dims[d].size(), "V5", what);
      for (ValueId i : index[d]) need(known(i).dtype == DType::i64_ && !p_[i].weak, "V5", what);
    }
  }

  void load(ValueId v, const Load& n) const {
    index(n.tensor, n.index, at(v));
    need(p_[n.tensor].access != Access::out, "V5", at(v));
    need(p_[v].dtype == p_[n.tensor].dtype, "V5", at(v));
    if (n.otherwise) need(p_[*n.otherwise].dtype == p_[v].dtype && !p_[*n.otherwise].weak, "V5", at(v));
    need(p_[v].axes == joined(operands(n)), "V3", at(v));
  }

  void operation(ValueId v, const Elementwise& n) const {
    const ops::OpInfo& row = ops::info(n.op);
    need(static_cast<int>(n.args.size()) == row.arity, "V4", at(v));
    need(p_[v].axes == joined(n.args), "V3", at(v));
    if (n.op == ops::Op::cast || n.op == ops::Op::bits) return;
    const std::size_t first = row.typing == ops::Typing::select ? 1 : 0;
    if (first == 1) need(is_bool(p_[n.args[0]].dtype), "V4", at(v));
    const DType type = p_[n.args[first]].dtype;
    need(type == compute_type(type), "V4", at(v));
    for (std::size_t k = first; k < n.args.size(); ++k) need(p_[n.args[k]].dtype == type, "V4", at(v));
    need(is_float(type) ? row.on_floats : row.on_integers, "V4", at(v));
    const bool test =
        row.typing == ops::Typing::comparison || row.typing == ops::Typing::test || row.typing == ops::Typing::logical;
    need(p_[v].dtype == (test ? DType::bool_ : type), "V4", at(v));
  }

  void reduce(ValueId v, const Reduce& n) const {
    need(n.reducer.index < p_.reducers.size(), "V1", at(v));
    const Reducer& r = p_[n.reducer];
    need(n.args.size() == r.arg_types.size() && !n.axes.empty() && proper(n.axes), "V6", at(v));
    for (std::size_t k = 0; k < n.args.size(); ++k) {
      need(p_[n.args[k]].dtype == r.arg_types[k], "V6", at(v));
      need(!p_[n.args[k]].weak, "V12", at(v));
    }
    need(p_[v].dtype == r.result_types[0], "V6", at(v));
    AxisSet axes = set_minus(joined(n.args), n.axes);
    for (AxisId a : n.axes) axes = set_union(axes, set_minus(range_axes(p_, a), n.axes));
    need(p_[v].axes == axes, "V3", at(v));
    for (AxisId a : n.axes) need(!p_[a].program || contains(p_[v].done, a), "V3", at(v));
  }

  void part(ValueId v, const Part& n) const {
    if (const auto* of = std::get_if<ValueId>(&n.of)) {
      const auto* reduce = std::get_if<Reduce>(&p_[*of].node);
      need(reduce && n.slot < p_[reduce->reducer].result_types.size(), "V7", at(v));
      need(p_[v].dtype == p_[reduce->reducer].result_types[n.slot] && p_[v].axes == p_[*of].axes, "V7", at(v));
      return;
    }
    const StreamId s = std::get<StreamId>(n.of);
    need(s.index < p_.streams.size() && n.slot < p_[s].carries.size(), "V7", at(v));
    need(p_[v].dtype == p_[s].carries[n.slot].dtype && p_[v].axes == p_[s].carries[n.slot].axes, "V7", at(v));
  }

  void replace(ValueId v, const Replace& n) const {
    AxisSet replaced, axes;
    for (const auto& [axis, to] : n.binds) {
      need(contains(p_[n.of].axes, axis), "V5", at(v));
      need(p_[to].dtype == DType::i64_ && !p_[to].weak, "V5", at(v));
      replaced = set_union(replaced, {axis});
      axes = set_union(axes, p_[to].axes);
    }
    need(!n.binds.empty() && replaced.size() == n.binds.size() && std::is_sorted(n.binds.begin(), n.binds.end()), "V5", at(v));
    axes = set_union(axes, set_minus(p_[n.of].axes, replaced));
    if (n.otherwise) {
      need(p_[*n.otherwise].dtype == p_[v].dtype, "V5", at(v));
      axes = set_union(axes, p_[*n.otherwise].axes);
    }
    need(p_[v].dtype == p_[n.of].dtype, "V5", at(v));
    AxisSet ranges;
    for (AxisId a : replaced) ranges = set_union(ranges, range_axes(p_, a));
    need(set_minus(axes, p_[v].axes).empty() && set_minus(p_[v].axes, set_union(axes, ranges)).empty(), "V3", at(v));
  }

  void reducer(const Reducer& r) const {
    const std::size_t n = r.state_types.size();
    auto part = [&](const Lambda& f, const std::vector<DType>& types, const char* which) {
      const std::string what = fmt::format("{} of reducer {}", which, r.name);
      need(f.results.size() == types.size(), "V6", what);
      for (std::size_t k = 0; k < types.size(); ++k)
        need(known(f.results[k]).dtype == types[k] && !p_[f.results[k]].weak, "V6", what);
      lambda(f, what);
    };
    need(n > 0 && !r.result_types.empty(), "V6", r.name);
    part(r.identity, r.state_types, "identity");
    part(r.lift, r.state_types, "lift");
    part(r.merge, r.state_types, "merge");
    part(r.finish, r.result_types, "finish");
  }

  void lambda(const Lambda& f, const std::string& what) const {
    walk(f.results, [&](ValueId v) {
      const Node& n = p_[v].node;
      need(std::holds_alternative<Const>(n) || std::holds_alternative<Extent>(n) || std::holds_alternative<ScalarRef>(n) ||
               std::holds_alternative<Arg>(n) || std::holds_alternative<Elementwise>(n),
           "V6", what + ": " + at(v));
    });
  }

  // Every value that `from` reads, itself included.
  template <class Visit>
  void walk(std::vector<ValueId> from, Visit visit) const {
    std::unordered_set<ValueId> seen;
    while (!from.empty()) {
      const ValueId v = from.back();
      from.pop_back();
      known(v);
      if (!seen.insert(v).second) continue;
      visit(v);
      for (ValueId operand : operands(p_[v].node)) from.push_back(operand);
    }
  }

  // What an effect inside `stream` (or outside all) reads.
  void contained(std::vector<ValueId> from, std::optional<StreamId> stream, const std::string& what) const {
    std::vector<StreamId> open;
    for (; stream; stream = p_[*stream].parent) open.push_back(*stream);
    auto is_open = [&](StreamId s) { return std::find(open.begin(), open.end(), s) != open.end(); };
    walk(std::move(from), [&](ValueId v) {
      const Node& n = p_[v].node;
      if (const auto* c = std::get_if<Carried>(&n)) need(is_open(c->stream), "V11", what + ": " + at(v));
      if (const auto* c = std::get_if<Coord>(&n))
        need(!p_[c->axis].piece || is_open(*p_[c->axis].piece), "V11", what + ": " + at(v));
      need(!std::holds_alternative<Arg>(n), "V11", what + ": " + at(v));
    });
  }

  void axis(AxisId a) const {
    const Axis& axis = p_[a];
    need(axis.lo.has_value() == axis.hi.has_value(), "V9", axis.name);
    if (!axis.lo) return;
    for (ValueId bound : {*axis.lo, *axis.hi}) {
      need(known(bound).dtype == DType::i64_, "V9", axis.name);
      need(!p_[bound].weak, "V12", axis.name);
      if (axis.derived) continue;
      for (AxisId b : p_[bound].axes) need(p_[b].program, "V9", axis.name);
    }
    if (!axis.derived) contained({*axis.lo, *axis.hi}, std::nullopt, "the range of " + axis.name);
  }

  void stream(StreamId id) const {
    const Stream& s = p_[id];
    const std::string what = "the stream over " + p_[s.axis].name;
    need(s.piece.index < p_.axes.size() && p_[s.piece].piece == id, "V10", what);
    need(!s.parent || s.parent->index < id.index, "V10", what);
    for (std::uint32_t k = 0; k < s.carries.size(); ++k) {
      const Carry& c = s.carries[k];
      const auto* node = std::get_if<Carried>(&known(c.in_body).node);
      need(node && node->stream == id && node->slot == k && p_[c.in_body].axes == c.axes && p_[c.in_body].dtype == c.dtype, "V10",
           what);
      need(known(c.init).dtype == c.dtype && known(c.next).dtype == c.dtype, "V10", what);
      need(!p_[c.init].weak && !p_[c.next].weak && !p_[c.in_body].weak, "V12", what);
      need(set_minus(p_[c.init].axes, c.axes).empty() && set_minus(p_[c.next].axes, set_union(c.axes, {s.piece})).empty(), "V10",
           what);
      need(!contains(c.axes, s.piece) && !contains(c.axes, s.axis), "V10", what);
      if (s.tile) need(!contains(p_[c.next].axes, s.piece), "V10", what);
      contained({c.init}, s.parent, what);
      contained({c.next}, id, what);
    }
    if (!s.merge) return;
    need(s.merge->results.size() == s.carries.size(), "V6", what);
    for (std::size_t k = 0; k < s.carries.size(); ++k) need(known(s.merge->results[k]).dtype == s.carries[k].dtype, "V6", what);
    lambda(*s.merge, what);
  }

  void store(const Store& s) const {
    const std::string what = describe(p_, s.tensor, s.index);
    index(s.tensor, s.index, what);
    need(p_[s.tensor].access != Access::in, "V8", what);
    need(known(s.value).dtype == p_[s.tensor].dtype, "V8", what);
    need(!p_[s.value].weak, "V12", what);
    AxisSet place;
    AxisSet done = p_[s.value].done;
    std::vector<ValueId> reads{s.value};
    for (const Index& dim : s.index)
      for (ValueId i : dim) {
        place = set_union(place, p_[i].axes);
        done = set_union(done, p_[i].done);
        reads.push_back(i);
      }
    need(set_minus(p_[s.value].axes, place).empty(), "V8", what);
    for (AxisId a : p_.program_axes) need(contains(place, a) != contains(done, a), "V8", what);
    for (auto at = s.stream; at; at = p_[*at].parent) need(contains(place, p_[*at].piece), "V8", what);
    contained(std::move(reads), s.stream, what);
  }

  void parameters() const {
    std::vector<int> tensors(p_.tensors.size(), 0), scalars(p_.scalars.size(), 0);
    for (const auto& [is_tensor, k] : p_.parameters) {
      auto& list = is_tensor ? tensors : scalars;
      need(k < list.size() && ++list[k] == 1, "V13", "the parameter list");
    }
    need(tensors.size() + scalars.size() == p_.parameters.size(), "V13", "the parameter list");
    for (AxisId a : p_.program_axes) need(a.index < p_.axes.size() && p_[a].program, "V13", "the program axes");
    auto launch = [&](ValueId v, const std::string& what) {
      need(known(v).axes.empty(), "V9", what);
      contained({v}, std::nullopt, what);
    };
    for (std::size_t k = 0; k < p_.tensors.size(); ++k) {
      const Tensor& t = p_.tensors[k];
      for (const auto& bound : {t.contract.lo, t.contract.hi})
        if (bound) launch(*bound, t.name);
      const bool stored = std::any_of(p_.stores.begin(), p_.stores.end(), [&](const Store& s) { return s.tensor.index == k; });
      need(t.access != Access::out || stored, "V13", t.name);
    }
    for (const Scalar& s : p_.scalars)
      if (s.fallback) {
        launch(*s.fallback, s.name);
        need(p_[*s.fallback].dtype == s.dtype && !p_[*s.fallback].weak, "V12", s.name);
      }
    for (const auto& [condition, where] : p_.requires_) {
      launch(condition, "a require");
      need(is_bool(p_[condition].dtype), "V9", "a require");
    }
  }

  const Program& p_;
  const char* pass_;
};

}  // namespace

void verify(const Program& p, const char* pass) { Verifier(p, pass).run(); }

}  // namespace cosmati::ir
