// From tile IR to polynomials: what each node of an index expression is, and the facts that come with it.
// SPDX-License-Identifier: Apache-2.0
#include "prove/terms.h"

#include <algorithm>
#include <limits>

#include "prove/search.h"
#include "support/overloaded.h"

namespace cosmati::prove {

using ir::AxisId;
using ir::ValueId;
using ops::Op;

namespace {
constexpr std::uint32_t small_height = 8;
constexpr std::size_t max_cases = 4;  // of one condition

struct Nesting {
  explicit Nesting(int& depth) : depth(depth) { ++depth; }
  ~Nesting() { --depth; }
  int& depth;
};

std::optional<int> log2_exact(std::int64_t v) {
  for (int k = 0; k < 62; ++k)
    if (v == std::int64_t{1} << k) return k;
  return std::nullopt;
}
}  // namespace

Terms::Terms(const ir::Program& program) : program_(program) {
  for (const ir::Value& v : program.values) {
    std::uint32_t height = 0;
    auto above = [&](ValueId o) {
      if (o && o.index < heights_.size()) height = std::max(height, heights_[o.index] + 1);
    };
    for (ValueId o : ir::operands(v.node)) above(o);
    if (const auto* c = std::get_if<ir::Coord>(&v.node)) {
      const ir::Axis& a = program[c->axis];
      const ir::Axis& ranged = a.piece ? program[program[*a.piece].axis] : a;
      if (ranged.lo) above(*ranged.lo);
      if (ranged.hi) above(*ranged.hi);
    }
    heights_.push_back(height);
  }
  // A negative extent cannot be bound: `n - 1` in a dim says that n >= 1.
  for (const ir::Tensor& t : program.tensors)
    for (const ir::Dim& d : t.dims)
      for (const ir::Factor& f : d)
        if (f.axis && f.offset < 0) globals_.push_back(extent(f));
  const std::vector<Poly> dims = globals_;
  // Twice: what one require says of a divisor may stand below the require that divides by it.
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<Poly> facts = dims;
    for (const auto& [condition, where] : program.requires_) {
      const std::vector<Poly> more = facts_of(condition, true, {});
      facts.insert(facts.end(), more.begin(), more.end());
      if (pass == 0) globals_ = facts;
    }
    globals_ = std::move(facts);
    if (pass == 0)
      std::erase_if(interned_, [](const auto& entry) {
        const AtomKind kind = std::get<0>(entry.first);
        return kind == AtomKind::quotient || kind == AtomKind::remainder || kind == AtomKind::choice;
      });
    proved_.clear();
    memo_.clear();
  }
}

AtomId Terms::intern(Key key, Atom atom) {
  auto [it, fresh] = interned_.try_emplace(std::move(key), static_cast<AtomId>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(atom));
  return it->second;
}

std::vector<Poly> Terms::launch_terms() {
  std::vector<Poly> terms;
  std::vector<ValueId> work;
  for (const auto& [condition, where] : program_.requires_) work.push_back(condition);
  for (const ir::Tensor& t : program_.tensors) {
    if (t.contract.lo) work.push_back(*t.contract.lo);
    if (t.contract.hi) work.push_back(*t.contract.hi);
  }
  std::vector<bool> seen(program_.values.size());
  std::vector<bool> axes(program_.axes.size());
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (seen[v.index]) continue;
    seen[v.index] = true;
    if (const auto* e = std::get_if<ir::Extent>(&program_[v].node)) axes[e->axis.index] = true;
    if (std::holds_alternative<ir::ScalarRef>(program_[v].node) && is_int(program_[v].dtype)) terms.push_back(ring(v, {}));
    for (ValueId o : ir::operands(program_[v].node)) work.push_back(o);
  }
  for (const ir::Tensor& t : program_.tensors)
    if (t.contract.lo || t.contract.hi)
      for (const ir::Dim& d : t.dims)
        for (const ir::Factor& f : d)
          if (f.axis) axes[f.axis.index] = true;
  for (std::uint32_t a = 0; a < axes.size(); ++a)
    if (axes[a]) terms.push_back(extent(AxisId{a}));
  return terms;
}

