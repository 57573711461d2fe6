// The search behind `follows`. A monomial is bad when it can make the sum negative: its coefficient is negative, or one of its
// atoms may be. Each step subtracts a non-negative multiple of a fact that removes the bad monomial whose atoms depend on most
// others; nothing is left to do when no monomial is bad.
// SPDX-License-Identifier: Apache-2.0
#include "prove/search.h"

#include <algorithm>
#include <numeric>

namespace cosmati::prove {
namespace {

// Short proofs first: depth and nodes of each try.
constexpr std::pair<int, int> tries[] = {{3, 150}, {6, 300}, {9, 500}};

class Search {
 public:
  Search(const Terms& terms, const std::vector<Poly>& facts, int nodes) : terms_(terms), facts_(facts), nodes_(nodes) {}

  bool run(Poly p, int depth) {
    if (--nodes_ < 0) return false;
    p = tightened(p);
    std::vector<Monomial> bad;
    for (const auto& [m, c] : p.terms())
      if (c < 0 || !terms_.nonnegative(m)) bad.push_back(m);
    if (bad.empty()) return true;
    if (depth == 0) return false;
    auto [it, fresh] = seen_.try_emplace(p, depth);
    if (!fresh) {
      if (it->second >= depth) return false;
      it->second = depth;
    }
    std::sort(bad.begin(), bad.end(), [](const Monomial& a, const Monomial& b) { return rank(a) > rank(b); });
    if (bad.size() > 2) bad.resize(2);
    for (const Monomial& m : bad) {
      if (by_quotient(p, m, depth)) return true;
      for (const bool constant : {false, true})
        for (const Poly& f : facts_)
          if (by_fact(p, m, f, constant, depth)) return true;
    }
    return false;
  }

 private:
  static std::pair<AtomId, std::size_t> rank(const Monomial& m) { return {m.empty() ? 0 : m.back() + 1, m.size()}; }

  // Divided by what all coefficients but the constant have in common, the constant rounded down.
  static Poly tightened(const Poly& p) {
    std::int64_t g = 0;
    for (const auto& [m, c] : p.terms())
      if (!m.empty()) g = std::gcd(g, c);
    if (g <= 1) return p;
    Poly r;
    for (const auto& [m, c] : p.terms()) r.add(m, m.empty() ? floor_div(c, g) : c / g);
    return r;
  }

  // q <= a exactly where n < d * (a + 1), and q >= a exactly where n >= d * a.
  bool by_quotient(const Poly& p, const Monomial& m, int depth) {
    if (m.size() != 1) return false;
    const Atom& q = terms_[m[0]];
    if (q.kind != AtomKind::quotient || !q.divisor_positive) return false;
    const std::int64_t c = p.coefficient(m);
    if (c != 1 && c != -1) return false;
    Poly rest = p - Poly(c) * Poly::atom(m[0]);
    if (rest.has(m[0])) return false;
    if (c == -1) return run(q.args[1] * (rest + 1) - 1 - q.args[0], depth - 1);
    return run(q.args[0] + q.args[1] * rest, depth - 1);
  }

  // Through the constant of a fact, scaled by m, only where that also uses up something that p has.
  bool by_fact(const Poly& p, const Monomial& m, const Poly& fact, bool constant, int depth) {
    const std::int64_t c = p.coefficient(m);
    for (const auto& [part, f] : fact.terms()) {
      if (part.empty() != constant || (f < 0) != (c < 0)) continue;
      std::optional<Monomial> rest = divide(m, part);
      if (!rest || !terms_.nonnegative(*rest)) continue;
      if (constant && !m.empty() && std::none_of(fact.terms().begin(), fact.terms().end(), [&](const auto& term) {
            return !term.first.empty() && term.second > 0 && p.coefficient(multiply(term.first, *rest)) > 0;
          }))
        continue;
      Poly factor;
      try {
        const std::int64_t g = std::gcd(c, f);
        factor.add(*rest, std::abs(c / g));
        if (run(Poly(std::abs(f / g)) * p - factor * fact, depth - 1)) return true;
      } catch (const TooLarge&) {
      }
    }
    return false;
  }

  const Terms& terms_;
  const std::vector<Poly>& facts_;
  std::map<Poly, int> seen_;
  int nodes_;
};

}  // namespace

bool follows(const Terms& terms, const Poly& p, const std::vector<Poly>& facts) {
  try {
    for (const auto& [depth, nodes] : tries)
      if (Search(terms, facts, nodes).run(p, depth)) return true;
  } catch (const TooLarge&) {
  }
  return false;
}

}  // namespace cosmati::prove
