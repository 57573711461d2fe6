// Arithmetic that would overflow gives no sum.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/sums.h"

#include <algorithm>
#include <iterator>

#include "support/overloaded.h"

namespace cosmati::kernel {

using ops::Op;
using support::overloaded;

namespace {

constexpr std::size_t most_terms = 32;

}  // namespace

std::pair<Sum, std::int64_t> parted(Sum sum) {
  const auto constant = sum.find({});
  if (constant == sum.end()) return {std::move(sum), 0};
  const std::int64_t value = constant->second;
  sum.erase(constant);
  return {std::move(sum), value};
}

Sums::Sums(const Kernel& k, bool others) : k_(k), others_(others), meaning_(k.vars.size()) {
  for (const Phase& p : k.phases) learn(p.body);
}

void Sums::learn(const Block& block) {
  for (StmtId s : block)
    std::visit(overloaded{[&](const Let& let) { meaning_[let.var.index] = let.value; }, [&](const For& f) { learn(f.body); },
                          [&](const If& i) {
                            learn(i.then);
                            learn(i.otherwise);
                          },
                          [](const auto&) {}},
               k_[s].node);
}

ExprId Sums::resolved(ExprId e) const {
  for (;;) {
    const auto* v = std::get_if<VarRef>(&k_[e].node);
    if (!v || !meaning_[v->var.index]) return e;
    e = *meaning_[v->var.index];
  }
}

std::optional<Sum> Sums::operator()(ExprId e) const {
  e = resolved(e);
  if (k_[e].dtype != DType::i64_) return std::nullopt;
  using What = Leaf::What;
  const auto leaf = [](What what, std::uint32_t index) { return std::optional(Sum{{{Leaf{what, index}}, 1}}); };
  return std::visit(overloaded{[&](const Const& c) { return std::optional(c.i == 0 ? Sum{} : Sum{{{}, c.i}}); },
                               [&](const Id& i) {
                                 if (i.what == Id::What::worker) return others_ ? leaf(What::other, e.index) : std::nullopt;
                                 return leaf(i.what == Id::What::group ? What::group : What::lane, 0);
                               },
                               [&](const ParamRef& p) { return leaf(What::param, p.param.index); },
                               [&](const VarRef& v) { return leaf(What::var, v.var.index); },
                               [&](const Apply& a) {
                                 if (const auto known = known_.find(e); known != known_.end()) return known->second;
                                 std::optional<Sum> sum = of(a);
                                 if (!sum && others_) sum = leaf(What::other, e.index);
                                 return known_[e] = std::move(sum);
                               },
                               [&](const auto&) { return others_ ? leaf(What::other, e.index) : std::nullopt; }},
                    k_[e].node);
}

std::optional<Sum> Sums::of(const Apply& a) const {
  if (a.op != Op::add && a.op != Op::sub && a.op != Op::mul) return std::nullopt;
  const auto x = (*this)(a.args[0]), y = (*this)(a.args[1]);
  if (!x || !y || x->size() * y->size() > most_terms) return std::nullopt;
  Sum result;
  if (a.op == Op::mul) {
    for (const auto& [p, m] : *x)
      for (const auto& [q, n] : *y) {
        std::vector<Leaf> both;
        std::merge(p.begin(), p.end(), q.begin(), q.end(), std::back_inserter(both));
        std::int64_t product = 0, &sum = result[both];
        if (__builtin_mul_overflow(m, n, &product) || __builtin_add_overflow(sum, product, &sum)) return std::nullopt;
      }
  } else {
    result = *x;
    for (const auto& [q, n] : *y) {
      std::int64_t& sum = result[q];
      if (a.op == Op::add ? __builtin_add_overflow(sum, n, &sum) : __builtin_sub_overflow(sum, n, &sum)) return std::nullopt;
    }
  }
  std::erase_if(result, [](const auto& term) { return term.second == 0; });
  return result;
}

}  // namespace cosmati::kernel