// ---- leaves ----------------------------------------------------------------------------------------------------------

Poly Terms::extent(AxisId axis) {
  const ir::Axis& a = program_[axis];
  if (a.piece) return extent(program_[*a.piece].axis);
  if (a.lo || a.hi) {
    auto [lo, hi] = range(axis, {});
    return maximum(0, hi - lo);
  }
  Atom atom{.kind = AtomKind::extent, .axis = axis};
  atom.nonnegative = true;
  return Poly::atom(intern({AtomKind::extent, axis.index, 0, {}}, std::move(atom)));
}

Poly Terms::extent(const ir::Factor& f) { return f.axis ? extent(f.axis) + f.offset : Poly(f.offset); }

Poly Terms::extent(const ir::Dim& dim) {
  Poly p(1);
  for (const ir::Factor& f : dim) p = p * extent(f);
  return normal(p);
}

std::pair<Poly, Poly> Terms::range(AxisId axis, const Env& env) {
  const ir::Axis& a = program_[axis];
  if (a.piece) return range(program_[*a.piece].axis, env);
  if (!a.lo && !a.hi) return {0, extent(axis)};
  return {a.lo ? exact(*a.lo, env) : Poly(0), exact(*a.hi, env)};
}

Poly Terms::coordinate(AxisId axis, const Env& env) {
  if (auto it = env.replaced.find(axis); it != env.replaced.end()) return it->second;
  const auto bound = env.bound.find(axis);
  const std::uint32_t copy = bound == env.bound.end() ? env.copy : bound->second;
  auto [lo, hi] = range(axis, env);
  Atom atom{.kind = AtomKind::coordinate, .axis = axis, .copy = copy, .args = {lo, hi}};
  atom.nonnegative = nonnegative(lo);
  const AtomId id = intern({AtomKind::coordinate, axis.index, copy, {lo, hi}}, atom);
  if (atoms_[id].facts.empty()) atoms_[id].facts = {Poly::atom(id) - lo, hi - 1 - Poly::atom(id)};
  return Poly::atom(id);
}

void Terms::type_facts(Atom& atom, AtomId id, DType type) {
  const Poly self = Poly::atom(id);
  const int width = 8 * byte_size(type);
  if (is_bool(type)) {
    atom.nonnegative = true;
    atom.facts.push_back(1 - self);
  } else if (!is_signed(type)) {
    atom.nonnegative = true;
    if (width < 32) atom.facts.push_back((std::int64_t{1} << width) - 1 - self);
  } else if (width < 32) {
    atom.facts.push_back((std::int64_t{1} << (width - 1)) - 1 - self);
    atom.facts.push_back((std::int64_t{1} << (width - 1)) + self);
  }
}

Poly Terms::opaque(ValueId value, const Env& env) {
  const ir::Value& v = program_[value];
  std::vector<Poly> args;
  for (AxisId a : v.axes) args.push_back(coordinate(a, env));
  Atom atom{.kind = AtomKind::opaque, .value = value, .copy = env.copy, .args = args};
  const AtomId id = intern({AtomKind::opaque, value.index, env.copy, args}, atom);
  if (!atoms_[id].facts.empty() || atoms_[id].nonnegative || atoms_[id].wide) return Poly::atom(id);
  atom = atoms_[id];
  type_facts(atom, id, v.dtype);
  atom.wide = v.dtype == DType::i64_;
  // argmin and argmax: -1 for nothing, else a coordinate of the reduced axis.
  const ir::Node* node = &v.node;
  if (const auto* part = std::get_if<ir::Part>(node))
    if (const auto* of = std::get_if<ValueId>(&part->of)) node = &program_[*of].node;
  const auto* reduce = std::get_if<ir::Reduce>(node);
  if (reduce && program_[reduce->reducer].builtin && program_[reduce->reducer].index && reduce->axes.size() == 1) {
    auto [lo, hi] = range(reduce->axes[0], inside(env, reduce->axes));
    if (nonnegative(lo) && nonnegative(hi)) {
      atom.facts.push_back(Poly::atom(id) + 1);
      atom.facts.push_back(hi - 1 - Poly::atom(id));
      atom.wide = false;
    }
  }
  atoms_[id] = std::move(atom);
  return Poly::atom(id);
}

