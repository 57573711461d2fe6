// Stores as maps from instances to elements. Injectivity is found by elimination: an index component that is one unknown axis
// plus known terms determines that axis; a component a * c + r with 0 <= r < c determines a and r; an element of a `distinct`
// tensor determines where it was read. What elimination cannot see is asked as: two instances, one element, different axes.
// SPDX-License-Identifier: Apache-2.0
#include "prove/stores.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ir/describe.h"
#include "prove/isl.h"
#include "prove/witness.h"

namespace cosmati::prove {

using ir::AxisId;
using ir::AxisSet;

namespace {

class Elimination {
 public:
  Elimination(Terms& terms, std::vector<Poly> components) : terms_(terms), components_(std::move(components)) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t k = 0; k < components_.size() && components_.size() < 64; ++k) progress |= step(Poly(components_[k]));
      progress |= rejoin();
    }
  }
  bool determines(AtomId a) const { return determined_.count(a); }

 private:
  bool known(AtomId a) const {
    const Atom& atom = terms_[a];
    if (determined_.count(a) || atom.kind == AtomKind::extent || atom.kind == AtomKind::scalar) return true;
    if (atom.kind == AtomKind::coordinate || atom.kind == AtomKind::opaque) return false;
    auto all_known = [&](const Poly& p) {
      const std::vector<AtomId> atoms = p.atoms();
      return std::all_of(atoms.begin(), atoms.end(), [&](AtomId b) { return known(b); });
    };
    if (atom.kind == AtomKind::choice)
      return std::all_of(atom.alternatives.begin(), atom.alternatives.end(), [&](const Alternative& x) {
        // Without facts the choice is made by data that is not spoken of here.
        return !x.facts.empty() && all_known(x.value) && std::all_of(x.facts.begin(), x.facts.end(), all_known);
      });
    return std::all_of(atom.args.begin(), atom.args.end(), all_known);
  }

  bool determine(AtomId a) {
    if (!determined_.insert(a).second) return false;
    const Atom& atom = terms_[a];
    if (atom.kind == AtomKind::load && terms_.program()[atom.tensor].contract.distinct)
      components_.insert(components_.end(), atom.args.begin(), atom.args.end());
    return true;
  }

  bool step(const Poly& component) {
    std::vector<std::pair<Monomial, std::int64_t>> unknown;
    for (const auto& [m, c] : component.terms())
      if (!std::all_of(m.begin(), m.end(), [&](AtomId a) { return known(a); })) unknown.emplace_back(m, c);
    if (unknown.empty()) return false;
    Poly moving;
    for (const auto& [m, c] : unknown) moving.add(m, c);
    for (const auto& [m, c] : unknown) {
      for (AtomId a : m) {
        if (known(a)) continue;
        Poly scale;
        scale.add(*divide(m, {a}), std::abs(c));
        const std::vector<AtomId> in_scale = scale.atoms();
        if (!std::all_of(in_scale.begin(), in_scale.end(), [&](AtomId b) { return known(b); })) continue;
        if (!terms_.positive(scale, {component})) continue;
        if (unknown.size() == 1) return determine(a);
        // moving = scale * high + low
        Poly high, low;
        for (const auto& [n, d] : moving.terms()) {
          const std::optional<Monomial> rest = divide(n, scale.terms().begin()->first);
          if (rest && d % c == 0)
            high.add(*rest, d / std::abs(c));
          else
            low.add(n, d);
        }
        if (low.is_zero() && scale == Poly(1)) continue;
        if (!terms_.nonnegative(low) || !terms_.nonnegative(scale - 1 - low)) continue;
        const bool upper = add(high), lower = add(low);
        return upper || lower;
      }
    }
    return false;
  }

  bool add(const Poly& p) {
    if (p.is_zero() || std::find(components_.begin(), components_.end(), p) != components_.end()) return false;
    components_.push_back(p);
    return true;
  }

  // n // d and n % d together are n.
  bool rejoin() {
    bool progress = false;
    for (AtomId q : std::set<AtomId>(determined_)) {
      if (terms_[q].kind != AtomKind::quotient || !terms_[q].divisor_positive) continue;
      for (AtomId r : std::set<AtomId>(determined_))
        if (terms_[r].kind == AtomKind::remainder && terms_[r].args == terms_[q].args) progress |= add(terms_[q].args[0]);
    }
    return progress;
  }

  Terms& terms_;
  std::vector<Poly> components_;
  std::set<AtomId> determined_;
};

