// What arguments say about extents: one function for launches and for made-up arguments, so that both mean the same where a
// dimension leaves an extent open.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <cosmati/launch.h>
#include <cosmati/tensor.h>

#include "ir/program.h"

namespace cosmati::runtime {

// The value of a launch-level expression (extents, scalars, constants); nullopt where it needs what is not known yet. An extent
// below 0 means unknown. Throws Error{bad_argument} where 64-bit arithmetic overflows: proofs take extents for what they are.
std::optional<ops::Scalar> launch_value(const ir::Program& p, ir::ValueId v, const std::vector<std::int64_t>& extents,
                                        const std::vector<std::optional<ops::Scalar>>& scalars);

// Extents and defaults by repeated substitution: each dimension is one equation, each declared range another.
class ExtentEquations {
 public:
  // One view a tensor, null for an out that is left out; `scalars` without a value take their defaults. Throws
  // Error{extent_mismatch, bad_argument} at the parameter or axis that does not fit.
  // `given`: extents by name that are held against what arguments and declarations say.
  ExtentEquations(const ir::Program& p, const std::vector<const TensorView*>& views,
                  std::vector<std::optional<ops::Scalar>> scalars, const Extents* given = nullptr);

  // One an axis; 0 where nothing at launch gives it.
  std::vector<std::int64_t> all() const;
  std::vector<ops::Scalar> scalars() const;
  // Throws Error{bad_argument} where nothing gives an extent.
  std::vector<std::int64_t> shape(std::uint32_t tensor) const;

 private:
  void give(const std::string& name, std::int64_t extent);
  void times(std::int64_t& product, const ir::Factor& factor, std::uint32_t tensor) const;
  [[noreturn]] void refuse_unknown(ir::AxisId axis, std::uint32_t tensor, std::uint32_t d) const;
  std::string product(const ir::Dim& dim) const;
  std::string origins(const ir::Dim& dim) const;
  std::string from(ir::AxisId axis) const;
  bool set(std::uint32_t axis, std::int64_t extent, const std::string& origin);
  bool dimensions(bool beside_empty);
  bool dimension(std::uint32_t tensor, std::uint32_t d, bool beside_empty);
  std::optional<std::int64_t> range(std::uint32_t axis) const;
  bool declared(std::uint32_t axis);
  void check() const;

  const ir::Program& p_;
  const std::vector<const TensorView*>& views_;
  std::vector<std::int64_t> extents_;
  std::vector<std::string> origin_;
  std::vector<std::optional<ops::Scalar>> scalars_;
};

}  // namespace cosmati::runtime