Poly Terms::load(ValueId value, const ir::Load& l, const Env& env) {
  const ir::Tensor& t = program_[l.tensor];
  std::vector<Poly> args;
  for (std::size_t d = 0; d < l.index.size(); ++d) {
    Poly linear;
    for (std::size_t f = 0; f < l.index[d].size(); ++f) {
      const Poly weight = l.index[d].size() > 1 ? extent(t.dims[d][f]) : Poly(1);
      linear = linear * weight + exact(l.index[d][f], env);
    }
    args.push_back(normal(linear));
  }
  const ir::Contract& c = t.contract;
  const std::optional<Poly> lo = c.lo ? std::optional(exact(*c.lo, {})) : std::nullopt;
  const std::optional<Poly> hi = c.hi ? std::optional(exact(*c.hi, {})) : std::nullopt;
  Atom atom{.kind = AtomKind::load, .tensor = l.tensor, .value = value, .args = args};
  const AtomId next = static_cast<AtomId>(atoms_.size());
  // What the contract says of an element holds where the element is read: of a load with `else` only in that case, since the
  // indices may be outside.
  const bool guarded = l.otherwise.has_value();
  const AtomId id = intern({AtomKind::load, l.tensor.index, guarded ? 1u : 0u, args}, atom);
  const Poly self = Poly::atom(id);
  if (guarded) {
    if (id == next) {
      type_facts(atom, id, t.dtype);
      atom.wide = t.dtype == DType::i64_ && !(lo && hi);
      atoms_[id] = atom;
    }
    std::vector<Poly> read;
    if (lo) read.push_back(self - *lo);
    if (hi) read.push_back(*hi - 1 - self);
    return choice({{std::move(read), self}, {{}, exact(*l.otherwise, env)}});
  }
  if (id == next) {
    type_facts(atom, id, t.dtype);
    if (lo) {
      atom.facts.push_back(self - *lo);
      atom.nonnegative |= nonnegative(*lo);
    }
    if (hi) atom.facts.push_back(*hi - 1 - self);
    atom.wide = t.dtype == DType::i64_ && !(lo && hi);
    atoms_[id] = atom;
    if (c.sorted && !args.empty()) {
      // Two elements of one row keep the order of their indices. A fact may only speak of coordinates that its atom has.
      const std::vector<AtomId> mine = closure({self});
      for (AtomId other = 0; other < id; ++other) {
        if (atoms_[other].kind != AtomKind::load || atoms_[other].tensor != l.tensor) continue;
        if (!std::equal(args.begin(), args.end() - 1, atoms_[other].args.begin())) continue;
        const Poly ahead = args.back() - atoms_[other].args.back();
        std::optional<Poly> fact;
        if (nonnegative(ahead))
          fact = self - Poly::atom(other);
        else if (nonnegative(-ahead))
          fact = Poly::atom(other) - self;
        if (!fact) continue;
        const std::vector<AtomId> theirs = closure({Poly::atom(other)});
        if (std::includes(mine.begin(), mine.end(), theirs.begin(), theirs.end() - 1)) atoms_[id].facts.push_back(*fact);
        if (std::includes(theirs.begin(), theirs.end(), mine.begin(), mine.end() - 1)) atoms_[other].facts.push_back(*fact);
      }
    }
  }
  return self;
}

// ---- cases -----------------------------------------------------------------------------------------------------------

