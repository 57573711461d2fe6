// What memory cannot hold is for the caller to make smaller.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include <cosmati/program.h>

#include "language/source.h"

namespace cosmati::runtime {

// body(), with running out of memory as an Error{bad_argument} of the program.
template <class Body>
auto within_memory(const Program& program, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorCode::bad_argument, program.source().signature().where,
              fmt::format("{} needs more memory than there is for these arguments", program.source().signature().name),
              "use smaller extents");
}

}  // namespace cosmati::runtime
