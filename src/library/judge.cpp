// The rule of the language: a float is right within the running error bound of the float64 oracle; an integer, boolean or
// index when it equals the typed oracle, or, where rounding may decide it, within the bound.
// SPDX-License-Identifier: Apache-2.0
#include "library/judge.h"

#include <cmath>

#include "runtime/bind.h"

namespace cosmati::library {
namespace {

bool next_index(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

template <class Visit>
void each_element(const TensorView& view, const Visit& visit) {
  if (view.elements() == 0) return;
  auto strides = runtime::strides_of(view);
  std::vector<std::int64_t> index(view.shape.size(), 0);
  std::size_t linear = 0;
  do {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    visit(linear++, index, static_cast<char*>(view.data) + offset * byte_size(view.dtype));
  } while (next_index(index, view.shape));
}

bool same_float(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

void write(const oracle::Array& array, const TensorView& view) {
  each_element(view, [&](std::size_t i, const auto&, char* element) {
    if (!array.stored.empty() && !array.stored[i]) return;
    ops::Scalar s = array.values[i];
    if (is_float(view.dtype)) s.f = ops::round_to(view.dtype, s.f);
    ops::store(view.dtype, element, s);
  });
}

Reference reference(const ir::Program& p, const oracle::Inputs& inputs, const Fraction& progress) {
  bool needs_typed = false;
  for (const ir::Tensor& t : p.tensors) needs_typed = needs_typed || (t.access != ir::Access::in && !is_float(t.dtype));
  const double runs = needs_typed ? 2 : 1;
  auto of_run = [&](double before) { return progress ? [=](double done) { progress((before + done) / runs); } : Fraction(); };
  Reference made{oracle::run(p, inputs, {oracle::Mode::wide, {}, {}, false, of_run(0)}), {}};
  if (needs_typed) made.typed = oracle::run(p, inputs, {oracle::Mode::typed, {}, {}, false, of_run(1)});
  return made;
}

std::vector<Judgement> judge(const ir::Program& p, const Reference& reference, const std::vector<TensorView>& got) {
  std::vector<Judgement> judgements;
  std::size_t o = 0;
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    if (p.tensors[t].access == ir::Access::in) continue;
    const oracle::Array& ref = reference.wide.outputs[o];
    const std::vector<ops::Scalar>& typed = reference.typed ? reference.typed->outputs[o].values : ref.values;
    const TensorView& view = got[o];
    Judgement j;
    j.output = p.tensors[t].name;
    j.elements = view.elements();
    each_element(view, [&](std::size_t i, const std::vector<std::int64_t>& index, char* element) {
      ops::Scalar s = ops::load(view.dtype, element);
      bool is_real = is_float(view.dtype);
      double value = is_real ? s.f : static_cast<double>(s.i), bound = ref.error[i];
      double expected = is_real ? ref.values[i].f : static_cast<double>(typed[i].i);
      double distance = std::fabs(value - expected);
      bool ok;
      if (is_real) {
        ok = same_float(value, expected) || distance <= bound || std::isinf(bound);
        if (!std::isfinite(expected) && std::isfinite(bound) && !same_float(value, expected)) ok = false;
        if (!same_float(value, expected) && bound > std::fabs(expected) && bound > 1e-30) ++j.unjudged;
      } else {
        ok = s.i == typed[i].i ||
             (bound > 0 && (std::isinf(bound) || std::fabs(value - static_cast<double>(ref.values[i].i)) <= bound));
        if (bound > 0) ++j.unjudged;
      }
      if (!same_float(value, expected) && std::isfinite(distance)) {
        if (distance >= j.max_abs) {
          j.max_abs = distance;
          j.bound = bound;
        }
        if (expected != 0) j.max_rel = std::max(j.max_rel, distance / std::fabs(expected));
      }
      if (!ok && j.ok) {
        j.ok = false;
        j.at = index;
        j.got = value;
        j.expected = expected;
      }
    });
    judgements.push_back(std::move(j));
    ++o;
  }
  return judgements;
}

}  // namespace cosmati::library