Poly Terms::choice(std::vector<Alternative> alternatives) {
  std::vector<Poly> key;
  for (const Alternative& a : alternatives) {
    key.push_back(static_cast<std::int64_t>(a.facts.size()));
    key.insert(key.end(), a.facts.begin(), a.facts.end());
    key.push_back(a.value);
  }
  Atom atom{.kind = AtomKind::choice, .alternatives = alternatives};
  atom.nonnegative =
      std::all_of(alternatives.begin(), alternatives.end(), [&](const Alternative& a) { return nonnegative(a.value, a.facts); });
  return Poly::atom(intern({AtomKind::choice, 0, 0, std::move(key)}, std::move(atom)));
}

Poly Terms::select(ValueId condition, const Poly& yes, const Poly& no, const Env& env) {
  std::vector<Alternative> alternatives;
  for (std::vector<Poly>& facts : cases_of(condition, true, env)) alternatives.push_back({std::move(facts), yes});
  for (std::vector<Poly>& facts : cases_of(condition, false, env)) alternatives.push_back({std::move(facts), no});
  return choice(std::move(alternatives));
}

Poly Terms::maximum(const Poly& a, const Poly& b) {
  if (nonnegative(a - b)) return a;
  if (nonnegative(b - a)) return b;
  const Poly p = choice({{{a - b}, a}, {{b - a}, b}});
  Atom& atom = atoms_[*p.as_atom()];
  if (atom.facts.empty()) atom.facts = {p - a, p - b};
  atom.nonnegative |= nonnegative(a) || nonnegative(b);
  return p;
}

Poly Terms::minimum(const Poly& a, const Poly& b) {
  if (nonnegative(a - b)) return b;
  if (nonnegative(b - a)) return a;
  const Poly p = choice({{{b - a}, a}, {{a - b}, b}});
  Atom& atom = atoms_[*p.as_atom()];
  if (atom.facts.empty()) atom.facts = {a - p, b - p};
  return p;
}

// ---- division --------------------------------------------------------------------------------------------------------

bool Terms::positive(const Poly& d, const std::vector<Poly>& context) {
  if (nonnegative(d - 1)) return true;
  std::vector<Poly> roots = context;
  roots.push_back(d);
  roots.insert(roots.end(), globals_.begin(), globals_.end());
  const std::vector<Poly> facts = known(closure(roots), {});
  if (follows(*this, d - 1, facts)) return true;
  // A product is not 0 when assuming so of each factor contradicts the facts.
  if (d.terms().size() != 1 || d.terms().begin()->second < 0) return false;
  for (AtomId a : d.atoms()) {
    if (!atoms_[a].nonnegative) return false;
    std::vector<Poly> without;
    for (const Poly& f : facts) without.push_back(f.substitute(a, 0));
    if (!follows(*this, Poly(-1), without)) return false;
  }
  return true;
}

AtomId Terms::divided(AtomKind kind, const Poly& n, const Poly& d) {
  Atom atom{.kind = kind, .args = {n, d}};
  const AtomId next = static_cast<AtomId>(atoms_.size());
  const AtomId id = intern({kind, 0, 0, {n, d}}, atom);
  if (id != next) return id;
  const Poly self = Poly::atom(id);
  // The existence of n is the existence of the coordinates it mentions; the same facts tell that d is not 0.
  atom.divisor_positive = positive(d, {n});
  const bool n_nonnegative = nonnegative(n), d_nonnegative = atom.divisor_positive || nonnegative(d);
  if (kind == AtomKind::quotient) {
    atom.nonnegative = n_nonnegative && d_nonnegative;
    if (atom.divisor_positive) atom.facts = {n - d * self, d * self + d - 1 - n};
    if (atom.nonnegative) atom.facts.push_back(n - self);
  } else {
    atom.nonnegative = d_nonnegative;
    if (atom.divisor_positive)
      atom.facts = {d - 1 - self};
    else if (d_nonnegative)
      atom.facts = {d - self};  // x % 0 is 0
    if (n_nonnegative && d_nonnegative) atom.facts.push_back(n - self);
  }
  const bool is_quotient = kind == AtomKind::quotient;
  const auto other = interned_.find({is_quotient ? AtomKind::remainder : AtomKind::quotient, 0, 0, {n, d}});
  if (other != interned_.end() && atom.divisor_positive) {
    const Poly q = is_quotient ? self : Poly::atom(other->second), r = is_quotient ? Poly::atom(other->second) : self;
    atom.facts.push_back(n - d * q - r);
    atom.facts.push_back(d * q + r - n);
  }
  atoms_[id] = std::move(atom);
  return id;
}

