// Backtracking over the atoms of a question: extents and scalars are fixed for one attempt, coordinates run through their range,
// loaded values take the ends of their contract, everything else is computed. A witness satisfies every fact, and what the
// program computes there confirms it. SPDX-License-Identifier: Apache-2.0
#include "prove/witness.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "ir/describe.h"

namespace cosmati::prove {
namespace {

constexpr int attempts = 60;
constexpr int max_nodes = 4000;  // of one attempt
constexpr std::int64_t distinct_sizes[] = {5, 7, 6, 4, 3, 8, 2, 9, 10, 11};
constexpr std::int64_t scalar_values[] = {1, 2, 0, -1, 3, 8, -7, 1000};

class Finder {
 public:
  // Runs through the points of `roots`; extents and scalars of `fixed` have values too.
  Finder(Terms& terms, std::vector<Poly> roots, std::vector<Poly> fixed, const std::vector<Poly>& given) : terms_(terms) {
    for (const Poly& p : terms.launch_terms()) fixed.push_back(p);
    facts_ = given;
    facts_.insert(facts_.end(), terms.globals().begin(), terms.globals().end());
    roots.insert(roots.end(), facts_.begin(), facts_.end());
    fixed.insert(fixed.end(), roots.begin(), roots.end());
    for (AtomId a : terms.closure(fixed))
      if (terms[a].kind == AtomKind::extent || terms[a].kind == AtomKind::scalar) fixed_.push_back(a);
    std::sort(fixed_.begin(), fixed_.end(), [&](AtomId a, AtomId b) {
      return std::tuple(terms[a].kind, terms[a].axis, a) < std::tuple(terms[b].kind, terms[b].axis, b);
    });
    for (AtomId a : terms.closure(roots)) {
      facts_.insert(facts_.end(), terms[a].facts.begin(), terms[a].facts.end());
      place(a);
    }
  }

  // Calls `at` for each point of one choice of extents and scalars until it returns true.
  bool run(int attempt, const std::function<bool(const Assignment&)>& at) {
    values_.clear();
    nodes_ = max_nodes;
    at_ = &at;
    std::size_t sizes = 0, scalars = 0;
    std::uint64_t random = 12345 + 977 * static_cast<std::uint64_t>(attempt);
    for (AtomId a : fixed_) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const auto r = static_cast<std::int64_t>(random >> 33);
      if (terms_[a].kind == AtomKind::extent)
        values_[a] = attempt < 8 ? distinct_sizes[sizes++ % std::size(distinct_sizes)] : attempt < 12 ? attempt - 7 : r % 6;
      else
        values_[a] = scalar_values[(attempt < 8 ? static_cast<std::size_t>(attempt) + scalars++ : static_cast<std::size_t>(r)) %
                                   std::size(scalar_values)];
    }
    return Evaluation(terms_, values_).possible() && visit(0);
  }

  std::optional<std::int64_t> value(const Poly& p) const {
    std::int64_t sum = 0;
    for (const auto& [m, c] : p.terms()) {
      std::int64_t product = c;
      for (AtomId a : m) {
        auto it = values_.find(a);
        if (it == values_.end()) return std::nullopt;
        product = checked_mul(product, it->second);
      }
      sum = checked_add(sum, product);
    }
    return sum;
  }
  bool exhausted() const { return nodes_ < 0; }
  bool reads_data() const { return reads_data_; }

 private:
  // Appends `a` after what its value is computed from.
  void place(AtomId a) {
    if (!placed_.insert(a).second) return;
    const Atom& atom = terms_[a];
    if (atom.kind == AtomKind::extent || atom.kind == AtomKind::scalar) return;
    auto first = [&](const Poly& p) {
      for (AtomId b : p.atoms()) place(b);
    };
    for (const Poly& p : atom.args) first(p);
    if (atom.kind == AtomKind::opaque)  // they mention its operands
      for (const Poly& p : atom.facts) first(p);
    for (const Alternative& x : atom.alternatives) {
      first(x.value);
      for (const Poly& p : x.facts) first(p);
    }
    order_.push_back(a);
  }

  // The ends that linear facts give to an atom, where they can be computed.
  std::vector<std::int64_t> ends(AtomId a) {
    std::optional<std::int64_t> lo, hi;
    for (const Poly& f : terms_[a].facts) {
      const std::int64_t c = f.coefficient({a});
      const Poly rest = f - Poly(c) * Poly::atom(a);
      if ((c != 1 && c != -1) || rest.has(a)) continue;
      const std::optional<std::int64_t> r = value(rest);
      constexpr std::int64_t limit = std::int64_t{1} << 60;
      if (!r || *r > limit || *r < -limit) continue;
      if (c == 1) lo = std::max(lo.value_or(-*r), -*r);
      if (c == -1) hi = std::min(hi.value_or(*r), *r);
    }
    if (terms_[a].nonnegative) lo = std::max<std::int64_t>(lo.value_or(0), 0);
    std::vector<std::int64_t> result{hi.value_or(lo.value_or(0) + 1000), lo.value_or(hi.value_or(0) - 1000)};
    if (result[0] < result[1]) result.clear();
    return result;
  }

