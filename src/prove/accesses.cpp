// Walks the value arena with environments, and checks each access against its extents.
// SPDX-License-Identifier: Apache-2.0
#include "prove/accesses.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "ir/describe.h"
#include "prove/witness.h"

namespace cosmati::prove {

using ir::AxisId;
using ir::AxisSet;
using ir::ValueId;

namespace {

// Axes that no longer vary once the instance is known.
bool only_program_axes(const ir::Program& p, const ir::AxisSet& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](AxisId a) { return p[a].program; });
}

std::string extent_text(const ir::Program& p, const ir::Dim& dim) {
  std::vector<std::string> parts;
  for (const ir::Factor& f : dim) {
    if (!f.axis)
      parts.push_back(fmt::format("{}", f.offset));
    else if (f.offset)
      parts.push_back(fmt::format("extent({}) {} {}", p[f.axis].name, f.offset < 0 ? '-' : '+', std::abs(f.offset)));
    else
      parts.push_back(fmt::format("extent({})", p[f.axis].name));
  }
  return fmt::format("{}", fmt::join(parts, " * "));
}

// Whether a loaded or computed value that nothing bounds from this side takes part in p.
bool unbounded_data(const Terms& terms, const Poly& p, bool above) {
  for (AtomId a : terms.closure({p})) {
    const Atom& atom = terms[a];
    if (atom.kind == AtomKind::opaque && atom.facts.empty()) return true;
    if (atom.kind != AtomKind::load) continue;
    const ir::Contract& c = terms.program()[atom.tensor].contract;
    if (!(above ? c.hi : c.lo) && atom.facts.empty()) return true;
  }
  return false;
}

// An operation there whose result may not be what its operands say, because it wraps.
std::optional<ValueId> may_wrap(const Terms& terms, const std::vector<Poly>& roots) {
  for (AtomId a : terms.closure(roots))
    if (terms[a].wrapped) return terms[a].value;
  return std::nullopt;
}

// Whether p is made of scalars and extents alone, which a require may speak of.
bool of_globals(const Terms& terms, const Poly& p) {
  for (AtomId a : terms.closure({p})) {
    const AtomKind kind = terms[a].kind;
    if (kind == AtomKind::coordinate || kind == AtomKind::load || kind == AtomKind::opaque) return false;
  }
  return true;
}

struct Component {  // lo <= index < hi is asked
  Poly index, lo, hi;
  std::string text, lo_text, hi_text;
  ValueId value;
  AxisId axis;  // where no value is named: its coordinate
};

class Checker {
 public:
  Checker(Terms& terms, std::vector<Refusal>& refusals)
      : terms_(terms), p_(terms.program()), certain_(ir::evaluated_within(p_)), refusals_(refusals) {}