// n = d * a + r with the part of n that d divides taken out.
static std::pair<Poly, Poly> pull_out(const Poly& n, const Poly& d) {
  if (d.terms().size() != 1) return {Poly(), n};
  const auto& [dm, dc] = *d.terms().begin();
  Poly a, r;
  for (const auto& [m, c] : n.terms()) {
    const std::optional<Monomial> rest = divide(m, dm);
    const std::int64_t whole = rest && dc > 0 ? floor_div(c, dc) : 0;
    if (rest && dc > 0 && (c % dc == 0 || (dm.empty() && m.empty()))) {
      a.add(*rest, whole);
      r.add(m, c - whole * dc);
    } else {
      r.add(m, c);
    }
  }
  return {a, r};
}

Poly Terms::quotient(Poly n, const Poly& d) {
  if (d == Poly(1)) return n;
  if (d.is_zero()) return 0;
  if (!positive(d, {n})) return Poly::atom(divided(AtomKind::quotient, n, d));
  auto [a, r] = pull_out(n, d);
  if (nonnegative(r) && nonnegative(d - 1 - r)) return a;
  return a + Poly::atom(divided(AtomKind::quotient, r, d));
}

Poly Terms::remainder(const Poly& n, const Poly& d) {
  if (d == Poly(1) || d.is_zero()) return 0;
  if (!positive(d, {n})) return Poly::atom(divided(AtomKind::remainder, n, d));
  const Poly r = pull_out(n, d).second;
  if (nonnegative(r) && nonnegative(d - 1 - r)) return r;
  return Poly::atom(divided(AtomKind::remainder, r, d));
}

// d * (n // d) is n - n % d.
Poly Terms::normal(Poly p) {
  for (int round = 0; round < 8; ++round) {
    bool changed = false;
    for (const auto& [m, c] : p.terms()) {
      for (AtomId a : m) {
        if (atoms_[a].kind != AtomKind::quotient || !atoms_[a].divisor_positive) continue;
        const Poly n = atoms_[a].args[0], d = atoms_[a].args[1];
        if (d.terms().size() != 1) continue;
        const auto& [dm, dc] = *d.terms().begin();
        const std::optional<Monomial> rest = divide(m, multiply(dm, {a}));
        if (!rest || c % dc != 0) continue;
        Poly factor, old;
        factor.add(*rest, c / dc);
        old.add(m, c);
        p = p - old + factor * (n - Poly::atom(divided(AtomKind::remainder, n, d)));
        changed = true;
        break;
      }
      if (changed) break;
    }
    if (!changed) break;
  }
  return p;
}

// ---- expressions -----------------------------------------------------------------------------------------------------

