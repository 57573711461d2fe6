// While a group computes, what it stores later and what the next one reads come into the caches: loops that touch memory first
// would otherwise wait for loops that compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernel/kernel.h"

namespace cosmati::kernel {

// Where a group runs several loops over one range, one of them gets prefetches of elements whose places follow from the group and
// the loops: the one that computes most, of those between the first and what stores results if there are any. Results do not
// change.
void fetch_ahead(Kernel& k);
// Whether that would add any.
bool fetches_ahead(const Kernel& k);

}  // namespace cosmati::kernel
