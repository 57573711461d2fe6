// Evaluates tile IR over integers. Of what only data decide, two kinds are taken as chosen: a float that was loaded and cast, and
// where the largest or smallest loaded float is.
// SPDX-License-Identifier: Apache-2.0
#include "prove/evaluation.h"

#include <algorithm>
#include <stdexcept>

#include "support/overloaded.h"

namespace cosmati::prove {

using ir::AxisId;
using ir::ValueId;

namespace {

constexpr int max_steps = 20'000;

bool is_float_load(const ir::Program& p, ValueId v) {
  const auto* load = std::get_if<ir::Load>(&p[v].node);
  return load && !load->otherwise && is_float(p[v].dtype);
}

}  // namespace

std::int64_t evaluate(const Poly& p, const Assignment& values) {
  std::int64_t sum = 0;
  for (const auto& [m, c] : p.terms()) {
    std::int64_t product = c;
    for (AtomId a : m) product = checked_mul(product, values.at(a));
    sum = checked_add(sum, product);
  }
  return sum;
}

Evaluation::Evaluation(const Terms& terms, const Assignment& values)
    : terms_(terms), p_(terms.program()), values_(values), steps_(max_steps) {
  for (const auto& [a, v] : values) {
    const Atom& atom = terms[a];
    if (atom.kind == AtomKind::extent) extents_[atom.axis] = v;
    if (atom.kind == AtomKind::scalar) scalars_[atom.scalar] = v;
  }
  for (const auto& [a, v] : values) {
    const Atom& atom = terms[a];
    if (atom.kind == AtomKind::load) possible_ = possible_ && take_load(a);
    if (atom.kind == AtomKind::opaque && !take_choice_of_data(a)) uncertain_.insert(a);
    if (atom.kind != AtomKind::choice) continue;
    // Alternatives may overlap where data that is not spoken of decides.
    const std::int64_t taken = v;
    const bool certain = std::all_of(atom.alternatives.begin(), atom.alternatives.end(), [&](const Alternative& x) {
      const bool holds = std::all_of(x.facts.begin(), x.facts.end(), [&](const Poly& f) { return poly(f).value_or(-1) >= 0; });
      return !holds || poly(x.value) == taken;
    });
    if (!certain) uncertain_.insert(a);
  }
  // What can be computed is; twice, since it may depend on what is computed itself.
  for (int pass = 0; pass < 2; ++pass)
    for (const auto& [a, v] : values) {
      const Atom& atom = terms[a];
      if (atom.kind != AtomKind::opaque || !uncertain_.count(a)) continue;
      const std::optional<std::int64_t> is = value_of(a);
      if (!is) continue;
      if (*is == v)
        uncertain_.erase(a);
      else
        possible_ = false;
    }
}

bool Evaluation::possible() const { return possible_ && launch_possible() && data_possible(); }

std::optional<std::int64_t> Evaluation::poly(const Poly& p) const {
  try {
    return evaluate(p, values_);
  } catch (const std::out_of_range&) {
  } catch (const TooLarge&) {
  }
  return std::nullopt;
}

std::optional<Point> Evaluation::point_of(const Atom& opaque) const {
  const ir::AxisSet& axes = p_[opaque.value].axes;
  Point at;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::optional<std::int64_t> c = poly(opaque.args[k]);
    if (!c) return std::nullopt;
    at[axes[k]] = *c;
  }
  return at;
}

std::optional<std::int64_t> Evaluation::value_of(AtomId opaque) const {
  if (terms_[opaque].kind != AtomKind::opaque) return std::nullopt;
  const std::optional<Point> at = point_of(terms_[opaque]);
  return at ? computed(terms_[opaque].value, *at) : std::nullopt;
}

std::optional<std::int64_t> Evaluation::coordinate(Terms& terms, AxisId axis, const Env& env) const {
  const Poly p = terms.coordinate(axis, env);
  for (AtomId a : terms.closure({p}))
    if (uncertain_.count(a)) return std::nullopt;
  return poly(p);
}

std::optional<Point> Evaluation::point(Terms& terms, const ir::AxisSet& axes, const Env& env) const {
  Point at;
  for (AxisId a : axes) {
    const std::optional<std::int64_t> c = coordinate(terms, a, env);
    if (!c) return std::nullopt;
    at[a] = *c;
  }
  return at;
}

// ---- what was chosen ---------------------------------------------------------------------------------------------------

bool Evaluation::certain(AtomId a) const {
  const Atom& atom = terms_[a];
  if (uncertain_.count(a)) return false;
  if (atom.kind != AtomKind::load) return true;
  for (std::size_t d = 0; d < atom.args.size(); ++d) {
    const std::optional<std::int64_t> i = poly(atom.args[d]), size = extent(p_[atom.tensor].dims[d]);
    if (!i || !size || *i < 0 || *i >= *size) return false;
  }
  return true;
}

