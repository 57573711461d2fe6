// Reducers over dense arrays: an accumulator takes operands piece by piece and finishes with one array per result.
// Error bounds hold for every order and tree of the same merges:
//  sum, mean     the errors of the elements, plus (n - 1) roundings of sum |v|
//  product       relative errors multiply; unjudged where a partial product could leave the range of the type
//  min, max      the interval of the elements' own intervals
//  argmin, argmax  uncertain where another element may win within its error
//  mean_var      with e the element errors: mean(e) and 2 sigma rms(e) + rms(e)^2, plus 4 n roundings of sigma (and 4 n squared
//                ones of the mean) for the mean, which is itself rounded, and 2 sigma times as much for the variance
//  logsumexp     the largest element error, plus 4 n + log(n) + 4 roundings: each merge rescales by exp of a rounded difference,
//                and along any tree these differences telescope
//  other merges  propagated through the lambdas in index order, doubled, plus n roundings of the result, for other trees; a state
//                that merging adds has the bound of a sum
// Typed: float folds run in float64 and round once; other merges run typed in index order.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "oracle/dense.h"
#include "oracle/tape.h"

namespace cosmati::oracle {

// A run of n elements: argument k of element j is at[k] + j * stride[k] of array k; it belongs to output out + j * out_stride.
struct Run {
  std::int64_t n;
  std::int64_t at[3];
  std::int64_t stride[3];
  std::int64_t out, out_stride;
};

class Accumulator {
 public:
  virtual ~Accumulator() = default;
  virtual void run(const std::vector<Ref>& args, const Run& r) = 0;
  // The states after `count` elements each (> 0), as finished results.
  virtual void finish(std::int64_t count, std::int64_t out, Num* results) = 0;
};

struct ReducerContext {
  const ir::Program& program;
  const ir::Reducer& reducer;
  DType argument;  // of the first value argument
  bool wide;
  bool product;    // the operand is given as the two factors of a product
  double relaxed;  // relative error that a relaxation allows each product
  const Tape::Outer& outer;
};
std::unique_ptr<Accumulator> accumulator(const ReducerContext& context, std::int64_t outputs);
// The results of nothing.
std::vector<Num> of_nothing(const ReducerContext& context);

}  // namespace cosmati::oracle
