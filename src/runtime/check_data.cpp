// What is checked about the memory and the data of a launch: overlap, contracts, requires.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "language/source.h"
#include "prove/prove.h"
#include "runtime/bind.h"

namespace cosmati::runtime {
namespace {

struct Bytes {
  std::int64_t lo, hi;  // half-open, absolute addresses
};

Bytes bytes_of(const TensorView& view) {
  std::int64_t lo = 0, hi = 0;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    std::int64_t reach = (view.shape[d] - 1) * view.strides[d];
    (reach < 0 ? lo : hi) += reach;
  }
  std::int64_t base = reinterpret_cast<std::intptr_t>(view.data), size = byte_size(view.dtype);
  return {base + lo * size, base + (hi + 1) * size};
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

std::int64_t at(const TensorView& view, const std::vector<std::int64_t>& index) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides[d];
  return ops::load(view.dtype, static_cast<const char*>(view.data) + offset * byte_size(view.dtype)).i;
}

bool next_index(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

std::string index_text(const std::vector<std::int64_t>& index) {
  std::string text;
  for (std::int64_t i : index) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "[" + text + "]";
}

std::optional<std::int64_t> bound(const ir::Program& p, std::optional<ir::ValueId> limit, const std::vector<std::int64_t>& extents,
                                  const std::vector<std::optional<ops::Scalar>>& scalars) {
  if (!limit) return std::nullopt;
  auto value = launch_value(p, *limit, extents, scalars);
  return value ? std::optional(value->i) : std::nullopt;
}

// "extent of col in x" where a bound is the extent of an axis that a tensor has.
std::string bound_origin(const ir::Program& p, std::optional<ir::ValueId> bound) {
  if (!bound) return "";
  const auto* extent = std::get_if<ir::Extent>(&p[*bound].node);
  if (!extent) return "";
  for (const ir::Tensor& tensor : p.tensors)
    for (const ir::Dim& dim : tensor.dims)
      for (const ir::Factor& factor : dim)
        if (factor.axis == extent->axis) return fmt::format(" (extent of {} in {})", p[extent->axis].name, tensor.name);
  return fmt::format(" (extent of {})", p[extent->axis].name);
}

}  // namespace

std::vector<std::pair<ir::TensorId, ir::TensorId>> check_memory(const ir::Program& p, const std::vector<TensorView>& tensors) {
  std::vector<std::pair<ir::TensorId, ir::TensorId>> aliases;
  for (std::uint32_t o = 0; o < tensors.size(); ++o) {
    if (p.tensors[o].access == ir::Access::in || !tensors[o].data) continue;
    if (tensors[o].elements() > 0 && overlaps_itself(tensors[o]))
      throw Error(ErrorCode::overlap, {}, fmt::format("{} is written, but its strides make different elements share memory", p.tensors[o].name),
                  "pass memory with one place for each element");
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      if (i == o || !tensors[i].data || !may_overlap(tensors[o], tensors[i])) continue;
      if (p.tensors[i].access != ir::Access::in)
        throw Error(ErrorCode::overlap, {}, fmt::format("{} and {} are both written and share memory", p.tensors[o].name, p.tensors[i].name));
      if (!same(tensors[o], tensors[i]))
        throw Error(ErrorCode::overlap, {}, fmt::format("{} is written and shares memory with {}, but is not exactly the same view", p.tensors[o].name, p.tensors[i].name),
                    "pass separate memory, or exactly the same view");
      ir::TensorId in{i}, out{o};
      prove::Proof proof = prove::prove_exact_alias(p, in, out);
      if (!proof)
        throw Error(ErrorCode::overlap, {}, fmt::format("{} is exactly {}, and {} may not be computed in place: {}", p.tensors[o].name, p.tensors[i].name, p.name,
                                                        proof.refusal->message),
                    "pass separate memory");
      aliases.emplace_back(in, out);
    }
  }
  return aliases;
}

void check_contracts(const ir::Program& p, const oracle::Inputs& inputs) {
  std::vector<std::optional<ops::Scalar>> scalars(inputs.scalars.begin(), inputs.scalars.end());
  for (const auto& [condition, where] : p.requires_) {
    auto holds = launch_value(p, condition, inputs.extents, scalars);
    if (holds && !holds->i) throw Error(ErrorCode::contract_broken, where, fmt::format("{} requires a condition that these arguments do not meet", p.name));
  }
  for (std::uint32_t t = 0; t < p.tensors.size(); ++t) {
    const ir::Contract& contract = p.tensors[t].contract;
    const TensorView& view = inputs.tensors[t];
    if (!view.data || view.elements() == 0 || !(contract.lo || contract.hi || contract.sorted || contract.distinct)) continue;
    const std::optional<std::int64_t> lo = bound(p, contract.lo, inputs.extents, scalars), hi = bound(p, contract.hi, inputs.extents, scalars);
    const std::int64_t first = lo.value_or(std::numeric_limits<std::int64_t>::min()), last = hi.value_or(std::numeric_limits<std::int64_t>::max());
    std::unordered_set<std::int64_t> seen;
    std::vector<std::int64_t> index(view.shape.size(), 0);
    std::int64_t previous = 0;
    do {
      std::int64_t value = at(view, index);
      auto broken = [&](const std::string& what) {
        throw Error(ErrorCode::contract_broken, p.tensors[t].where, fmt::format("{}{} = {} {}", p.tensors[t].name, index_text(index), value, what));
      };
      if (value < first || value >= last)
        broken(fmt::format("is outside {} .. {}{}", lo ? std::to_string(first) : "", hi ? std::to_string(last) : "", bound_origin(p, contract.hi)));
      if (contract.sorted && !index.empty() && index.back() > 0 && value < previous) broken(fmt::format("is less than the element before it, {}, but {} is sorted", previous, p.tensors[t].name));
      if (contract.distinct && !seen.insert(value).second) broken(fmt::format("is there twice, but {} is distinct", p.tensors[t].name));
      previous = value;
    } while (next_index(index, view.shape));
  }
}

}  // namespace cosmati::runtime
