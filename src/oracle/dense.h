// Values as dense arrays. A dimension has an identity (which axis of which environment it stands for) and a size; an array lists
// its dimensions by ascending identity, the last one contiguous, and lacks those along which it does not vary.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "oracle/number.h"

namespace cosmati::oracle {

struct Dim {
  std::uint32_t id;
  std::int64_t size;
  bool operator==(const Dim&) const = default;
};
using Dims = std::vector<Dim>;  // ascending ids

struct Dense {
  DType dtype = DType::f32_;
  Dims dims;
  std::vector<double> f;                            // floats
  std::vector<std::int64_t> i;                      // everything else
  std::vector<double> err;                          // empty: certain everywhere
  std::vector<std::shared_ptr<const Dense>> parts;  // a tuple has only these

  std::int64_t size() const { return static_cast<std::int64_t>(is_float(dtype) ? f.size() : i.size()); }
  Num at(std::int64_t k) const { return {f.empty() ? 0 : f[k], i.empty() ? 0 : i[k], err.empty() ? 0 : err[k]}; }
  void set(std::int64_t k, const Num& v) {
    if (is_float(dtype))
      f[k] = v.f;
    else
      i[k] = v.i;
    if (!err.empty()) err[k] = v.err;
  }
  bool uncertain() const { return !err.empty(); }
};
using Ref = std::shared_ptr<const Dense>;

std::int64_t elements(const Dims& dims);
Dims join(const Dims& a, const Dims& b);
// A new array of zeros; with_error also allocates the bounds.
std::shared_ptr<Dense> make(DType dtype, Dims dims, bool with_error);
// Forgets bounds that are all zero.
Ref seal(std::shared_ptr<Dense> value);
Ref scalar(DType dtype, const Num& v);
Ref iota(std::uint32_t dim, std::int64_t lo, std::int64_t hi);
// Uncertain everywhere.
Ref unjudged(const Ref& value);

// `value` with `times` the bounds of `other` added to its own.
Ref with_errors_of(const Ref& value, const Ref& other, double times);

// The walk over `dims` for several arrays: runs along the innermost dimension, where each array's stride is 0 or positive.
class Nest {
 public:
  explicit Nest(const Dims& dims) : dims_(dims) {}
  void operand(const Dims& own);  // an array over a subset of the dimensions
  // Drops single points and joins neighbouring dimensions that every operand walks as one; call after the last operand.
  void collapse();
  // f(offsets, n): offsets one per operand at the start of a run of n.
  template <class F>
  void runs(F&& f) const;
  std::int64_t stride(std::size_t operand) const { return inner_[operand]; }

 private:
  Dims dims_;
  std::vector<std::vector<std::int64_t>> strides_;  // per operand, per dimension
  std::vector<std::int64_t> inner_, outer_sizes_;
  std::int64_t inner_size_ = 1;
  bool empty_ = false;
};

template <class F>
void Nest::runs(F&& f) const {
  if (empty_) return;
  std::vector<std::int64_t> offsets(strides_.size(), 0), index(outer_sizes_.size(), 0);
  while (true) {
    f(offsets.data(), inner_size_);
    std::size_t d = index.size();
    while (d > 0) {
      --d;
      for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] += strides_[k][d];
      if (++index[d] < outer_sizes_[d]) break;
      for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] -= strides_[k][d] * outer_sizes_[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (index.empty()) return;
  }
}

// `op` on broadcast arrays.
Ref elementwise(bool wide, ops::Op op, DType argument, DType result, const std::vector<Ref>& args);
// valid ? value : otherwise, over the union of the dimensions.
Ref choose(const Ref& valid, const Ref& value, const Ref& otherwise);

struct Gather {
  std::uint32_t dim;  // this dimension of the source
  Ref index;          // is replaced by these positions (i64, from 0, in range)
};
Ref gather(const Ref& source, const std::vector<Gather>& by);

}  // namespace cosmati::oracle