bool same_factors(const ir::Dim& a, const ir::Dim& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::Factor& f, const ir::Factor& g) { return f.axis == g.axis && f.offset == g.offset; });
}

const std::vector<ir::Index>& index_of(const Terms& terms, const LoadSite& site) {
  return std::get<ir::Load>(terms.program()[site.value].node).index;
}

// The differences that are 0 where the two places are one element: by factors where both name the same ones.
std::vector<Poly> differences(Terms& terms, ir::TensorId ta, const std::vector<ir::Index>& a, const Env& ea, ir::TensorId tb,
                              const std::vector<ir::Index>& b, const Env& eb) {
  const ir::Program& p = terms.program();
  const std::vector<Poly> x = element_of(terms, ta, a, ea), y = element_of(terms, tb, b, eb);
  std::vector<Poly> result;
  for (std::size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
    if (a[d].size() == b[d].size() && same_factors(p[ta].dims[d], p[tb].dims[d])) {
      for (std::size_t f = 0; f < a[d].size(); ++f) {
        const Poly own = terms.exact(a[d][f], ea);
        result.push_back(own - terms.exact(b[d][f], eb));
      }
    } else {
      result.push_back(x[d] - y[d]);
    }
  }
  return result;
}

std::vector<Poly> equal(const std::vector<Poly>& differences) {
  std::vector<Poly> facts;
  for (const Poly& d : differences) {
    facts.push_back(d);
    facts.push_back(-d);
  }
  return facts;
}

std::vector<Poly> with(std::vector<Poly> facts, const Poly& more) {
  facts.push_back(more);
  return facts;
}

// What two instances of stores write to.
struct Instances {
  const ir::Store& first;
  const ir::Store& second;
  Env here, there;
};

std::vector<Poly> coordinates(Terms& terms, const Instances& two) {
  std::vector<Poly> all;
  for (AxisId a : instance_axes(terms.program(), two.first)) all.push_back(terms.coordinate(a, two.here));
  for (AxisId a : instance_axes(terms.program(), two.second)) all.push_back(terms.coordinate(a, two.there));
  return all;
}

// A point where the facts hold and both instances store the same element, and that element.
std::optional<std::pair<Assignment, std::vector<std::int64_t>>> meeting(Terms& terms, const Instances& two,
                                                                        const std::vector<Poly>& facts) {
  const ir::Program& p = terms.program();
  std::vector<std::int64_t> met;
  const Confirm confirm = [&](const Evaluation& evaluation) {
    const std::optional<Point> here = evaluation.point(terms, instance_axes(p, two.first), two.here),
                               there = evaluation.point(terms, instance_axes(p, two.second), two.there);
    if (!here || !there || (&two.first == &two.second && here == there)) return false;
    const auto one = evaluation.element(two.first.tensor, two.first.index, *here),
               other = evaluation.element(two.second.tensor, two.second.index, *there);
    if (!one || one != other) return false;
    met = *one;
    return true;
  };
  auto w = find_witness(terms, {Poly(-1)}, coordinates(terms, two), {}, facts, confirm);
  return w ? std::optional(std::pair(std::move(*w), met)) : std::nullopt;
}

