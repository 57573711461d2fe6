// Integer polynomials over numbered atoms: the form in which index expressions, extents and bounds are compared.
// Coefficients are checked 64-bit integers; whatever does not fit, or grows too large, throws TooLarge, and the caller then
// knows nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace cosmati::prove {

using AtomId = std::uint32_t;
using Monomial = std::vector<AtomId>;  // sorted, with repetitions; empty: the constant

struct TooLarge {};

class Poly {
 public:
  Poly() = default;
  Poly(std::int64_t constant) { add({}, constant); }
  static Poly atom(AtomId a) {
    Poly p;
    p.add({a}, 1);
    return p;
  }

  const std::map<Monomial, std::int64_t>& terms() const { return terms_; }
  void add(const Monomial& monomial, std::int64_t coefficient);
  std::int64_t coefficient(const Monomial& monomial) const;
  std::int64_t constant() const { return coefficient({}); }
  bool is_zero() const { return terms_.empty(); }
  std::optional<std::int64_t> as_constant() const;
  std::optional<AtomId> as_atom() const;  // exactly one atom with coefficient 1
  bool has(AtomId a) const;
  // The atoms, ascending.
  std::vector<AtomId> atoms() const;
  Poly substitute(AtomId a, const Poly& by) const;

  Poly& operator+=(const Poly& o);
  Poly& operator-=(const Poly& o);
  friend Poly operator+(Poly a, const Poly& b) { return a += b; }
  friend Poly operator-(Poly a, const Poly& b) { return a -= b; }
  friend Poly operator*(const Poly& a, const Poly& b);
  friend Poly operator-(const Poly& a) { return Poly() - a; }
  bool operator==(const Poly&) const = default;
  auto operator<=>(const Poly&) const = default;

 private:
  std::map<Monomial, std::int64_t> terms_;
};

std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_mul(std::int64_t a, std::int64_t b);
// Rounded down; b > 0.
std::int64_t floor_div(std::int64_t a, std::int64_t b);
// a / b where b divides a as a multiset.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b);
Monomial multiply(const Monomial& a, const Monomial& b);

}  // namespace cosmati::prove