  // Refuses at most once. The components are evaluated in `env`, where the axes `certain` have points.
  void check(const std::vector<Component>& components, const Env& env, const AxisSet& certain, const AxisSet& within,
             const Where& where, const std::string& access, const std::string& container, const std::vector<Poly>& shape,
             const std::string& hint) {
    const std::vector<Poly> given = this->given(env, certain);
    for (const Component& c : components) {
      const Poly above = c.hi - 1 - c.index, below = c.index - c.lo;
      const bool above_ok = terms_.proves(above, given), below_ok = terms_.proves(below, given);
      if (above_ok && below_ok) continue;
      const std::string not_below = fmt::format("{} <= {}", c.lo_text, c.text),
                        not_above = fmt::format("{} < {}", c.text, c.hi_text);
      const std::string& missing = above_ok ? not_below : not_above;
      const bool deep = terms_.reaches_too_deep({c.index});
      if (const std::optional<ValueId> v = deep ? std::nullopt : may_wrap(terms_, {c.index})) {
        refusals_.push_back({ErrorCode::out_of_bounds, where,
                             fmt::format("{} is not proved to stay in its {}: {} may wrap around in {}", access, container,
                                         ir::describe_expression(p_, *v), name(p_[*v].dtype)),
                             "bound its arguments with require, or compute it in i64", ""});
        return;
      }
      if (!deep && unbounded_data(terms_, c.index, !above_ok)) {
        refusals_.push_back(
            {ErrorCode::unproved_gather, where, fmt::format("{}: nothing says {}", access, missing), declare(c, hint), ""});
        return;
      }
      std::vector<Poly> violated;
      if (!above_ok) violated.push_back(above);
      if (!below_ok) violated.push_back(below);
      std::string message = fmt::format("{} leaves its {}", access, container);
      std::vector<Poly> index, point;
      for (const Component& x : components) index.push_back(x.index);
      point = index;
      for (AxisId a : within) point.push_back(terms_.coordinate(a, env));
      const Confirm confirm = [&](const Evaluation& evaluation) { return leaves(components, env, evaluation); };
      if (std::optional<Assignment> w = find_witness(terms_, violated, point, shape, given, confirm)) {
        const std::string point = describe_point(terms_, *w, index);
        if (!point.empty()) message += ", for example at " + point;
        std::vector<std::string> sizes;
        for (const Poly& s : shape) sizes.push_back(fmt::format("{}", evaluate(s, *w)));
        if (!sizes.empty()) {
          const std::string is = fmt::format("{} is {}", access.substr(0, access.find('[')), fmt::join(sizes, " x "));
          message += point.empty() ? ", for example where " + is : " (" + is + ")";
        }
      } else if (deep) {
        message = fmt::format(
            "{} is not proved to stay in its {}: its index depends on a chain of more than {} operations, and proofs look no "
            "further",
            access, container, max_nesting);
        refusals_.push_back(
            {ErrorCode::out_of_bounds, where, message,
             fmt::format("{}{}clamp(..., {}, {} - 1) around the index", hint, hint.empty() ? "" : ", or ", c.lo_text, c.hi_text),
             ""});
        return;
      } else {
        message = fmt::format("{} is not proved to stay in its {}: {} does not follow from the ranges and contracts", access,
                              container, missing);
        if (std::optional<ValueId> v = may_wrap(terms_, terms_.globals()))
          message += fmt::format(" (a require does not help where {} may wrap around in {})", ir::describe_expression(p_, *v),
                                 name(p_[*v].dtype));
      }
      std::string remedy = hint;
      // What is false of numbers alone, no require makes true.
      const bool hopeless =
          std::any_of(violated.begin(), violated.end(), [](const Poly& q) { return q.as_constant().has_value(); });
      if (!hopeless && of_globals(terms_, c.index) && of_globals(terms_, c.lo) && of_globals(terms_, c.hi) &&
          !may_wrap(terms_, terms_.globals()))
        remedy += fmt::format("{}require {}", hint.empty() ? "" : ", or ",
                              above_ok || below_ok ? missing : not_below + " and " + not_above);
      refusals_.push_back({ErrorCode::out_of_bounds, where, message, remedy, ""});
      return;
    }
  }

  // Whether a component that the program computes is outside.
  bool leaves(const std::vector<Component>& components, const Env& env, const Evaluation& evaluation) {
    for (const Component& c : components) {
      const std::optional<std::int64_t> lo = evaluation.poly(c.lo), hi = evaluation.poly(c.hi);
      std::optional<std::int64_t> i;
      if (!c.value)
        i = evaluation.coordinate(terms_, c.axis, env);
      else if (const std::optional<Point> at = evaluation.point(terms_, p_[c.value].axes, env))
        i = evaluation.value(c.value, *at);
      if (i && lo && hi && (*i < *lo || *i >= *hi)) return true;
    }
    return false;
  }

  std::vector<Component> components(ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env) {
    const ir::Tensor& t = p_[tensor];
    std::vector<Component> result;
    for (std::size_t d = 0; d < index.size(); ++d) {
      for (std::size_t f = 0; f < index[d].size(); ++f) {
        const ir::Dim dim = index[d].size() == 1 ? t.dims[d] : ir::Dim{t.dims[d][f]};
        const ValueId v = index[d][f];
        result.push_back({terms_.ring(v, env), 0, terms_.extent(dim), ir::describe(p_, v), "0", extent_text(p_, dim), v, {}});
      }
    }
    return result;
  }

  std::vector<Poly> shape(ir::TensorId tensor) {
    std::vector<Poly> s;
    for (const ir::Dim& d : p_[tensor].dims) s.push_back(terms_.extent(d));
    return s;
  }

  void load(const LoadSite& site) {
    const auto& l = std::get<ir::Load>(p_[site.value].node);
    if (l.otherwise) return;
    const std::string access = ir::describe(p_, l.tensor, l.index);
    check(components(l.tensor, l.index, site.env), site.env, certain_[site.value.index], site.within, p_[site.value].where,
          access, "extents", shape(l.tensor), access + " else 0");
  }