std::vector<Poly> load_facts(Terms& terms, const LoadSite& site) {
  const auto& l = std::get<ir::Load>(terms.program()[site.value].node);
  std::vector<Poly> facts = site.env.facts;
  const Place place = place_of(terms, l.tensor, l.index, site.env);
  for (std::size_t k = 0; k < place.index.size(); ++k) {
    facts.push_back(place.index[k]);
    facts.push_back(place.extents[k] - 1 - place.index[k]);
  }
  return facts;
}

std::string line(const Where& w) { return w.line ? fmt::format(" at line {}", w.line) : ""; }

}  // namespace

AxisSet instance_axes(const ir::Program& p, const ir::Store& store) {
  const ir::Value& v = p[store.value];
  AxisSet programs = p.program_axes;
  std::sort(programs.begin(), programs.end());
  AxisSet axes = ir::set_union(v.axes, ir::set_minus(programs, v.done));
  for (const ir::Index& i : store.index)
    for (ir::ValueId part : i) axes = ir::set_union(axes, p[part].axes);
  for (std::optional<ir::StreamId> s = store.stream; s; s = p[*s].parent) axes = ir::set_union(axes, {p[*s].piece});
  return axes;
}

void check_injective(Terms& terms, const ir::Store& store, std::vector<Refusal>& refusals) {
  const ir::Program& p = terms.program();
  const std::string access = ir::describe(p, store.tensor, store.index);
  const AxisSet axes = instance_axes(p, store);
  AxisSet named;
  for (const ir::Index& i : store.index)
    for (ir::ValueId part : i) named = ir::set_union(named, p[part].axes);
  if (const AxisSet missing = ir::set_minus(axes, named); !missing.empty()) {
    const std::string name = p[missing[0]].name;
    refusals.push_back({ErrorCode::store_conflict, store.where, fmt::format("every instance of {} would store {}", name, access),
                        fmt::format("sum(..., {}), or index {} with {}", name, p[store.tensor].name, name), ""});
    return;
  }
  const Env here;
  const Elimination elimination(terms, place_of(terms, store.tensor, store.index, here).index);
  Env there;
  there.copy = 1;
  AxisSet open;
  for (AxisId a : axes) {
    const Poly at = terms.coordinate(a, here);
    if (elimination.determines(*at.as_atom()))
      there.replaced[a] = at;
    else
      open.push_back(a);
  }
  const std::vector<Poly> same = equal(differences(terms, store.tensor, store.index, here, store.tensor, store.index, there));
  for (AxisId a : open) {
    const Poly second = terms.coordinate(a, there);
    const std::vector<Poly> apart = with(same, second - terms.coordinate(a, here) - 1);
    if (terms.proves(Poly(-1), apart)) continue;
    std::string message = fmt::format("{} is not proved to store each element of {} once", access, p[store.tensor].name);
    if (const auto found = meeting(terms, {store, store, here, there}, apart)) {
      const Poly first = terms.coordinate(a, here), second = terms.coordinate(a, there);
      message = fmt::format("{} stores one element of {} twice, for example at {} = {} and {} = {}", access, p[store.tensor].name,
                            p[a].name, evaluate(first, found->first), p[a].name, evaluate(second, found->first));
    }
    refusals.push_back({ErrorCode::store_conflict, store.where, message,
                        "index with the axes themselves, or declare the index tensor distinct", ""});
    return;
  }
}

void check_disjoint(Terms& terms, const ir::Store& first, const ir::Store& second, std::vector<Refusal>& refusals) {
  const ir::Program& p = terms.program();
  Env there;
  there.copy = 1;
  const std::vector<Poly> apart = differences(terms, first.tensor, first.index, {}, second.tensor, second.index, there);
  for (const Poly& d : apart)
    if (terms.nonnegative(d - 1) || terms.nonnegative(-d - 1)) return;
  const std::vector<Poly> same = equal(apart);
  if (terms.proves(Poly(-1), same)) return;
  const std::string both = fmt::format("{}{} and {}", ir::describe(p, first.tensor, first.index), line(first.where),
                                       ir::describe(p, second.tensor, second.index));
  std::string message = fmt::format("{} are not proved to store different elements of {}", both, p[first.tensor].name);
  if (const auto found = meeting(terms, {first, second, {}, there}, same))
    message = fmt::format("{} store the same element of {}, for example ({})", both, p[first.tensor].name,
                          fmt::join(found->second, ", "));
  refusals.push_back({ErrorCode::store_conflict, second.where, message, "store each element once", ""});
}