bool Terms::fits(const Poly& p, DType type) {
  if (type == DType::i64_) {
    std::vector<Poly> work{p};
    bool wide = false;
    for (std::size_t i = 0; i < work.size() && i < 64; ++i) {
      for (AtomId a : Poly(work[i]).atoms()) {
        wide |= atoms_[a].wide;
        if (atoms_[a].kind == AtomKind::quotient || atoms_[a].kind == AtomKind::remainder)
          work.insert(work.end(), atoms_[a].args.begin(), atoms_[a].args.end());
        if (atoms_[a].kind == AtomKind::choice)
          for (const Alternative& x : atoms_[a].alternatives) work.push_back(x.value);
      }
    }
    if (!wide || p.as_atom()) return true;
  } else if (std::optional<AtomId> id = p.as_atom()) {
    const Atom& a = atoms_[*id];
    if (a.kind == AtomKind::scalar && program_[a.scalar].dtype == type) return true;
    if ((a.kind == AtomKind::opaque || a.kind == AtomKind::load) && program_[a.value].dtype == type) return true;
    if (a.kind == AtomKind::choice) {
      const std::vector<Alternative> alternatives = a.alternatives;
      return std::all_of(alternatives.begin(), alternatives.end(), [&](const Alternative& x) { return fits(x.value, type); });
    }
  }
  const int width = std::min(8 * byte_size(type), 62);  // a bound of 64 bits leaves room for the constants of p
  const std::int64_t lo = is_signed(type) ? -(std::int64_t{1} << (width - 1)) : 0;
  const std::int64_t hi = is_signed(type) ? -(lo + 1) : (std::int64_t{1} << width) - 1;
  // 32-bit index arithmetic is for extents that 32 bits can say.
  std::vector<Poly> given;
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  for (AtomId a : closure({p})) {
    const Atom& atom = atoms_[a];
    const bool small = (atom.kind == AtomKind::scalar && program_[atom.scalar].dtype == DType::i32_) ||
                       (atom.kind == AtomKind::load && program_[atom.tensor].dtype == DType::i32_) ||
                       (atom.kind == AtomKind::opaque && program_[atom.value].dtype == DType::i32_);
    if (small || atom.kind == AtomKind::extent) given.push_back(limit - Poly::atom(a));
    if (small) given.push_back(limit + 1 + Poly::atom(a));
  }
  try {
    return nonnegative(p - lo, given) && nonnegative(hi - p, given);
  } catch (const TooLarge&) {
    return false;
  }
}

Poly Terms::ring(ValueId value, const Env& env) {
  auto key = std::tuple(value, env);
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  Poly p;
  Nesting nesting(depth_);
  // What is small is told wherever it stands: a bound that a clamp names says the same below many others.
  if (depth_ > max_nesting && heights_[value.index] > small_height) {
    const Poly q = opaque(value, env);
    atoms_[*q.as_atom()].deep = true;
    return q;
  }
  try {
    p = normal(node(value, env));
  } catch (const TooLarge&) {
    p = opaque(value, env);
  }
  memo_.emplace(std::move(key), p);
  return p;
}

Poly Terms::exact(ValueId value, const Env& env) {
  const Poly p = ring(value, env);
  if (fits(p, program_[value].dtype)) return p;
  const Poly q = opaque(value, env);
  // What is not known of an operand is no word about this operation.
  (reaches_too_deep({p}) ? atoms_[*q.as_atom()].deep : atoms_[*q.as_atom()].wrapped) = true;
  return q;
}

bool Terms::reaches_too_deep(const std::vector<Poly>& roots) const {
  const std::vector<AtomId> all = closure(roots);
  return std::any_of(all.begin(), all.end(), [&](AtomId a) { return atoms_[a].deep; });
}

Poly Terms::node(ValueId value, const Env& env) {
  const ir::Value& v = program_[value];
  if (is_float(v.dtype)) return opaque(value, env);
  return std::visit(support::overloaded{
                        [&](const ir::Const& c) { return Poly(c.i); },
                        [&](const ir::Coord& c) { return coordinate(c.axis, env); },
                        [&](const ir::Extent& e) { return extent(e.axis); },
                        [&](const ir::ScalarRef& s) {
                          Atom atom{.kind = AtomKind::scalar, .scalar = s.scalar};
                          const AtomId next = static_cast<AtomId>(atoms_.size());
                          const AtomId id = intern({AtomKind::scalar, s.scalar.index, 0, {}}, atom);
                          if (id == next) {
                            type_facts(atom, id, v.dtype);
                            atom.wide = v.dtype == DType::i64_;
                            atoms_[id] = atom;
                          }
                          return Poly::atom(id);
                        },
                        [&](const ir::Load& l) { return is_bool(v.dtype) ? opaque(value, env) : load(value, l, env); },
                        [&](const ir::Elementwise& e) { return elementwise(value, e, env); },
                        [&](const ir::Replace& r) {
                          const Poly p = exact(r.of, inside(env, r));
                          return r.otherwise ? choice({{{}, p}, {{}, exact(*r.otherwise, env)}}) : p;
                        },
                        [&](const auto&) { return opaque(value, env); },
                    },
                    v.node);
}

