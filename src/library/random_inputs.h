// Small random arguments for a program: extents 0..5, data inside its contracts. Used by `check` and by the fuzzer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "oracle/oracle.h"

namespace cosmati::library {

struct OwnedInputs {
  oracle::Inputs inputs;
  std::vector<std::vector<char>> storage;  // behind inputs.tensors
};

// nullopt where these extents leave a contract empty, a require false, or a tensor with too many elements: try another seed.
std::optional<OwnedInputs> random_inputs(const ir::Program& p, std::uint64_t seed, std::int64_t largest_extent = 5);

}  // namespace cosmati::library