bool reads_other(Terms& terms, const LoadSite& site, const ir::Store& store) {
  Env there;
  there.copy = 1;
  const auto& l = std::get<ir::Load>(terms.program()[site.value].node);
  std::vector<Poly> facts = equal(differences(terms, l.tensor, l.index, site.env, store.tensor, store.index, there));
  for (const Poly& f : load_facts(terms, site)) facts.push_back(f);
  return terms.proves(Poly(-1), facts);
}

bool reads_own(Terms& terms, const LoadSite& site, const ir::Store& store, const AxisSet& axes) {
  Env here, there;
  there.copy = 1;
  const auto& l = std::get<ir::Load>(terms.program()[site.value].node);
  const std::vector<Poly> apart = differences(terms, l.tensor, index_of(terms, site), site.env, store.tensor, store.index, there);
  std::vector<Poly> facts = equal(apart);
  for (const Poly& f : load_facts(terms, site)) facts.push_back(f);
  for (AxisId a : axes) {
    const Poly mine = terms.coordinate(a, here), theirs = terms.coordinate(a, there);
    if (std::find(apart.begin(), apart.end(), mine - theirs) != apart.end()) continue;
    if (!terms.proves(Poly(-1), with(facts, mine - theirs - 1)) || !terms.proves(Poly(-1), with(facts, theirs - mine - 1)))
      return false;
  }
  return true;
}

bool reads_ahead(Terms& terms, const LoadSite& site, const ir::Store& store) {
  const ir::Program& p = terms.program();
  if (!store.stream || p[*store.stream].parent || !ir::contains(p[site.value].axes, p[*store.stream].piece)) return false;
  Env there;
  there.copy = 1;
  const auto& l = std::get<ir::Load>(p[site.value].node);
  std::vector<Poly> facts = equal(differences(terms, l.tensor, l.index, site.env, store.tensor, store.index, there));
  for (const Poly& f : load_facts(terms, site)) facts.push_back(f);
  const AxisId step = p[*store.stream].piece;
  return terms.proves(Poly(-1), with(facts, terms.coordinate(step, {}) - terms.coordinate(step, there)));
}

bool reads_ahead(const ir::Program& program, ir::ValueId load, const ir::Store& store) try {
  Terms terms(program);
  Env separate;
  separate.separate = true;
  const std::vector<LoadSite> loads = sites_of(terms, all_roots(program), separate).loads;
  return std::all_of(loads.begin(), loads.end(),
                     [&](const LoadSite& site) { return site.value != load || reads_ahead(terms, site, store); });
} catch (const TooLarge&) {
  return false;
}

// ---- covering --------------------------------------------------------------------------------------------------------