Poly Terms::elementwise(ValueId value, const ir::Elementwise& e, const Env& env) {
  const ir::Value& v = program_[value];
  auto arg = [&](std::size_t k) { return exact(e.args[k], env); };
  // Atoms are numbered as they are met: by the order of the arguments, not by that in which a compiler evaluates them.
  if (is_int(v.dtype) && e.op != Op::cast)
    for (ValueId a : e.args)
      if (is_int(program_[a].dtype)) ring(a, env);
  switch (e.op) {
    case Op::neg:
      return -ring(e.args[0], env);
    case Op::add:
      return ring(e.args[0], env) + ring(e.args[1], env);
    case Op::sub:
      return ring(e.args[0], env) - ring(e.args[1], env);
    case Op::mul:
      return ring(e.args[0], env) * ring(e.args[1], env);
    case Op::floordiv:
      return quotient(arg(0), arg(1));
    case Op::mod:
      return remainder(arg(0), arg(1));
    case Op::minimum:
    case Op::minimum_num:
      return minimum(arg(0), arg(1));
    case Op::maximum:
    case Op::maximum_num:
      return maximum(arg(0), arg(1));
    case Op::clamp:
      return minimum(maximum(arg(0), arg(1)), arg(2));
    case Op::abs:
      return fits(-arg(0), v.dtype) ? maximum(arg(0), -arg(0)) : opaque(value, env);
    case Op::sign:
      return choice({{{arg(0) - 1}, 1}, {{arg(0), -arg(0)}, 0}, {{-1 - arg(0)}, -1}});
    case Op::where:
      return select(e.args[0], arg(1), arg(2), env);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shift_left:
    case Op::shift_right:
      return is_bool(v.dtype) ? opaque(value, env) : bits(value, e, env);
    case Op::cast: {
      const DType from = program_[e.args[0]].dtype;
      if (is_bool(v.dtype) || is_float(from)) return opaque(value, env);
      if (is_bool(from)) return select(e.args[0], 1, 0, env);
      return byte_size(v.dtype) <= byte_size(from) ? ring(e.args[0], env) : arg(0);
    }
    default:
      return opaque(value, env);
  }
}

Poly Terms::bits(ValueId value, const ir::Elementwise& e, const Env& env) {
  const Poly a = exact(e.args[0], env), b = exact(e.args[1], env);
  const std::optional<std::int64_t> ka = a.as_constant(), kb = b.as_constant();
  const int width = 8 * byte_size(program_[value].dtype);
  if (e.op == Op::shift_left || e.op == Op::shift_right) {
    if (!kb || *kb < 0 || *kb >= std::min(width, 62)) return opaque(value, env);
    const Poly factor(std::int64_t{1} << *kb);
    return e.op == Op::shift_left ? ring(e.args[0], env) * factor : quotient(a, factor);
  }
  if (e.op == Op::bit_and) {
    if (kb && *kb >= 0 && log2_exact(*kb + 1)) return remainder(a, *kb + 1);
    if (ka && *ka >= 0 && log2_exact(*ka + 1)) return remainder(b, *ka + 1);
  }
  const Poly p = opaque(value, env);
  Atom atom = atoms_[*p.as_atom()];
  const std::size_t had = atom.facts.size();
  const bool a_ok = nonnegative(a), b_ok = nonnegative(b);
  if (e.op == Op::bit_and) {
    atom.nonnegative |= a_ok || b_ok;
    if (a_ok) atom.facts.push_back(a - p);
    if (b_ok) atom.facts.push_back(b - p);
  } else if (a_ok && b_ok) {
    atom.nonnegative = true;
    atom.facts.push_back(a + b - p);
    for (int k = 1; k < 32; ++k) {
      const Poly top((std::int64_t{1} << k) - 1);
      if (!nonnegative(top - a) || !nonnegative(top - b)) continue;
      atom.facts.push_back(top - p);
      break;
    }
  }
  if (atom.facts.size() > had || atom.nonnegative) {
    std::sort(atom.facts.begin(), atom.facts.end());
    atom.facts.erase(std::unique(atom.facts.begin(), atom.facts.end()), atom.facts.end());
    atom.wide = atom.wide && atom.facts.empty();
    atoms_[*p.as_atom()] = std::move(atom);
  }
  return p;
}

