// Fences for lanes that go apart: between what one lane writes and another reads, and between what one reads and another writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <set>
#include <utility>

#include "kernel/kernel.h"

namespace cosmati::kernel {

// Pairs of tensors whose memory is the same.
using SameMemory = std::set<std::pair<std::uint32_t, std::uint32_t>>;

// Adds the fences that phases whose lanes go apart need beside those they have. Two writes are not kept apart: nothing is written
// twice but what is read in between.
void add_fences(Kernel& k, const SameMemory& same);

}  // namespace cosmati::kernel
