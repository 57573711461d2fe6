// Locks that a forked child finds open: fork() copies the memory of all threads but only one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mutex>

namespace cosmati::support {

// A mutex for short sections on the state of `owner`: one of a few that all owners share, every one of them free while the
// process forks. A section takes no other of them and runs nothing of the user's.
std::mutex& short_mutex(const void* owner);

}  // namespace cosmati::support
