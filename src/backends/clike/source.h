// clike: kernel IR as source text of a language like C, one function a phase. What differs between the languages is a Dialect.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "kernel/kernel.h"

namespace cosmati::clike {

struct Dialect {
  std::string_view prelude;   // what every source begins with: the types and functions that expressions use
  std::string_view function;  // what stands before the name of a function that a launch starts
  std::string_view worker;    // the number of the worker that executes it, and how many there are
  std::string_view workers;
};

// `k` has its expansions written out, and lanes are one. Parameters of a function: the kernel's params, the number of groups, its
// buffers; each in the order of the kernel.
std::string source(const kernel::Kernel& k, const Dialect& dialect);
// The name of a phase's function there.
std::string function_name(const kernel::Kernel& k, std::size_t phase);

}  // namespace cosmati::clike
