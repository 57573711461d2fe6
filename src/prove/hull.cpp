// Bounds of a dependent range that hold for every instance: each atom that is not a launch-level one is replaced by its bound on
// the side that its sign asks for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "prove/prove.h"
#include "prove/terms.h"

namespace cosmati::prove {
namespace {

class Bounder {
 public:
  explicit Bounder(Terms& terms) : terms_(terms) {}

  // A launch-level polynomial that is >= p (above) or <= p.
  std::optional<Poly> bound(const Poly& p, bool above, int depth = 12) {
    if (depth == 0) return std::nullopt;
    std::optional<AtomId> chosen;
    for (AtomId a : p.atoms())
      if (!launch_level(a)) chosen = a;  // the last depends on the others
    if (!chosen) return p;
    // p = rest + scale * chosen, the sign of scale known.
    Poly scale, rest;
    for (const auto& [m, c] : p.terms()) {
      const std::optional<Monomial> other = divide(m, {*chosen});
      if (other)
        scale.add(*other, c);
      else
        rest.add(m, c);
    }
    if (scale.has(*chosen)) return std::nullopt;
    const bool positive = terms_.nonnegative(scale), negative = terms_.nonnegative(-scale);
    if (!positive && !negative) return std::nullopt;
    std::vector<Poly> found;
    for (const Poly& b : bounds(*chosen, above == positive))
      if (std::optional<Poly> r = bound(rest + scale * b, above, depth - 1)) found.push_back(*r);
    return tightest(found, above);
  }

 private:
  bool launch_level(AtomId a) const { return terms_[a].kind == AtomKind::extent || terms_[a].kind == AtomKind::scalar; }

  std::vector<Poly> bounds(AtomId a, bool above) {
    std::vector<Poly> result;
    const Atom atom = terms_[a];
    for (const Poly& f : atom.facts) {
      const std::int64_t c = f.coefficient({a});
      Poly rest = f - Poly(c) * Poly::atom(a);
      if (rest.has(a)) continue;
      if (above && c == -1) result.push_back(rest);
      if (!above && c == 1) result.push_back(-rest);
    }
    if (!above && atom.nonnegative) result.push_back(0);
    if (atom.kind == AtomKind::choice) {
      // The greatest of the alternatives, where one is always the greatest.
      for (const Alternative& x : atom.alternatives) {
        const bool extreme = std::all_of(atom.alternatives.begin(), atom.alternatives.end(), [&](const Alternative& y) {
          return terms_.proves(above ? x.value - y.value : y.value - x.value, y.facts);
        });
        if (extreme) result.push_back(x.value);
      }
    }
    return result;
  }

  std::optional<Poly> tightest(const std::vector<Poly>& found, bool above) {
    std::optional<Poly> best;
    for (const Poly& f : found)
      if (!best || terms_.nonnegative(above ? *best - f : f - *best)) best = f;
    return best;
  }

  Terms& terms_;
};

std::optional<ir::ValueId> node_of(const Terms& terms, const Atom& atom) {
  const ir::Program& p = terms.program();
  for (std::uint32_t k = 0; k < p.values.size(); ++k) {
    const auto* e = std::get_if<ir::Extent>(&p.values[k].node);
    const auto* s = std::get_if<ir::ScalarRef>(&p.values[k].node);
    if (atom.kind == AtomKind::extent && e && e->axis == atom.axis) return ir::ValueId{k};
    if (atom.kind == AtomKind::scalar && s && s->scalar == atom.scalar) return ir::ValueId{k};
  }
  return std::nullopt;
}

std::optional<Bound> as_bound(const Terms& terms, const Poly& p) {
  Bound bound;
  for (const auto& [m, c] : p.terms()) {
    LinearTerm term{c, {}};
    for (AtomId a : m) {
      const std::optional<ir::ValueId> node = node_of(terms, terms[a]);
      if (!node) return std::nullopt;
      term.factors.push_back(*node);
    }
    bound.push_back(std::move(term));
  }
  return bound;
}

}  // namespace

std::optional<Hull> hull(const ir::Program& program, ir::AxisId axis) {
  Terms terms(program);
  try {
    auto [lo, hi] = terms.range(axis, {});
    Bounder bounder(terms);
    const std::optional<Poly> low = bounder.bound(lo, false), high = bounder.bound(hi, true);
    if (!low || !high) return std::nullopt;
    std::optional<Bound> l = as_bound(terms, *low), h = as_bound(terms, *high);
    if (!l || !h) return std::nullopt;
    return Hull{*l, *h};
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

}  // namespace cosmati::prove
