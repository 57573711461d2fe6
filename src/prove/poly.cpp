// Arithmetic of integer polynomials.
// SPDX-License-Identifier: Apache-2.0
#include "prove/poly.h"

#include <algorithm>
#include <set>

namespace cosmati::prove {
namespace {
constexpr std::size_t max_terms = 64;
constexpr std::size_t max_degree = 10;
constexpr std::int64_t max_coefficient = std::int64_t{1} << 62;  // so that negation and gcd are safe

std::int64_t limited(std::int64_t c) {
  if (c > max_coefficient || c < -max_coefficient) throw TooLarge{};
  return c;
}
}  // namespace

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw TooLarge{};
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw TooLarge{};
  return r;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  Monomial rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

Monomial multiply(const Monomial& a, const Monomial& b) {
  Monomial m;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(m));
  return m;
}

void Poly::add(const Monomial& monomial, std::int64_t coefficient) {
  if (coefficient == 0) return;
  if (monomial.size() > max_degree) throw TooLarge{};
  auto [it, fresh] = terms_.try_emplace(monomial, limited(coefficient));
  if (fresh) {
    if (terms_.size() > max_terms) throw TooLarge{};
    return;
  }
  it->second = limited(checked_add(it->second, coefficient));
  if (it->second == 0) terms_.erase(it);
}

std::int64_t Poly::coefficient(const Monomial& monomial) const {
  auto it = terms_.find(monomial);
  return it == terms_.end() ? 0 : it->second;
}

std::optional<std::int64_t> Poly::as_constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::optional<AtomId> Poly::as_atom() const {
  if (terms_.size() == 1 && terms_.begin()->first.size() == 1 && terms_.begin()->second == 1) return terms_.begin()->first[0];
  return std::nullopt;
}

bool Poly::has(AtomId a) const {
  for (const auto& [m, c] : terms_)
    if (std::binary_search(m.begin(), m.end(), a)) return true;
  return false;
}

std::vector<AtomId> Poly::atoms() const {
  std::set<AtomId> all;
  for (const auto& [m, c] : terms_) all.insert(m.begin(), m.end());
  return {all.begin(), all.end()};
}

Poly Poly::substitute(AtomId a, const Poly& by) const {
  Poly result;
  for (const auto& [m, c] : terms_) {
    Monomial rest;
    Poly product(c);
    for (AtomId x : m) {
      if (x == a)
        product = product * by;
      else
        rest.push_back(x);
    }
    for (const auto& [n, d] : product.terms_) result.add(multiply(n, rest), d);
  }
  return result;
}

Poly& Poly::operator+=(const Poly& o) {
  if (&o == this) return *this = *this * Poly(2);
  for (const auto& [m, c] : o.terms_) add(m, c);
  return *this;
}

Poly& Poly::operator-=(const Poly& o) {
  if (&o == this) return *this = Poly();
  for (const auto& [m, c] : o.terms_) add(m, checked_mul(c, -1));
  return *this;
}

Poly operator*(const Poly& a, const Poly& b) {
  Poly r;
  for (const auto& [m, c] : a.terms_)
    for (const auto& [n, d] : b.terms_) r.add(multiply(m, n), checked_mul(c, d));
  return r;
}

}  // namespace cosmati::prove