  bool visit(std::size_t k) {
    if (--nodes_ < 0) return false;
    if (k == order_.size()) return complete();
    const AtomId a = order_[k];
    const Atom& atom = terms_[a];
    auto with = [&](std::int64_t v) {
      values_[a] = v;
      if (visit(k + 1)) return true;
      values_.erase(a);
      return false;
    };
    switch (atom.kind) {
      case AtomKind::coordinate: {
        const std::optional<std::int64_t> lo = value(atom.args[0]), hi = value(atom.args[1]);
        if (!lo || !hi) return false;
        for (std::int64_t v = *lo; v < *hi && nodes_ >= 0; ++v)
          if (with(v)) return true;
        return false;
      }
      case AtomKind::quotient:
      case AtomKind::remainder: {
        const std::optional<std::int64_t> n = value(atom.args[0]), d = value(atom.args[1]);
        if (!n || !d || *d < 0) return false;
        if (*d == 0) return with(0);
        const std::int64_t q = floor_div(*n, *d);
        return with(atom.kind == AtomKind::quotient ? q : *n - q * *d);
      }
      case AtomKind::choice:
        for (const Alternative& x : atom.alternatives) {
          const bool holds =
              std::all_of(x.facts.begin(), x.facts.end(), [&](const Poly& f) { return value(f).value_or(-1) >= 0; });
          const std::optional<std::int64_t> v = value(x.value);
          if (holds && v && with(*v)) return true;
        }
        return false;
      default:
        if (const std::optional<std::int64_t> v = Evaluation(terms_, values_).value_of(a)) return with(*v);
        reads_data_ = true;
        for (std::int64_t v : ends(a))
          if (with(v)) return true;
        return false;
    }
  }

  bool complete() {
    for (const Poly& f : facts_)
      if (value(f).value_or(-1) < 0) return false;
    return (*at_)(values_);
  }

  Terms& terms_;
  const std::function<bool(const Assignment&)>* at_ = nullptr;
  std::vector<Poly> facts_;
  std::vector<AtomId> fixed_, order_;
  std::set<AtomId> placed_;
  Assignment values_;
  int nodes_ = 0;
  bool reads_data_ = false;
};

}  // namespace

std::optional<Assignment> find_witness(Terms& terms, const std::vector<Poly>& violated, const std::vector<Poly>& point,
                                       const std::vector<Poly>& shape, const std::vector<Poly>& given, const Confirm& confirm) {
  std::optional<Assignment> found;
  try {
    std::vector<Poly> roots = violated;
    roots.insert(roots.end(), point.begin(), point.end());
    Finder finder(terms, roots, shape, given);
    for (int attempt = 0; attempt < attempts && !found; ++attempt) {
      finder.run(attempt, [&](const Assignment& values) {
        if (std::none_of(violated.begin(), violated.end(), [&](const Poly& p) { return evaluate(p, values) < 0; })) return false;
        const Evaluation evaluation(terms, values);
        if (evaluation.possible() && confirm(evaluation)) found = values;
        return found.has_value();
      });
    }
  } catch (const TooLarge&) {
  }
  return found;
}

std::optional<std::vector<std::int64_t>> find_unreached(Terms& terms, const std::vector<Poly>& dims,
                                                        const std::vector<std::vector<Poly>>& tuples) {
  constexpr std::int64_t max_elements = 4000;
  std::vector<Poly> all = dims;
  for (const std::vector<Poly>& t : tuples) all.insert(all.end(), t.begin(), t.end());
  try {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      std::set<std::vector<std::int64_t>> reached;
      bool complete = true;
      for (const std::vector<Poly>& t : tuples) {
        Finder finder(terms, t, all, {});
        finder.run(attempt, [&](const Assignment& point) {
          std::vector<std::int64_t> element;
          for (const Poly& p : t) element.push_back(evaluate(p, point));
          reached.insert(element);
          return false;
        });
        if (finder.reads_data()) return std::nullopt;
        complete &= !finder.exhausted();
      }
      if (!complete) continue;
      std::vector<std::int64_t> sizes, element(dims.size(), 0);
      Finder whole(terms, {}, all, {});
      std::int64_t count = 1;
      whole.run(attempt, [&](const Assignment& point) {
        for (const Poly& d : dims) {
          std::int64_t size = 1;
          try {
            size = evaluate(d, point);
          } catch (const std::out_of_range&) {
            size = -1;
          }
          sizes.push_back(size);
          count = size < 0 ? -1 : count * std::min<std::int64_t>(size, max_elements);
          if (count < 0 || count > max_elements) break;
        }
        return true;
      });
      if (sizes.size() != dims.size() || count <= 0 || count > max_elements) continue;
      for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t rest = k;
        for (std::size_t d = dims.size(); d-- > 0;) {
          element[d] = rest % sizes[d];
          rest /= sizes[d];
        }
        if (!reached.count(element)) return element;
      }
    }
  } catch (const TooLarge&) {
  }
  return std::nullopt;
}

std::string describe_point(const Terms& terms, const Assignment& values, const std::vector<Poly>& of) {
  const ir::Program& program = terms.program();
  std::vector<std::string> coordinates, rest;
  std::set<std::string> named;
  const Evaluation evaluation(terms, values);
  for (AtomId a : terms.closure(of)) {
    const Atom& atom = terms[a];
    auto it = values.find(a);
    if (it == values.end() || !evaluation.certain(a)) continue;
    std::string name;
    if (atom.kind == AtomKind::coordinate) name = program[atom.axis].name;
    if (atom.kind == AtomKind::scalar) name = program[atom.scalar].name;
    if (atom.kind == AtomKind::load || atom.kind == AtomKind::opaque) name = ir::describe(program, atom.value);
    if (name.empty() || !named.insert(name).second) continue;
    (atom.kind == AtomKind::coordinate ? coordinates : rest).push_back(fmt::format("{} = {}", name, it->second));
  }
  coordinates.insert(coordinates.end(), rest.begin(), rest.end());
  return fmt::format("{}", fmt::join(coordinates, ", "));
}

}  // namespace cosmati::prove
