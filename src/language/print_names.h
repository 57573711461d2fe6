// The names of a printed program: unique, never a word of the language, the user's own where possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::language {

class NamePool {
 public:
  // `wanted` if it is free and can be a name, else wanted_2, wanted_3, ...
  std::string claim(const std::string& wanted);
  void reserve(const std::string& name) { taken_.insert(name); }
  // A name that someone will claim: never made up for someone else.
  void avoid(const std::string& name) { wanted_.insert(name); }
  // v1, v2, ...: the first free one.
  std::string fresh();

 private:
  std::set<std::string> taken_, wanted_;
  int next_ = 1;
};

// A literal of the type. Reading it back gives the same number, with the digits that a float type would round.
std::string literal_text(DType dtype, double f, std::int64_t i);

}  // namespace cosmati::language
