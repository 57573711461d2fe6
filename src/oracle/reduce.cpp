// Reductions: the reduced axes span their ranges, in pieces where the operand would be large, and point by point where a range
// depends on one of them. A program axis is reduced like any other, over all of its instances.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "oracle/interpreter.h"
#include "support/check.h"

namespace cosmati::oracle {

namespace {

constexpr std::int64_t operand_limit = std::int64_t{1} << 20;

// The float type that a value was widened from, if it is a cast.
DType storage_type(const ir::Program& p, ir::ValueId v) {
  while (const auto* e = std::get_if<ir::Elementwise>(&p[v].node)) {
    if (e->op != ops::Op::cast || !is_float(p[e->args[0]].dtype)) break;
    v = e->args[0];
  }
  return p[v].dtype;
}

}  // namespace

double Interpreter::relaxed(const ir::Reduce& n) const {
  switch (n.relax) {
    case ir::Relax::none:
      return 0;
    case ir::Relax::tf32:
      return 2 * 0x1p-10;  // truncation to 10 bits of each factor
    case ir::Relax::split_tf32:
      return 4 * 0x1p-20;  // what three products of two parts drop
    case ir::Relax::approx:
      return 0x1p-18;
    case ir::Relax::narrow:
      break;
  }
  const ir::Elementwise* product = summed_product(program_, n);
  if (!product) return 0;
  // Either factor may be rounded to the storage type of the other.
  double out = 0;
  for (int k = 0; k < 2; ++k) out += precision(storage_type(program_, product->args[k])).unit;
  return out <= 2 * precision(DType::f32_).unit ? 0 : out;
}

Ref Interpreter::reduce(const ir::Reduce& n, const ir::Value& value) {
  LongNode progress(*this);
  const ir::Reducer& reducer = program_[n.reducer];
  const ir::Elementwise* product = summed_product(program_, n);
  const std::vector<ir::ValueId>& args = product ? product->args : n.args;
  const ReducerContext context{program_, reducer, program_[n.args[0]].dtype, wide_, product != nullptr, wide_ ? relaxed(n) : 0,
                               outer_};
  const Dims out_dims = dims_of(value.axes);
  const std::int64_t outputs = elements(out_dims);
  const auto accumulated = accumulator(context, outputs);
  std::int64_t count = 0;
  bool uncertain = false;

  Slots read;
  for (const ir::ValueId a : args) read = slots_union(read, facts_.value[a.index]);
  std::vector<std::uint32_t> stepped, spanned;
  for (const ir::AxisId a : n.axes) (facts_.bounds_a_range[a.index] ? stepped : spanned).push_back(a.index);

  const auto accumulate = [&] {
    std::int64_t here = 1;
    Dims dims = out_dims;
    for (const ir::AxisId a : n.axes) {
      const BindingRef b = binding(a.index);
      here *= b->hi - b->lo;
      dims = join(dims, b->coords->dims);
    }
    if (here == 0) return;
    count += here;
    std::vector<Ref> operands;
    for (const ir::ValueId a : args) operands.push_back(eval(a));
    Nest nest(dims);
    nest.operand(out_dims);
    for (const Ref& a : operands) nest.operand(a->dims);
    nest.collapse();
    nest.runs([&](const std::int64_t* at, std::int64_t run) {
      Run r{run, {}, {}, at[0], nest.stride(0)};
      for (std::size_t k = 0; k < operands.size(); ++k) {
        r.at[k] = at[k + 1];
        r.stride[k] = nest.stride(k + 1);
      }
      accumulated->run(operands, r);
    });
  };

  // Cuts the longest spanned axis until no operand is large.
  const std::function<void()> in_pieces = [&] {
    std::int64_t largest = 0;
    for (const ir::ValueId a : args) {
      Dims dims;
      for (const ir::AxisId axis : program_[a].axes) dims = join(dims, binding(axis.index)->coords->dims);
      largest = std::max(largest, elements(dims));
    }
    BindingRef longest;
    std::uint32_t axis = 0;
    for (const std::uint32_t a : spanned)
      if (const BindingRef b = binding(a);
          b->kind == Binding::Kind::span && (!longest || b->hi - b->lo > longest->hi - longest->lo)) {
        longest = b;
        axis = a;
      }
    if (largest <= operand_limit || !longest || longest->hi - longest->lo < 2) return accumulate();
    const std::int64_t length = longest->hi - longest->lo;
    const std::int64_t step = std::max<std::int64_t>(1, length / (largest / operand_limit + 1));
    for (std::int64_t lo = longest->lo; lo < longest->hi; lo += step) {
      const auto turn = progress.turn((lo - longest->lo) / step, (length - 1) / step + 1);
      Scope piece(*this, true);
      piece.span(axis, longest->dim, lo, std::min(lo + step, longest->hi), longest->uncertain);
      in_pieces();
    }
  };

  const std::function<void(std::size_t)> steps = [&](std::size_t k) {
    if (k < stepped.size()) {
      const BindingRef b = canonical(stepped[k]);
      uncertain = uncertain || b->uncertain;
      for (std::int64_t c = b->lo; c < b->hi; ++c) {
        const auto turn = progress.turn(c - b->lo, b->hi - b->lo);
        Scope point(*this, true);
        point.fixed(stepped[k], c);
        steps(k + 1);
      }
      return;
    }
    Scope scope(*this, false);
    std::unique_ptr<Scope> fresh;
    span_ranges(scope, spanned, read, fresh);
    for (const std::uint32_t a : spanned) uncertain = uncertain || binding(a)->uncertain;
    in_pieces();
  };
  steps(0);

  std::vector<std::shared_ptr<Dense>> results;
  for (std::size_t k = 0; k < reducer.finish.results.size(); ++k)
    results.push_back(make(program_[reducer.finish.results[k]].dtype, count > 0 ? out_dims : Dims{}, wide_));
  std::vector<Num> finished(results.size());
  if (count == 0) finished = of_nothing(context);
  for (std::int64_t o = 0; o < (count > 0 ? outputs : 1); ++o) {
    if (count > 0) accumulated->finish(count, o, finished.data());
    for (std::size_t k = 0; k < results.size(); ++k) results[k]->set(o, finished[k]);
  }
  std::vector<Ref> sealed;
  for (auto& r : results) {
    const Ref s = seal(std::move(r));
    sealed.push_back(uncertain ? unjudged(s) : s);
  }
  if (sealed.size() == 1) return sealed[0];
  auto tuple = std::make_shared<Dense>();
  tuple->parts = std::move(sealed);
  return tuple;
}

}  // namespace cosmati::oracle