// One element has one value. Only loads that are inside say something of an element.
bool Evaluation::take_load(AtomId a) {
  const Atom& atom = terms_[a];
  std::vector<std::int64_t> element;
  for (std::size_t d = 0; d < atom.args.size(); ++d) {
    const std::optional<std::int64_t> i = poly(atom.args[d]), size = extent(p_[atom.tensor].dims[d]);
    if (!i || !size) return false;
    if (*i < 0 || *i >= *size) return true;
    element.push_back(*i);
  }
  const auto [it, fresh] = memory_.emplace(Element{atom.tensor, element}, values_.at(a));
  return fresh || it->second == values_.at(a);
}

bool Evaluation::take_choice_of_data(AtomId a) {
  const Atom& atom = terms_[a];
  const std::optional<Point> at = point_of(atom);
  if (!at || !is_free(atom.value, *at, values_.at(a))) return false;
  return free_.emplace(std::pair(atom.value, *at), values_.at(a)).first->second == values_.at(a);
}

bool Evaluation::is_free(ValueId v, const Point& at, std::int64_t chosen) const {
  if (const auto* e = std::get_if<ir::Elementwise>(&p_[v].node)) return e->op == ops::Op::cast && is_float_load(p_, e->args[0]);
  const ir::Node* node = &p_[v].node;
  if (const auto* part = std::get_if<ir::Part>(node))
    if (const auto* of = std::get_if<ValueId>(&part->of)) node = &p_[*of].node;
  const auto* reduce = std::get_if<ir::Reduce>(node);
  if (!reduce || !p_[reduce->reducer].builtin || !p_[reduce->reducer].index || reduce->axes.size() != 1) return false;
  const auto over = range(reduce->axes[0], at);
  if (!over) return false;
  if (over->first >= over->second) return chosen == -1;
  return is_float_load(p_, reduce->args[0]) && over->first <= chosen && chosen < over->second;
}

bool Evaluation::launch_possible() const {
  for (const ir::Tensor& t : p_.tensors) {
    std::optional<std::int64_t> elements = 1;
    for (const ir::Dim& d : t.dims) {
      for (const ir::Factor& f : d) {
        const std::optional<std::int64_t> e = f.axis ? extent(f.axis) : std::optional<std::int64_t>(0);
        if (e && *e + f.offset < 0) return false;
      }
      const std::optional<std::int64_t> size = extent(d);
      elements = elements && size ? std::optional(*elements * *size) : std::nullopt;
    }
    if (!elements || *elements <= 0 || !t.contract.lo || !t.contract.hi) continue;
    const std::optional<std::int64_t> lo = value(*t.contract.lo, {}), hi = value(*t.contract.hi, {});
    if (!lo || !hi || *hi <= *lo || (t.contract.distinct && *hi - *lo < *elements)) return false;
  }
  return std::all_of(p_.requires_.begin(), p_.requires_.end(), [&](const auto& require) {
    const std::optional<std::int64_t> holds = value(require.first, {});
    return holds ? *holds != 0 : !speaks_of_integers(require.first);
  });
}

// What is asked of floating scalars alone leaves the integers free.
bool Evaluation::speaks_of_integers(ValueId v) const {
  std::vector<ValueId> work{v};
  std::set<ValueId> seen;
  while (!work.empty()) {
    const ValueId at = work.back();
    work.pop_back();
    if (!seen.insert(at).second) continue;
    const bool scalar = std::holds_alternative<ir::ScalarRef>(p_[at].node);
    if (std::holds_alternative<ir::Extent>(p_[at].node) || (scalar && !is_float(p_[at].dtype))) return true;
    for (ValueId o : ir::operands(p_[at].node)) work.push_back(o);
  }
  return false;
}

bool Evaluation::data_possible() const {
  for (const auto& [where, v] : memory_) {
    const ir::Contract& c = p_[where.first].contract;
    const std::optional<std::int64_t> lo = c.lo ? value(*c.lo, {}) : v, hi = c.hi ? value(*c.hi, {}) : v + 1;
    if (!lo || !hi || v < *lo || v >= *hi) return false;
    for (const auto& [other, w] : memory_) {
      if (other.first != where.first || other.second == where.second) continue;
      if (c.distinct && v == w) return false;
      const bool one_row = std::equal(other.second.begin(), other.second.end() - 1, where.second.begin());
      if (c.sorted && one_row && (where.second.back() < other.second.back() ? v > w : v < w)) return false;
    }
  }
  return true;
}

// ---- what is computed --------------------------------------------------------------------------------------------------

std::optional<std::int64_t> Evaluation::extent(AxisId axis) const {
  const ir::Axis& a = p_[axis];
  if (a.piece) return extent(p_[*a.piece].axis);
  if (!a.lo && !a.hi) {
    const auto it = extents_.find(axis);
    return it == extents_.end() ? std::nullopt : std::optional(it->second);
  }
  const auto r = range(axis, {});
  return r ? std::optional(std::max<std::int64_t>(0, r->second - r->first)) : std::nullopt;
}

std::optional<std::int64_t> Evaluation::extent(const ir::Dim& dim) const {
  std::int64_t product = 1;
  for (const ir::Factor& f : dim) {
    const std::optional<std::int64_t> e = f.axis ? extent(f.axis) : std::optional<std::int64_t>(0);
    if (!e) return std::nullopt;
    product *= *e + f.offset;
  }
  return product;
}

