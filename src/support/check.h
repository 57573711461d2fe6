// COSMATI_CHECK: our own invariants, always on. A failure throws InternalError; it never aborts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <cosmati/error.h>

#define COSMATI_CHECK(condition, ...)                                                                             \
  do {                                                                                                            \
    if (!(condition))                                                                                             \
      throw ::cosmati::InternalError(fmt::format("{}:{}: ({}) does not hold: ", __FILE__, __LINE__, #condition) + \
                                     fmt::format(__VA_ARGS__));                                                   \
  } while (0)