  void replace(const ReplaceSite& site) {
    const auto& r = std::get<ir::Replace>(p_[site.value].node);
    if (r.otherwise) return;
    const Env inner = terms_.inside(site.env, r);
    std::vector<Component> components;
    auto add = [&](AxisId axis, const Poly& at, const std::string& text, ValueId value) {
      auto [lo, hi] = terms_.range(axis, inner);
      const ir::Axis& a = p_[axis];
      components.push_back({at, lo, hi, text, a.lo ? ir::describe(p_, *a.lo) : "0",
                            a.hi ? ir::describe(p_, *a.hi) : fmt::format("extent({})", a.name), value, axis});
    };
    for (const auto& [axis, by] : r.binds) add(axis, inner.replaced.at(axis), ir::describe(p_, by), by);
    // Axes that stay, of a range that the replaced ones decide.
    for (AxisId a : p_[r.of].axes) {
      if (inner.replaced.count(a) && !site.env.replaced.count(a)) continue;
      const ir::AxisSet depends = ir::range_axes(p_, a);
      const bool moved =
          std::any_of(r.binds.begin(), r.binds.end(), [&](const auto& b) { return ir::contains(depends, b.first); });
      if (moved) add(a, terms_.coordinate(a, site.env), p_[a].name, {});
    }
    std::vector<std::string> binds;
    for (const auto& [axis, by] : r.binds) binds.push_back(fmt::format("{} := {}", p_[axis].name, ir::describe(p_, by)));
    const std::string access = fmt::format("{}[{}]", ir::describe(p_, r.of), fmt::join(binds, ", "));
    check(components, site.env, certain_[site.value.index], site.within, p_[site.value].where, access, "range", {},
          access + " else 0");
  }

  void store(const ir::Store& s) {
    check(components(s.tensor, s.index, {}), {}, instance_axes(p_, s), instance_axes(p_, s), s.where,
          ir::describe(p_, s.tensor, s.index), "extents", shape(s.tensor), "");
  }

 private:
  std::vector<Poly> given(const Env& env, const AxisSet& certain) {
    std::vector<Poly> facts = instance_facts(terms_, env, certain);
    facts.insert(facts.end(), env.facts.begin(), env.facts.end());
    return facts;
  }

  // "declare label: i32[row] in 0 .. extent(col), or write else"
  std::string declare(const Component& c, const std::string& hint) {
    const std::string otherwise = hint.empty() ? "clamp it" : "write else";
    const auto* l = c.value ? std::get_if<ir::Load>(&p_[uncast(c.value)].node) : nullptr;
    if (!l || !is_int(p_[l->tensor].dtype)) return hint.empty() ? otherwise : hint;
    const ir::Tensor& t = p_[l->tensor];
    std::vector<std::string> dims;
    for (const ir::Dim& d : t.dims) dims.push_back(ir::describe_dim(p_, d));
    return fmt::format("declare {}: {}[{}] in {} .. {}, or {}", t.name, name(t.dtype), fmt::join(dims, ", "), c.lo_text,
                       c.hi_text, otherwise);
  }

  ValueId uncast(ValueId v) const {
    for (;;) {
      const auto* e = std::get_if<ir::Elementwise>(&p_[v].node);
      if (!e || e->op != ops::Op::cast) return v;
      v = e->args[0];
    }
  }

  Terms& terms_;
  const ir::Program& p_;
  const std::vector<AxisSet> certain_;  // per value
  std::vector<Refusal>& refusals_;
};

}  // namespace

Sites sites_of(Terms& terms, const std::vector<Root>& roots, const Env& start) {
  const ir::Program& p = terms.program();
  using Key = std::tuple<ValueId, bool, Env>;
  struct Item {
    ValueId value;
    Env env;
    bool settled;
  };
  std::vector<Item> work;
  std::map<Key, AxisSet> within;  // what all ways to it have in common
  std::vector<Key> loads, replaces;
  auto push = [&](ValueId v, const Env& env, bool settled, const AxisSet& axes) {
    const auto [it, fresh] = within.try_emplace(Key(v, settled, env), axes);
    const AxisSet common = fresh ? axes : ir::set_minus(it->second, ir::set_minus(it->second, axes));
    if (!fresh && common == it->second) return;
    it->second = common;
    work.push_back({v, env, settled});
    if (!fresh) return;
    if (std::holds_alternative<ir::Load>(p[v].node)) loads.push_back(it->first);
    if (std::holds_alternative<ir::Replace>(p[v].node)) replaces.push_back(it->first);
  };
  for (const Root& root : roots) push(root.value, start, false, root.within);
  while (!work.empty()) {
    const Item item = std::move(work.back());
    work.pop_back();
    const ir::Value& v = p[item.value];
    const AxisSet here = within.at(Key(item.value, item.settled, item.env));
    if (const auto* reduce = std::get_if<ir::Reduce>(&v.node)) {
      const bool settled = item.settled || only_program_axes(p, v.axes);
      const Env inner = terms.inside(item.env, reduce->axes);
      for (ValueId a : reduce->args) push(a, inner, settled, ir::set_union(here, reduce->axes));
      for (AxisId a : reduce->axes) {
        if (p[a].lo) push(*p[a].lo, item.env, settled, here);
        if (p[a].hi) push(*p[a].hi, item.env, settled, here);
      }
      continue;
    }
    if (const auto* replace = std::get_if<ir::Replace>(&v.node)) {
      for (const auto& [axis, by] : replace->binds) push(by, item.env, item.settled, here);
      push(replace->of, terms.inside(item.env, *replace), item.settled, here);
      if (replace->otherwise) push(*replace->otherwise, item.env, item.settled, here);
      continue;
    }
    for (ValueId a : ir::operands(v.node)) push(a, item.env, item.settled, here);
  }
  Sites sites;
  for (const Key& k : loads) sites.loads.push_back({std::get<0>(k), std::get<2>(k), within.at(k), std::get<1>(k)});
  for (const Key& k : replaces) sites.replaces.push_back({std::get<0>(k), std::get<2>(k), within.at(k)});
  return sites;
}