std::vector<Poly> Terms::facts_of(ValueId condition, bool truth, const Env& env) {
  Cases cases = cases_of(condition, truth, env);
  return cases.size() == 1 ? std::move(cases[0]) : std::vector<Poly>{};
}

Terms::Cases Terms::cases_of(ValueId condition, bool truth, const Env& env) {
  const Cases unknown{{}};
  Nesting nesting(depth_);
  if (depth_ > max_nesting) return unknown;
  const auto* e = std::get_if<ir::Elementwise>(&program_[condition].node);
  if (!e) return unknown;
  auto either = [&] {
    Cases cases = cases_of(e->args[0], truth, env), more = cases_of(e->args[1], truth, env);
    cases.insert(cases.end(), more.begin(), more.end());
    return cases.size() > max_cases ? unknown : cases;
  };
  auto both = [&] {
    Cases cases;
    const Cases left = cases_of(e->args[0], truth, env), right = cases_of(e->args[1], truth, env);
    for (const std::vector<Poly>& x : left) {
      for (const std::vector<Poly>& y : right) {
        cases.push_back(x);
        cases.back().insert(cases.back().end(), y.begin(), y.end());
      }
    }
    return cases.size() > max_cases ? unknown : cases;
  };
  switch (e->op) {
    case Op::logical_not:
      return cases_of(e->args[0], !truth, env);
    case Op::logical_and:
      return truth ? both() : either();
    case Op::logical_or:
      return truth ? either() : both();
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      break;
    default:
      return unknown;
  }
  if (!is_int(program_[e->args[0]].dtype)) return unknown;
  try {
    const Poly x = exact(e->args[0], env), below = exact(e->args[1], env) - x;
    switch (e->op) {
      case Op::lt:
        return {{truth ? below - 1 : -below}};
      case Op::le:
        return {{truth ? below : -below - 1}};
      case Op::gt:
        return {{truth ? -below - 1 : below}};
      case Op::ge:
        return {{truth ? -below : below - 1}};
      default:
        break;
    }
    if ((e->op == Op::eq) == truth) return {{below, -below}};
    if (nonnegative(below)) return {{below - 1}};
    if (nonnegative(-below)) return {{-below - 1}};
    return {{below - 1}, {-below - 1}};
  } catch (const TooLarge&) {
    return unknown;
  }
}

// ---- environments ----------------------------------------------------------------------------------------------------

Env Terms::inside(const Env& env, const ir::AxisSet& axes) {
  if (env.replaced.empty() && !env.separate) return env;
  // What replaced axes stand for may mention a coordinate of the same axis outside: the inner one gets its own name. The part
  // that an instance has in a reduction over a program axis is at its own coordinate.
  auto [it, fresh] = reductions_.try_emplace(std::pair(env, axes), env);
  if (fresh) {
    for (AxisId a : axes) {
      it->second.replaced.erase(a);
      if (!program_[a].program || !env.replaced.empty()) it->second.bound[a] = next_copy_++;
    }
  }
  return it->second;
}

Env Terms::inside(const Env& env, const ir::Replace& replace) {
  Env e = env;
  for (const auto& [axis, by] : replace.binds) {
    e.replaced[axis] = exact(by, env);
    e.bound.erase(axis);
  }
  if (replace.otherwise) {
    for (const auto& [axis, by] : replace.binds) {
      auto [lo, hi] = range(axis, e);
      e.facts.push_back(e.replaced[axis] - lo);
      e.facts.push_back(hi - 1 - e.replaced[axis]);
    }
  }
  return e;
}

}  // namespace cosmati::prove
