// What is checked about the memory of a launch: whether outputs overlap themselves or other arguments.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/bind.h"

namespace cosmati::runtime {
namespace {

struct Bytes {
  std::int64_t lo, hi;  // half-open, absolute addresses
};

Bytes bytes_of(const TensorView& view) {
  const Reach reach = reach_of(view);
  const std::int64_t base = reinterpret_cast<std::intptr_t>(view.data);
  return {base + reach.lo, base + reach.hi};
}

// Different indices are different elements: by increasing stride, each step clears everything the smaller ones reach.
bool overlaps_itself(const TensorView& view) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;
  for (std::size_t d = 0; d < view.shape.size(); ++d)
    if (view.shape[d] > 1) dims.emplace_back(std::abs(view.strides[d]), view.shape[d]);
  std::sort(dims.begin(), dims.end());
  std::int64_t reach = 0;
  for (auto [stride, extent] : dims) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

// Whether two views may share a byte. Interleaved views (x[:, ::2] and x[:, 1::2]) are told apart by their residues.
bool may_overlap(const TensorView& a, const TensorView& b) {
  if (a.elements() == 0 || b.elements() == 0) return false;
  Bytes x = bytes_of(a), y = bytes_of(b);
  if (x.hi <= y.lo || y.hi <= x.lo) return false;
  std::int64_t step = 0;
  for (const TensorView* v : {&a, &b})
    for (std::size_t d = 0; d < v->shape.size(); ++d)
      if (v->shape[d] > 1) step = std::gcd(step, v->strides[d] * byte_size(v->dtype));
  if (step == 0) return true;
  std::int64_t difference = reinterpret_cast<std::intptr_t>(b.data) - reinterpret_cast<std::intptr_t>(a.data);
  std::int64_t residue = ((difference % step) + step) % step;
  return residue < byte_size(a.dtype) || step - residue < byte_size(b.dtype);
}

bool same(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.shape != b.shape) return false;
  for (std::size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

}  // namespace

Reach reach_of(const TensorView& view) {
  if (view.elements() == 0) return {};
  Reach reach;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const std::int64_t steps = (view.shape[d] - 1) * view.strides[d];
    (steps < 0 ? reach.lo : reach.hi) += steps;
  }
  const std::int64_t size = byte_size(view.dtype);
  return {reach.lo * size, (reach.hi + 1) * size};
}

Aliases check_memory(const ir::Program& p, const Proofs& proofs, const std::vector<TensorView>& tensors) {
  Aliases aliases;
  for (std::uint32_t o = 0; o < tensors.size(); ++o) {
    const ir::Tensor& written = p.tensors[o];
    if (written.access == ir::Access::in || !tensors[o].data) continue;
    if (tensors[o].elements() > 0 && overlaps_itself(tensors[o]))
      throw Error(ErrorCode::overlap, written.where,
                  fmt::format("{} is written, but its strides make different elements share memory", written.name),
                  "pass memory with one place for each element");
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      if (i == o || !tensors[i].data || !may_overlap(tensors[o], tensors[i])) continue;
      if (p.tensors[i].access != ir::Access::in)
        throw Error(ErrorCode::overlap, written.where,
                    fmt::format("{} and {} are both written and share memory", written.name, p.tensors[i].name),
                    "pass separate memory");
      if (!same(tensors[o], tensors[i]))
        throw Error(ErrorCode::overlap, written.where,
                    fmt::format("{} is written and shares memory with {}, but is not exactly the same view", written.name,
                                p.tensors[i].name),
                    "pass separate memory, or exactly the same view");
      ir::TensorId in{i}, out{o};
      proofs.alias(p, in, out);
      aliases.emplace_back(in, out);
    }
  }
  return aliases;
}

}  // namespace cosmati::runtime