namespace {

// The extents whose product is how many elements a store writes, sorted, where its axes do not depend on each other.
std::optional<std::vector<Poly>> sides(Terms& terms, const ir::Store& store) {
  std::vector<Poly> all;
  for (AxisId a : instance_axes(terms.program(), store)) {
    const AxisId of = terms.program()[a].piece ? terms.program()[*terms.program()[a].piece].axis : a;
    if (!ir::range_axes(terms.program(), of).empty()) return std::nullopt;
    all.push_back(terms.extent(of));
  }
  std::sort(all.begin(), all.end());
  return all;
}

Poly product(const std::vector<Poly>& factors) {
  Poly p(1);
  for (const Poly& f : factors) p = p * f;
  return p;
}

// dims covered by the images of the index tuples, asked of isl: launch-level terms are parameters.
bool covered_by_isl(const Terms& terms, const std::vector<Poly>& dims, const std::vector<std::vector<Poly>>& tuples) {
  std::vector<Poly> all = dims;
  for (const std::vector<Poly>& t : tuples) all.insert(all.end(), t.begin(), t.end());
  all.insert(all.end(), terms.globals().begin(), terms.globals().end());
  const std::vector<AtomId> atoms = terms.closure(all);
  std::vector<Poly> facts = terms.globals();
  for (AtomId a : atoms) {
    if (terms[a].kind == AtomKind::load || terms[a].kind == AtomKind::opaque || terms[a].kind == AtomKind::choice) return false;
    facts.insert(facts.end(), terms[a].facts.begin(), terms[a].facts.end());
  }
  std::map<Monomial, std::size_t> names;
  auto name_all = [&](const Poly& p) {
    for (const auto& [m, c] : p.terms())
      if (!m.empty()) names.try_emplace(m, names.size());
  };
  for (const Poly& p : all) name_all(p);
  for (const Poly& p : facts) name_all(p);
  std::vector<std::string> parameters, locals;
  for (const auto& [m, k] : names) {
    const bool launch = std::all_of(
        m.begin(), m.end(), [&](AtomId a) { return terms[a].kind == AtomKind::extent || terms[a].kind == AtomKind::scalar; });
    // An image may only be made smaller: the facts about what is not a parameter have to define it.
    const bool defined =
        m.size() == 1 && (terms[m[0]].kind == AtomKind::coordinate ||
                          (terms[m[0]].kind == AtomKind::quotient && terms[m[0]].args[1].as_constant().value_or(0) > 0));
    if (!launch && !defined) return false;
    (launch ? parameters : locals).push_back(fmt::format("v{}", k));
  }
  std::vector<std::string> limits, fixed, element;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    element.push_back(fmt::format("e{}", d));
    limits.push_back(fmt::format("0 <= e{} < {}", d, affine_text(dims[d], names)));
  }
  auto speaks_of = [&](const Poly& f, const std::vector<std::string>& of) {
    return std::any_of(f.terms().begin(), f.terms().end(), [&](const auto& term) {
      return !term.first.empty() && std::find(of.begin(), of.end(), fmt::format("v{}", names.at(term.first))) != of.end();
    });
  };
  for (const auto& [m, k] : names)
    if (terms.nonnegative(m) && std::find(parameters.begin(), parameters.end(), fmt::format("v{}", k)) != parameters.end())
      fixed.push_back(fmt::format("v{} >= 0", k));
  for (const Poly& f : facts)
    if (!speaks_of(f, locals)) fixed.push_back(affine_text(f, names) + " >= 0");
  const std::string head = fmt::format("[{}] -> {{ [{}] : ", fmt::join(parameters, ","), fmt::join(element, ","));
  limits.insert(limits.end(), fixed.begin(), fixed.end());
  std::vector<std::string> parts;
  for (const std::vector<Poly>& t : tuples) {
    std::vector<std::string> holds;
    for (std::size_t d = 0; d < t.size(); ++d) holds.push_back(fmt::format("e{} = {}", d, affine_text(t[d], names)));
    // Only what this store's own coordinates are: another store's may not exist.
    for (AtomId a : terms.closure(t))
      for (const Poly& f : terms[a].facts) holds.push_back(affine_text(f, names) + " >= 0");
    const std::string body = fmt::format("{}", fmt::join(holds, " and "));
    parts.push_back(head + (locals.empty() ? body : fmt::format("exists ({} : {})", fmt::join(locals, ","), body)) + " }");
  }
  return isl_covered(head + fmt::format("{}", fmt::join(limits, " and ")) + " }", parts).value_or(false);
}

}  // namespace

