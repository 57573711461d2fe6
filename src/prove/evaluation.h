// What a program computes at one point, in the arithmetic of its own types: a counterexample is told only when this has computed
// it, since the polynomials it was found with may say less than the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>

#include "prove/terms.h"

namespace cosmati::prove {

using Assignment = std::map<AtomId, std::int64_t>;
using Point = std::map<ir::AxisId, std::int64_t>;

std::int64_t evaluate(const Poly& p, const Assignment& values);

class Evaluation {
 public:
  // The values chosen for extents, scalars and data are taken over; what they are computed from is computed again.
  Evaluation(const Terms& terms, const Assignment& values);

  // Whether a launch can have these extents and scalars (every require holds, every contract has room for its elements), and
  // whether the chosen data keep their contracts and agree with each other and with what is computed. Unknown is no.
  bool possible() const;

  // Whether the atom has the value that was chosen for it: it was computed, or data decide it; of a load, that it reads.
  bool certain(AtomId a) const;

  // Nothing where it depends on what no value was chosen for, on floats, or on too much.
  std::optional<std::int64_t> value(ir::ValueId v, const Point& at) const;
  std::optional<std::int64_t> poly(const Poly& p) const;
  // The value of an opaque atom that can be computed.
  std::optional<std::int64_t> value_of(AtomId opaque) const;
  // Coordinates of axes in an environment; nothing where one is not known for certain.
  std::optional<Point> point(Terms& terms, const ir::AxisSet& axes, const Env& env) const;
  std::optional<std::int64_t> coordinate(Terms& terms, ir::AxisId axis, const Env& env) const;
  // The element that an index names, a number a dimension; nothing also where it is outside of the tensor.
  std::optional<std::vector<std::int64_t>> element(ir::TensorId tensor, const std::vector<ir::Index>& index,
                                                   const Point& at) const;

 private:
  using Element = std::pair<ir::TensorId, std::vector<std::int64_t>>;

  std::optional<std::int64_t> extent(ir::AxisId axis) const;
  std::optional<std::int64_t> extent(const ir::Dim& dim) const;
  std::optional<std::pair<std::int64_t, std::int64_t>> range(ir::AxisId axis, const Point& at) const;
  // Whether the index lies inside the tensor, and the element then.
  std::optional<bool> inside(ir::TensorId tensor, const std::vector<ir::Index>& index, const Point& at,
                             std::vector<std::int64_t>& element) const;
  std::optional<std::int64_t> computed(ir::ValueId v, const Point& at) const;
  std::optional<std::int64_t> arithmetic(ir::ValueId v, const ir::Elementwise& e, const Point& at) const;
  std::optional<std::int64_t> replaced(const ir::Replace& r, const Point& at) const;
  std::optional<Point> point_of(const Atom& opaque) const;
  bool take_load(AtomId a);
  bool take_choice_of_data(AtomId a);
  bool speaks_of_integers(ir::ValueId v) const;
  bool is_free(ir::ValueId v, const Point& at, std::int64_t chosen) const;
  bool launch_possible() const;
  bool data_possible() const;

  const Terms& terms_;
  const ir::Program& p_;
  const Assignment& values_;
  std::map<ir::AxisId, std::int64_t> extents_;
  std::map<ir::ScalarId, std::int64_t> scalars_;
  std::map<Element, std::int64_t> memory_;                      // loaded integers
  std::map<std::pair<ir::ValueId, Point>, std::int64_t> free_;  // results that data decide freely
  std::set<AtomId> uncertain_;                                  // may have another value than the assignment says
  bool possible_ = true;
  mutable int steps_;
};

}  // namespace cosmati::prove
