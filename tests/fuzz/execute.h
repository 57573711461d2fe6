// One program, run everywhere and compared: printed and read again, against both oracles, simulator against CPU bit for bit, with
// any strides, knobs, and memory around the arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <cosmati/error.h>

#include "language/source.h"

namespace cosmati::fuzz {

constexpr int code_count = 0
#define ERROR(code, meaning) +1
#include <cosmati/errors.def>
#undef ERROR
    ;

// What happened so far. Plain numbers: it lives in memory that processes share.
struct Counts {
  std::uint64_t programs, accepted, runs, impossible_arguments, refused_knobs, elements, unjudged, without_cpu;
  std::uint64_t refused[code_count], refused_at_launch[code_count];
};

struct Failure {
  std::string kind, detail;  // the kind tells failures apart while a program is made smaller
};

struct Case {
  std::string text;  // its last program is run
  language::Binding binding;
  std::uint64_t seed = 0;
  std::int64_t largest_extent = 5;
  int runs = 2;
  bool edges = false;  // some float inputs are infinite, NaN, zero, or at the ends of their range
  bool tell = false;   // print refusals
};

// Never throws. Counts everything but `programs`.
std::optional<Failure> execute(const Case& c, Counts& counts);

}  // namespace cosmati::fuzz