void check_covered(Terms& terms, ir::TensorId tensor, std::vector<Refusal>& refusals) {
  const ir::Program& p = terms.program();
  const ir::Tensor& t = p[tensor];
  std::vector<const ir::Store*> stores;
  for (const ir::Store& s : p.stores)
    if (s.tensor == tensor) stores.push_back(&s);
  // Stores that are injective, disjoint and in bounds cover what has as many elements as they have instances.
  std::vector<Poly> dims;
  bool counted = true;
  std::vector<std::vector<Poly>> tuples;
  try {
    for (const ir::Dim& d : t.dims) dims.push_back(terms.extent(d));
    std::vector<Poly> extents = dims;
    std::sort(extents.begin(), extents.end());
    // Equal without a product, which may be too large to speak of.
    if (stores.size() == 1 && sides(terms, *stores[0]) == extents) return;
    Poly missing = product(dims);
    for (const ir::Store* s : stores) {
      const std::optional<std::vector<Poly>> written = sides(terms, *s);
      counted = counted && written;
      if (written) missing -= product(*written);
      tuples.push_back(element_of(terms, tensor, s->index, {}));
    }
    if (counted && missing.is_zero()) return;
    if (!stores.empty() && covered_by_isl(terms, dims, tuples)) return;
  } catch (const TooLarge&) {
  }
  std::string message = fmt::format("out {} is not proved to be stored completely", t.name);
  const bool complete = tuples.size() == stores.size();
  if (auto e = complete ? find_unreached(terms, dims, tuples) : std::nullopt)
    message = fmt::format("out {}: element ({}) is never stored", t.name, fmt::join(*e, ", "));
  refusals.push_back({ErrorCode::partial_out, stores.empty() ? t.where : stores.back()->where, message,
                      fmt::format("declare {} inout to keep what is there", t.name), ""});
}

void check_inout_reads(Terms& terms, ir::TensorId tensor, std::vector<Refusal>& refusals) {
  const ir::Program& p = terms.program();
  AxisSet programs = p.program_axes;
  std::sort(programs.begin(), programs.end());
  Env separate;
  separate.separate = true;
  for (const LoadSite& site : sites_of(terms, all_roots(p), separate).loads) {
    const auto& l = std::get<ir::Load>(p[site.value].node);
    if (l.tensor != tensor) continue;
    for (const ir::Store& s : p.stores) {
      if (s.tensor != tensor) continue;
      // The same index at the instance's own coordinates is the element that it stores: stores are injective, by proof or
      // `distinct`.
      if (l.index == s.index && site.env.replaced.empty() && site.env.bound.empty()) continue;
      const std::string read = ir::describe(p, l.tensor, l.index), stored = ir::describe(p, s.tensor, s.index) + line(s.where);
      if (!reads_own(terms, site, s, ir::set_minus(programs, p[s.value].done)) && !reads_other(terms, site, s)) {
        refusals.push_back(
            {ErrorCode::store_conflict, p[site.value].where,
             fmt::format("{} reads an element of {} that another instance stores with {}", read, p[tensor].name, stored),
             fmt::format("read {} where it is stored, or store into a separate out", p[tensor].name), ""});
        break;
      }
      // A later step of a stream would find what an earlier one stored.
      AxisSet steps;
      for (std::optional<ir::StreamId> stream = s.stream; stream; stream = p[*stream].parent)
        if (ir::contains(p[site.value].axes, p[*stream].piece)) steps = ir::set_union(steps, {p[*stream].piece});
      if (steps.empty() || reads_own(terms, site, s, steps) || reads_ahead(terms, site, s) || reads_other(terms, site, s))
        continue;
      refusals.push_back({ErrorCode::not_supported, p[site.value].where,
                          fmt::format("{} may read an element of {} that an earlier step of the stream over {} stores with {}",
                                      read, p[tensor].name, p[p[*s.stream].axis].name, stored),
                          "a step may read what it stores and what later steps store: carry the old value to the step that reads "
                          "it, or store into a separate out",
                          ""});
      break;
    }
  }
}

}  // namespace cosmati::prove
