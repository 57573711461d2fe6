// Questions about polynomials: the facts that apply, the short rules, case distinctions, and isl when they do not suffice.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "prove/isl.h"
#include "prove/search.h"
#include "prove/terms.h"

namespace cosmati::prove {
namespace {
constexpr int max_cases = 5;              // choices resolved one after another
constexpr std::size_t max_unknowns = 40;  // of a question to isl
constexpr std::size_t max_facts = 120;
}  // namespace

std::string affine_text(const Poly& p, const std::map<Monomial, std::size_t>& names) {
  std::string s = fmt::format("{}", p.constant());
  for (const auto& [m, c] : p.terms())
    if (!m.empty()) s += fmt::format(" + {} v{}", c, names.at(m));
  return s;
}

bool Terms::nonnegative(const Monomial& m) const {
  return std::all_of(m.begin(), m.end(), [&](AtomId a) { return atoms_[a].nonnegative; });
}

std::vector<AtomId> Terms::closure(const std::vector<Poly>& roots) const {
  std::set<AtomId> all;
  std::vector<AtomId> work;
  auto reach = [&](const Poly& p) {
    for (AtomId a : p.atoms())
      if (all.insert(a).second) work.push_back(a);
  };
  for (const Poly& p : roots) reach(p);
  while (!work.empty()) {
    const AtomId a = work.back();
    work.pop_back();
    for (const Poly& p : atoms_[a].facts) reach(p);
    for (const Poly& p : atoms_[a].args) reach(p);
    for (const Alternative& x : atoms_[a].alternatives) {
      reach(x.value);
      for (const Poly& p : x.facts) reach(p);
    }
  }
  return {all.begin(), all.end()};
}

std::vector<Poly> Terms::known(const std::vector<AtomId>& atoms, const std::vector<Poly>& given) const {
  std::vector<Poly> facts = given;
  facts.insert(facts.end(), globals_.begin(), globals_.end());
  for (auto a = atoms.rbegin(); a != atoms.rend(); ++a)
    facts.insert(facts.end(), atoms_[*a].facts.begin(), atoms_[*a].facts.end());
  std::set<Poly> seen;
  std::erase_if(facts, [&](const Poly& f) {
    const bool trivial = std::all_of(f.terms().begin(), f.terms().end(),
                                     [&](const auto& term) { return term.second > 0 && nonnegative(term.first); });
    return trivial || !seen.insert(f).second;
  });
  return facts;
}

bool Terms::nonnegative(const Poly& p, const std::vector<Poly>& given) {
  if (const std::optional<std::int64_t> c = p.as_constant(); c && given.empty()) return *c >= 0;
  if (given.empty())
    if (auto it = proved_.find(p); it != proved_.end()) return it->second;
  std::vector<Poly> roots = given;
  roots.push_back(p);
  roots.insert(roots.end(), globals_.begin(), globals_.end());
  const bool yes = follows(*this, p, known(closure(roots), given));
  if (given.empty()) proved_.emplace(p, yes);
  return yes;
}

bool Terms::split(const Poly& p, std::vector<Poly> facts, std::vector<AtomId> choices, int depth) {
  if (follows(*this, p, facts)) return true;
  if (choices.empty() || depth == 0) return false;
  const AtomId chosen = choices.back();
  choices.pop_back();
  for (const Alternative& a : std::vector<Alternative>(atoms_[chosen].alternatives)) {
    std::vector<Poly> here = a.facts;
    const Poly self = Poly::atom(chosen);
    here.push_back(self - a.value);
    here.push_back(a.value - self);
    for (const Poly& f : facts) here.push_back(f.substitute(chosen, a.value));
    if (!split(p.substitute(chosen, a.value), std::move(here), choices, depth - 1)) return false;
  }
  return true;
}

bool Terms::infeasible(const std::vector<Poly>& facts, const std::vector<AtomId>& choices) {
  std::map<Monomial, std::size_t> names;
  auto name_all = [&](const Poly& p) {
    for (const auto& [m, c] : p.terms())
      if (!m.empty()) names.try_emplace(m, names.size());
  };
  for (const Poly& f : facts) name_all(f);
  for (AtomId c : choices) {
    names.try_emplace(Monomial{c}, names.size());
    for (const Alternative& a : atoms_[c].alternatives) {
      name_all(a.value);
      for (const Poly& f : a.facts) name_all(f);
    }
  }
  if (names.size() > max_unknowns || facts.size() > max_facts || names.empty()) return false;
  auto affine = [&](const Poly& p) { return affine_text(p, names); };
  std::vector<std::string> constraints;
  for (const Poly& f : facts) constraints.push_back(affine(f) + " >= 0");
  for (const auto& [m, k] : names) {
    if (nonnegative(m)) constraints.push_back(fmt::format("v{} >= 0", k));
    // A fact times a non-negative atom, where every product is spoken of already.
    if (m.size() < 2) continue;
    for (AtomId a : std::set<AtomId>(m.begin(), m.end())) {
      if (!atoms_[a].nonnegative || constraints.size() > 2 * max_facts) continue;
      for (const Poly& f : facts) {
        Poly product;
        try {
          product = f * Poly::atom(a);
        } catch (const TooLarge&) {
          continue;
        }
        const bool spoken = std::all_of(product.terms().begin(), product.terms().end(),
                                        [&](const auto& term) { return term.first.empty() || names.count(term.first); });
        if (spoken) constraints.push_back(affine(product) + " >= 0");
      }
    }
  }
  for (AtomId c : choices) {
    std::vector<std::string> cases;
    for (const Alternative& a : atoms_[c].alternatives) {
      std::vector<std::string> parts{affine(Poly::atom(c) - a.value) + " = 0"};
      for (const Poly& f : a.facts) parts.push_back(affine(f) + " >= 0");
      cases.push_back(fmt::format("({})", fmt::join(parts, " and ")));
    }
    constraints.push_back(fmt::format("({})", fmt::join(cases, " or ")));
  }
  std::vector<std::string> unknowns;
  for (std::size_t k = 0; k < names.size(); ++k) unknowns.push_back(fmt::format("v{}", k));
  return isl_empty(fmt::format("{{ [{}] : {} }}", fmt::join(unknowns, ","), fmt::join(constraints, " and "))).value_or(false);
}

bool Terms::proves(const Poly& p, const std::vector<Poly>& given) {
  if (nonnegative(p, given)) return true;
  std::vector<Poly> roots = given;
  roots.push_back(p);
  roots.insert(roots.end(), globals_.begin(), globals_.end());
  const std::vector<AtomId> atoms = closure(roots);
  std::vector<Poly> facts = known(atoms, given);
  std::vector<AtomId> choices;
  for (AtomId a : atoms)
    if (atoms_[a].kind == AtomKind::choice) choices.push_back(a);
  try {
    if (!choices.empty() && split(p, facts, choices, max_cases)) return true;
    facts.push_back(-p - 1);
    return infeasible(facts, choices);
  } catch (const TooLarge&) {
    return false;
  }
}

}  // namespace cosmati::prove