std::vector<Root> all_roots(const ir::Program& program) {
  std::vector<Root> roots;
  for (const ir::Store& s : program.stores) {
    const AxisSet instances = instance_axes(program, s);
    roots.emplace_back(s.value, instances);
    for (const ir::Index& i : s.index)
      for (ValueId part : i) roots.emplace_back(part, instances);
  }
  for (const ir::Stream& s : program.streams) {
    for (const ir::Carry& c : s.carries) {
      roots.emplace_back(c.init);
      roots.emplace_back(c.next, AxisSet{s.piece});
    }
  }
  for (const ir::Axis& a : program.axes) {
    if (a.lo) roots.emplace_back(*a.lo);
    if (a.hi) roots.emplace_back(*a.hi);
  }
  return roots;
}

Place place_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env) {
  const ir::Tensor& t = terms.program()[tensor];
  Place place;
  for (std::size_t d = 0; d < index.size(); ++d) {
    for (std::size_t f = 0; f < index[d].size(); ++f) {
      place.index.push_back(terms.exact(index[d][f], env));
      place.extents.push_back(index[d].size() == 1 ? terms.extent(t.dims[d]) : terms.extent(t.dims[d][f]));
    }
  }
  return place;
}

std::vector<Poly> element_of(Terms& terms, ir::TensorId tensor, const std::vector<ir::Index>& index, const Env& env) {
  const ir::Tensor& t = terms.program()[tensor];
  std::vector<Poly> element;
  for (std::size_t d = 0; d < index.size(); ++d) {
    Poly linear;
    for (std::size_t f = 0; f < index[d].size(); ++f) {
      const Poly weight = index[d].size() > 1 ? terms.extent(t.dims[d][f]) : Poly(1);
      linear = linear * weight + terms.exact(index[d][f], env);
    }
    element.push_back(linear);
  }
  return element;
}

std::vector<Poly> instance_facts(Terms& terms, const Env& env, const AxisSet& within) {
  const ir::Program& p = terms.program();
  std::vector<Poly> facts;
  Env own;
  own.copy = env.copy;
  const auto has_points = [&](AxisId a) { return p[a].program && ir::contains(within, a); };
  for (AxisId a : p.program_axes) {
    if (!has_points(a)) continue;
    auto [lo, hi] = terms.range(a, own);
    facts.push_back(hi - 1 - lo);
  }
  // A tensor over program axes has elements then, so what its contract promises is possible.
  for (const ir::Tensor& t : p.tensors) {
    if (!t.contract.lo || !t.contract.hi) continue;
    bool has_elements = true;
    for (const ir::Dim& d : t.dims)
      for (const ir::Factor& f : d) has_elements = has_elements && (f.axis ? has_points(f.axis) && f.offset >= 0 : f.offset >= 1);
    if (!has_elements) continue;
    const Poly lo = terms.exact(*t.contract.lo, {}), room = terms.exact(*t.contract.hi, {}) - lo;
    facts.push_back(room - 1);
    if (!t.contract.distinct) continue;
    Poly size(1);
    for (const ir::Dim& d : t.dims) size = size * terms.extent(d);
    facts.push_back(room - size);
  }
  return facts;
}

void check_loads(Terms& terms, std::vector<Refusal>& refusals) {
  Checker checker(terms, refusals);
  const Sites sites = sites_of(terms, all_roots(terms.program()), {});
  for (const ReplaceSite& s : sites.replaces) checker.replace(s);
  // What a replacement outside its range would read is not told again.
  const bool replaced = refusals.empty();
  for (const LoadSite& s : sites.loads)
    if (replaced || s.env.replaced.empty()) checker.load(s);
}

void check_store_bounds(Terms& terms, const ir::Store& store, std::vector<Refusal>& refusals) {
  Checker(terms, refusals).store(store);
}

}  // namespace cosmati::prove
