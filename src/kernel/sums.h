// Offsets as sums of products of the group, the lane, loop variables and params: two that differ by a constant are seen to be
// neighbours, and one can be put together again for another place.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::kernel {

struct Leaf {
  enum class What : std::uint8_t { group, lane, var, param, other } what;
  std::uint32_t index = 0;  // of the var or param, or of another expression
  auto operator<=>(const Leaf&) const = default;
};
// Coefficients by the sorted leaves of their product; the constant has none.
using Sum = std::map<std::vector<Leaf>, std::int64_t>;

// A sum without its constant, and the constant.
std::pair<Sum, std::int64_t> parted(Sum sum);

class Sums {
 public:
  // Reads what every let of the kernel binds. Statements made later are not seen. `others`: what is no sum or product is a leaf.
  explicit Sums(const Kernel& k, bool others = false);
  // Of an i64 expression; nothing where it is no such sum.
  std::optional<Sum> operator()(ExprId e) const;
  // What a variable was bound to, through any number of lets.
  ExprId resolved(ExprId e) const;

 private:
  void learn(const Block& block);
  std::optional<Sum> of(const Apply& a) const;

  const Kernel& k_;
  const bool others_;
  std::vector<std::optional<ExprId>> meaning_;          // per var
  mutable std::map<ExprId, std::optional<Sum>> known_;  // names may use each other many times
};

}  // namespace cosmati::kernel
