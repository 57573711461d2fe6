// Random programs over the whole grammar, well typed by construction as far as axes and types go; what proofs refuse is left in,
// rarely.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <cosmati/dtype.h>

#include "fuzz/tree.h"

namespace cosmati::fuzz {

struct Generated {
  Tree tree;                           // a file whose last program is the one to run
  std::map<std::string, DType> types;  // of its type variables
  std::map<std::string, int> packs;
};

Generated generate(std::uint64_t seed);

// ---- inside
// ------------------------------------------------------------------------------------------------------------------------
using Mask = std::uint32_t;  // a set of axes, by number

// What an expression computes in: any float, i32 or i64, u32, bool.
enum class Class : unsigned char { real, integer, word, boolean };

struct Expr {
  Tree tree;
  Mask axes = 0, done = 0;
};

struct AxisInfo {
  std::string name;
  bool pack = false, program = false, region = false;
  int constant = 0;  // the extent, where it is one
  int within = -1;   // the axis of a dimension that every coordinate lies in
  Mask depends = 0;  // axes of its range
};
struct DimInfo {
  enum class Kind : unsigned char { axis, offset, composite, constant, pack } kind;
  int axis = -1, fast = -1;  // composite: (axis, fast)
  int number = 0;            // offset or constant
};
struct TensorInfo {
  std::string name, access, type;
  Class klass;
  std::vector<DimInfo> dims;
  Tree contract = Tree::form("");
  int gathers = -1;  // every element lies in the extent of this axis
};
struct ValueInfo {
  std::string name;
  Class klass;
  Mask axes, done;
  bool scalar;  // known at launch
};
struct FunctionInfo {  // a def or a user's reducer
  std::string name;
  int values, axes;  // how many of each it takes
  int results;
  bool left = false;        // only correct in order
  bool coordinate = false;  // the second value is a coordinate
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 77) {}
  Generated run();

 private:
  struct Scope {
    Mask allowed, finished;  // axes a value may have, and program axes that are reduced away
  };

  // ---- chance ----
  int below(int n) { return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  std::string pick(std::initializer_list<const char*> from) { return from.begin()[below(static_cast<int>(from.size()))]; }
  std::vector<int> axes_of(Mask mask) const;
  int pick_axis(Mask mask);
  std::string fresh(const std::string& wish);
  std::string some_name(std::initializer_list<const char*> wishes) { return fresh(pick(wishes)); }

  // ---- declarations (generator.cpp) ----
  void make_axes();
  void make_scalars();
  void make_functions();
  void bind_axes();
  Tree parameter(const TensorInfo& tensor);
  std::string dim_text(const DimInfo& dim) const;
  int input(Class klass, Mask allowed);
  int gather(int axis, Mask allowed);
  std::string type_of(Class klass);
  Mask mask_of(const std::vector<DimInfo>& dims) const;
  Mask launch_axes() const;
  std::string name_of(int axis) const { return axes_[static_cast<std::size_t>(axis)].name; }

  // ---- statements (statements.cpp) ----
  void statements();
  void region_axis();
  void let(Tree& into, Scope scope);
  void stream();
  void store(Tree& into, int kind);
  std::vector<Tree> tile_body(Tree& body, int axis, Scope scope, std::vector<std::string>& states, std::vector<Tree>& merges);
  Expr finished_value(Class klass, Scope scope, int depth);
  Tree cast_to_store(Class klass, const std::string& type, Expr value);

  // ---- expressions (expressions.cpp) ----
  Expr gen(Class klass, Scope scope, int depth);
  Expr atom(Class klass, Scope scope);
  Expr literal(Class klass);
  Expr real(Scope scope, int depth);
  Expr integer(Scope scope, int depth);
  Expr word(Scope scope, int depth);
  Expr boolean(Scope scope, int depth);
  Expr with_axes(Class klass, Expr value, Mask axes);  // made to have these axes
  Expr coordinate(Class klass, int axis);

  // ---- what the language adds to arithmetic (forms.cpp) ----
  Expr reduction(Class klass, Scope scope, int depth);
  Mask reducible(Scope scope) const;
  Expr user_reduction(Scope scope, int depth);
  Expr defined(Scope scope, int depth);
  Expr replacement(Class klass, Scope scope, int depth);
  Expr access(const TensorInfo& tensor, Scope scope);
  struct Place {
    Tree tree;
    Mask axes;
    bool safe;  // inside the extent
  };
  Place place_in(int axis, Scope scope);
  Place place_in(const DimInfo& dim, Scope scope);

  Expr join(const char* text, std::vector<Expr> parts);

  std::mt19937_64 random_;
  std::vector<AxisInfo> axes_;
  std::vector<TensorInfo> tensors_;
  std::vector<ValueInfo> values_;
  std::vector<FunctionInfo> defs_, reducers_;
  std::map<std::string, int> names_;
  Tree params_ = Tree::list(", "), head_ = Tree::list("\n"), body_ = Tree::list("\n"), files_ = Tree::list("\n");
  bool has_float_variable_ = false, has_int_variable_ = false;
  Mask streamed_ = 0;   // the axis of the stream whose body is being made: a single point, or one piece
  bool quiet_ = false;  // no new inputs: inside defs
  int inputs_ = 0;
};

}  // namespace cosmati::fuzz
