// clike: kernel IR as source text of a language like C, one function a phase. What differs between the languages is a Dialect.
// A lane is a thread, and a group's lanes are neighbours in a thread group that may hold several groups.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace cosmati::clike {

struct Dialect {
  std::string_view prelude;                 // what every source begins with: the types and functions that expressions use
  std::string_view helper;                  // what stands before a function that others call,
  std::string_view function;                // and what before the name of a function that a launch starts; of {} threads
  std::string_view thread;                  // the number of a thread in its thread group,
  std::string_view thread_group;            // that of the thread group,
  std::string_view threads, thread_groups;  // and how many there are
  std::string_view alone;                   // what stands before a pointer through which alone its memory is reached
  std::string_view on_chip;                 // what stands before memory of a thread group
  std::string_view chip;                    // a declaration of all that a launch gave of it, an array of bytes named `chip`
};

// `k` has its expansions written out, and its lanes go apart. Parameters of a function: the kernel's params, the number of
// groups, whether the scratch of workers is on the chip, its buffers; each in the order of the kernel.
std::string source(const kernel::Kernel& k, const Dialect& dialect);
// The name of a phase's function there.
std::string function_name(const kernel::Kernel& k, std::size_t phase);
// Threads of a thread group that runs the phase; 0: any number, each is a worker.
int threads(const kernel::Phase& phase);
// Whether a worker's piece of a scratch is of one size and on the chip in any case.
bool always_on_chip(const kernel::Kernel& k, const kernel::Buffer& b);
// Bytes of the chip for all other scratch of a worker where it is on the chip.
std::int64_t chip_bytes(const kernel::Kernel& k, const std::vector<std::int64_t>& params);

}  // namespace cosmati::clike
