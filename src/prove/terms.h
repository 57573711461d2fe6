// Index expressions as polynomials over atoms, each atom with the facts that hold wherever it has a value: a coordinate lies
// in the range of its axis, an integer load in its contract, a quotient between its multiples. Arithmetic is the
// language's, so a polynomial stands for a value only where nothing can wrap (`exact`), or modulo its type (`ring`).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <tuple>

#include "ir/program.h"
#include "prove/poly.h"

namespace cosmati::prove {

// Operations of an index below which only small expressions are told; walks recurse that deep, and proofs grow with it.
constexpr int max_nesting = 120;

enum class AtomKind : std::uint8_t { extent, coordinate, scalar, load, quotient, remainder, choice, opaque };

struct Alternative {
  std::vector<Poly> facts;  // each >= 0
  Poly value;
};

struct Atom {
  AtomKind kind;
  ir::AxisId axis;      // extent, coordinate
  ir::ScalarId scalar;  // scalar
  ir::TensorId tensor;  // load
  ir::ValueId value;    // load, opaque: the node
  std::uint32_t copy = 0;
  std::vector<Poly> args;                 // coordinate: lo, hi; load: the index; quotient, remainder: n, d; opaque: coordinates
  std::vector<Alternative> alternatives;  // choice: together they cover every case
  std::vector<Poly> facts;                // each >= 0
  bool nonnegative = false;
  bool wide = false;              // a 64-bit value that nothing bounds
  bool wrapped = false;           // opaque: because its arithmetic may wrap
  bool deep = false;              // opaque: because it lies below max_nesting operations
  bool divisor_positive = false;  // quotient, remainder
};

// Where an expression is evaluated: what replaced axes stand for, and what is known there.
struct Env {
  std::uint32_t copy = 0;  // instances of two copies are unrelated
  bool separate = false;   // inside a reduction its axes are not those of the same name outside
  std::map<ir::AxisId, Poly> replaced;
  std::map<ir::AxisId, std::uint32_t> bound;  // axes of enclosing reductions that need a name of their own
  std::vector<Poly> facts;
  auto operator<=>(const Env&) const = default;
};

class Terms {
 public:
  explicit Terms(const ir::Program& program);

  const ir::Program& program() const { return program_; }
  const Atom& operator[](AtomId a) const { return atoms_[a]; }

  Poly ring(ir::ValueId value, const Env& env);   // equal modulo the width of the value's type
  Poly exact(ir::ValueId value, const Env& env);  // equal; an opaque atom where wrapping is possible
  Poly coordinate(ir::AxisId axis, const Env& env);
  Poly extent(ir::AxisId axis);
  Poly extent(const ir::Factor& factor);
  Poly extent(const ir::Dim& dim);
  // The range of an axis: the streamed one for a piece, 0 .. extent where none is declared.
  std::pair<Poly, Poly> range(ir::AxisId axis, const Env& env);
  // What a condition says when it is `truth`: polynomials that are >= 0.
  std::vector<Poly> facts_of(ir::ValueId condition, bool truth, const Env& env);
  // The environment inside a reduction over `axes`, and inside a replacement.
  Env inside(const Env& env, const ir::AxisSet& axes);
  Env inside(const Env& env, const ir::Replace& replace);

  // p >= 0 wherever its atoms have values and `given` holds: short rules only.
  bool nonnegative(const Poly& p, const std::vector<Poly>& given = {});
  // The same with case distinctions, then isl.
  bool proves(const Poly& p, const std::vector<Poly>& given = {});

  // d >= 1 wherever the atoms of `context` have values.
  bool positive(const Poly& d, const std::vector<Poly>& context);

  bool nonnegative(const Monomial& m) const;
  // Atoms of `roots` and of everything their facts mention, ascending.
  std::vector<AtomId> closure(const std::vector<Poly>& roots) const;
  const std::vector<Poly>& globals() const { return globals_; }
  // Whether something below max_nesting operations takes part, of which nothing is known.
  bool reaches_too_deep(const std::vector<Poly>& roots) const;
  // The extents and integer scalars that decide whether a launch is possible: those of requires, contracts and dimensions.
  std::vector<Poly> launch_terms();

 private:
  using Cases = std::vector<std::vector<Poly>>;  // one of them holds
  using Key = std::tuple<AtomKind, std::uint32_t, std::uint32_t, std::vector<Poly>>;

  AtomId intern(Key key, Atom atom);
  Poly opaque(ir::ValueId value, const Env& env);
  Poly choice(std::vector<Alternative> alternatives);
  Poly select(ir::ValueId condition, const Poly& yes, const Poly& no, const Env& env);
  Cases cases_of(ir::ValueId condition, bool truth, const Env& env);
  Poly maximum(const Poly& a, const Poly& b);
  Poly minimum(const Poly& a, const Poly& b);
  Poly quotient(Poly n, const Poly& d);
  Poly remainder(const Poly& n, const Poly& d);
  AtomId divided(AtomKind kind, const Poly& n, const Poly& d);
  Poly normal(Poly p);
  Poly node(ir::ValueId value, const Env& env);
  Poly elementwise(ir::ValueId value, const ir::Elementwise& e, const Env& env);
  Poly load(ir::ValueId value, const ir::Load& l, const Env& env);
  Poly bits(ir::ValueId value, const ir::Elementwise& e, const Env& env);
  bool fits(const Poly& p, DType type);
  void type_facts(Atom& atom, AtomId id, DType type);
  std::vector<Poly> known(const std::vector<AtomId>& atoms, const std::vector<Poly>& given) const;
  bool split(const Poly& p, std::vector<Poly> facts, std::vector<AtomId> choices, int depth);
  bool infeasible(const std::vector<Poly>& facts, const std::vector<AtomId>& choices);

  const ir::Program& program_;
  std::vector<std::uint32_t> heights_;  // of each value: operations in a row below it
  std::vector<Atom> atoms_;
  std::map<Key, AtomId> interned_;
  std::map<std::tuple<ir::ValueId, Env>, Poly> memo_;
  std::map<Poly, bool> proved_;
  std::vector<Poly> globals_;
  std::map<std::pair<Env, ir::AxisSet>, Env> reductions_;
  std::uint32_t next_copy_ = 2;  // copies 0 and 1 are the instances of a question
  int depth_ = 0;
};

// p for isl, with monomial m called v<names[m]>.
std::string affine_text(const Poly& p, const std::map<Monomial, std::size_t>& names);

}  // namespace cosmati::prove
