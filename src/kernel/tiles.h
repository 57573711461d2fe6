// Tiles: as many accesses of a block as there are lanes, each of elements far apart from lane to lane, all together of as many
// neighbours for every lane. A backend moves them as vectors of neighbours and turns them around in registers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernel/kernel.h"
#include "kernel/sums.h"

namespace cosmati::kernel {

struct Tile {
  std::vector<StmtId> members;  // lets that load, or stores, one element after the other
  Sum first;                    // the offset of the first
  BufferId buffer;
};

// What is guarded, or both read and written, is in none.
std::vector<Tile> tiles(const Kernel& k, const Sums& sums, const Block& statements, unsigned lanes);

}  // namespace cosmati::kernel
