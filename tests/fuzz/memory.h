// Arrays between guards: what lies around and between the elements holds a poison that must neither matter nor change.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <cosmati/tensor.h>

namespace cosmati::fuzz {

enum class Poison : unsigned char { nan, huge };  // of integers: the least and the greatest value

// Element strides of an array, and the offset of element 0 from the start of its memory.
struct Layout {
  std::vector<std::int64_t> strides;
  std::int64_t origin = 0, span = 0;
};
Layout dense_layout(const std::vector<std::int64_t>& shape);
// Dimensions in any order, padded, some of them backwards.
Layout random_layout(const std::vector<std::int64_t>& shape, std::mt19937_64& random);

class Guarded {
 public:
  // Elements are poison too where `from` has no data.
  Guarded(const TensorView& from, const Layout& layout, Poison poison, bool read_only);
  const TensorView& view() const { return view_; }
  // What was written outside the elements (anywhere in a read-only array), or nothing.
  std::string damage() const;
  // The elements, dense and row-major, every NaN the same.
  std::vector<char> elements() const;

 private:
  std::vector<char> memory_, before_;
  std::vector<bool> element_;  // of each byte
  TensorView view_;
};

}  // namespace cosmati::fuzz