std::optional<std::pair<std::int64_t, std::int64_t>> Evaluation::range(AxisId axis, const Point& at) const {
  const ir::Axis& a = p_[axis];
  if (a.piece) return range(p_[*a.piece].axis, at);
  const std::optional<std::int64_t> lo = a.lo ? value(*a.lo, at) : std::optional<std::int64_t>(0);
  const std::optional<std::int64_t> hi = a.hi ? value(*a.hi, at) : a.lo ? std::nullopt : extent(axis);
  if (!lo || !hi) return std::nullopt;
  return std::pair(*lo, *hi);
}

std::optional<bool> Evaluation::inside(ir::TensorId tensor, const std::vector<ir::Index>& index, const Point& at,
                                       std::vector<std::int64_t>& element) const {
  bool all = true;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const ir::Dim& dim = p_[tensor].dims[d];
    std::int64_t linear = 0;
    for (std::size_t f = 0; f < index[d].size(); ++f) {
      const std::optional<std::int64_t> i = value(index[d][f], at), size = extent(index[d].size() == 1 ? dim : ir::Dim{dim[f]});
      if (!i || !size) return std::nullopt;
      all = all && 0 <= *i && *i < *size;
      linear = linear * *size + *i;
    }
    element.push_back(linear);
  }
  return all;
}

std::optional<std::vector<std::int64_t>> Evaluation::element(ir::TensorId tensor, const std::vector<ir::Index>& index,
                                                             const Point& at) const {
  std::vector<std::int64_t> element;
  return inside(tensor, index, at, element).value_or(false) ? std::optional(element) : std::nullopt;
}

std::optional<std::int64_t> Evaluation::value(ValueId v, const Point& at) const {
  if (steps_ <= 0 || is_float(p_[v].dtype)) return std::nullopt;
  --steps_;
  if (const std::optional<std::int64_t> is = computed(v, at)) return is;
  Point own;
  for (AxisId a : p_[v].axes) {
    const auto c = at.find(a);
    if (c == at.end()) return std::nullopt;
    own.insert(*c);
  }
  const auto it = free_.find({v, own});
  return it == free_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::int64_t> Evaluation::computed(ValueId v, const Point& at) const {
  using Result = std::optional<std::int64_t>;
  return std::visit(support::overloaded{
                        [&](const ir::Const& n) { return Result(n.i); },
                        [&](const ir::Coord& n) {
                          const auto it = at.find(n.axis);
                          return it == at.end() ? Result() : Result(it->second);
                        },
                        [&](const ir::Extent& n) { return extent(n.axis); },
                        [&](const ir::ScalarRef& n) {
                          const auto it = scalars_.find(n.scalar);
                          return it == scalars_.end() ? Result() : Result(it->second);
                        },
                        [&](const ir::Load& n) {
                          std::vector<std::int64_t> element;
                          const std::optional<bool> is_inside = inside(n.tensor, n.index, at, element);
                          if (!is_inside) return Result();
                          if (!*is_inside) return n.otherwise ? value(*n.otherwise, at) : Result();
                          const auto it = memory_.find({n.tensor, element});
                          return it == memory_.end() ? Result() : Result(it->second);
                        },
                        [&](const ir::Elementwise& n) { return arithmetic(v, n, at); },
                        [&](const ir::Replace& n) { return replaced(n, at); },
                        [&](const auto&) { return Result(); },
                    },
                    p_[v].node);
}

std::optional<std::int64_t> Evaluation::arithmetic(ValueId v, const ir::Elementwise& e, const Point& at) const {
  const DType from = p_[e.args.back()].dtype;
  if (is_float(from) || e.op == ops::Op::bits) return std::nullopt;
  ops::Scalar args[3];
  for (std::size_t k = 0; k < e.args.size(); ++k) {
    if (e.op == ops::Op::where && k > 0 && (args[0].i != 0) != (k == 1)) continue;  // only what is chosen
    const std::optional<std::int64_t> arg = value(e.args[k], at);
    if (!arg) return std::nullopt;
    args[k].i = *arg;
  }
  if (e.op == ops::Op::cast) return ops::cast(from, p_[v].dtype, args[0]).i;
  return ops::reference(e.op, from, p_[v].dtype, args).i;
}

std::optional<std::int64_t> Evaluation::replaced(const ir::Replace& r, const Point& at) const {
  Point there = at;
  for (const auto& [axis, by] : r.binds) {
    const std::optional<std::int64_t> to = value(by, at);
    if (!to) return std::nullopt;
    there[axis] = *to;
  }
  for (AxisId a : p_[r.of].axes) {
    const auto limits = range(a, there);
    const auto c = there.find(a);
    if (!limits || c == there.end()) return std::nullopt;
    if (c->second >= limits->first && c->second < limits->second) continue;
    return r.otherwise ? value(*r.otherwise, at) : std::nullopt;
  }
  return value(r.of, there);
}

}  // namespace cosmati::prove
