// Packs: neighbouring elements that one lane loads or stores at once, since they lie at a multiple of their size together. What
// the conditions of the kernel say of params is relied on. A backend moves them by one instruction.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/sums.h"

namespace cosmati::kernel {

struct Pack {
  std::vector<StmtId> members;  // lets that load, or stores, one element after the other, in the order of the block
  BufferId buffer;
};

class Packs {
 public:
  explicit Packs(const Kernel& k);
  // Those of a block. Between the members of one nothing is stored to what they load, or loaded that they store.
  std::vector<Pack> operator()(const Block& statements) const;

 private:
  bool at_multiple(const Sum& offset, std::int64_t of) const;

  const Kernel& k_;
  const Sums sums_;
  std::map<std::uint32_t, std::int64_t> multiples_;  // params that are multiples of a number
  std::vector<bool> aligned_;                        // buffers that begin at a multiple of aligned_bytes
};

}  // namespace cosmati::kernel
