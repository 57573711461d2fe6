// Loads: index arrays to offsets into the caller's memory, in strides and at any alignment.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "oracle/interpreter.h"
#include "support/check.h"

namespace cosmati::oracle {

std::string element_text(const std::string& tensor, const std::vector<std::int64_t>& at) {
  return fmt::format("{}[{}]", tensor, fmt::join(at, ", "));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "a single element" : fmt::format("{}", fmt::join(shape, " x "));
}

std::vector<std::int64_t> factor_extents(const ir::Program& program, const Inputs& inputs, const ir::Tensor& tensor,
                                         std::size_t d, std::size_t factors, std::int64_t size) {
  if (factors == 1) return {size};
  std::vector<std::int64_t> out;
  COSMATI_CHECK(factors == tensor.dims[d].size(), "{} factors index dimension {} of {}", factors, d, tensor.name);
  for (const ir::Factor& f : tensor.dims[d]) {
    const auto& piece = f.axis ? program[f.axis].piece : std::nullopt;
    const ir::AxisId axis = piece ? program[*piece].axis : f.axis;
    out.push_back((axis ? inputs.extents.at(axis.index) : 0) + f.offset);
  }
  return out;
}

namespace {

struct Position {  // one factor of one dimension
  Ref index;
  std::int64_t stride, extent;
  bool inside;  // every index is
};

bool all_inside(const Dense& index, std::int64_t extent) {
  return std::all_of(index.i.begin(), index.i.end(), [&](std::int64_t i) { return i >= 0 && i < extent; });
}

template <class T>
T raw(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

void read(DType t, const char* at, Dense& out, std::int64_t k) {
  switch (t) {
    case DType::f32_:
      out.f[k] = raw<float>(at);
      return;
    case DType::f64_:
      out.f[k] = raw<double>(at);
      return;
    case DType::i32_:
      out.i[k] = raw<std::int32_t>(at);
      return;
    default: {
      const ops::Scalar s = ops::load(t, at);
      if (is_float(t))
        out.f[k] = s.f;
      else
        out.i[k] = s.i;
    }
  }
}

}  // namespace

Ref Interpreter::load(const ir::Load& n, const ir::Value& value) {
  const ir::Tensor& tensor = program_[n.tensor];
  const TensorView& view = inputs_.tensors.at(n.tensor.index);
  COSMATI_CHECK(view.shape.size() == n.index.size(), "{} has rank {} but is read with {} indices", tensor.name, view.shape.size(),
                n.index.size());
  std::vector<std::int64_t> strides = view.strides;
  if (strides.empty()) {
    strides.assign(view.shape.size(), 1);
    for (std::size_t d = view.shape.size(); d-- > 1;) strides[d - 1] = strides[d] * view.shape[d];
  }
  std::vector<Position> positions;
  Dims dims;
  bool errors = false, guarded = false;
  for (std::size_t d = 0; d < n.index.size(); ++d) {
    const auto extents = factor_extents(program_, inputs_, tensor, d, n.index[d].size(), view.shape[d]);
    std::int64_t stride = strides[d];
    for (std::size_t k = extents.size(); k-- > 0;) {
      const Ref index = eval(n.index[d][k]);
      positions.push_back({index, stride, extents[k], all_inside(*index, extents[k])});
      guarded = guarded || !positions.back().inside;
      errors = errors || index->uncertain();
      dims = join(dims, index->dims);
      stride *= extents[k];
    }
  }
  const Ref otherwise = n.otherwise ? eval(*n.otherwise) : nullptr;
  if (otherwise) {
    dims = join(dims, otherwise->dims);
    errors = errors || otherwise->uncertain();
  }
  auto out = make(value.dtype, dims, wide_ && errors);
  const DType t = view.dtype;
  const std::int64_t bytes = byte_size(t);
  const char* data = static_cast<const char*>(view.data);
  Nest nest(dims);
  nest.operand(dims);
  for (const Position& p : positions) nest.operand(p.index->dims);
  if (otherwise) nest.operand(otherwise->dims);
  nest.collapse();
  const std::size_t count = positions.size();
  // Indices that do not move along the run are summed once.
  std::vector<std::size_t> moving;
  for (std::size_t j = 0; j < count; ++j)
    if (nest.stride(j + 1) != 0 || (guarded && !positions[j].inside)) moving.push_back(j);
  nest.runs([&](const std::int64_t* at, std::int64_t run) {
    std::int64_t base = 0;
    for (std::size_t j = 0; j < count; ++j)
      if (std::find(moving.begin(), moving.end(), j) == moving.end())
        base += positions[j].index->i[at[j + 1]] * positions[j].stride;
    for (std::int64_t k = 0; k < run; ++k) {
      std::int64_t offset = base;
      bool outside = false;
      for (const std::size_t j : moving) {
        const Position& p = positions[j];
        const std::int64_t i = p.index->i[at[j + 1] + k * nest.stride(j + 1)];
        outside = outside || (!p.inside && (i < 0 || i >= p.extent));
        offset += outside ? 0 : i * p.stride;
      }
      const std::int64_t to = at[0] + k;
      if (!outside) {
        read(t, data + offset * bytes, *out, to);
      } else if (otherwise) {
        out->set(to, otherwise->at(at[count + 1] + k * nest.stride(count + 1)));
      } else {
        std::vector<std::int64_t> where(count);
        for (std::size_t j = 0; j < count; ++j) where[j] = positions[j].index->i[at[j + 1] + k * nest.stride(j + 1)];
        // Factors were listed fast to slow within each dimension.
        for (std::size_t d = 0, j = 0; d < n.index.size(); j += n.index[d].size(), ++d)
          std::reverse(where.begin() + static_cast<std::ptrdiff_t>(j),
                       where.begin() + static_cast<std::ptrdiff_t>(j + n.index[d].size()));
        throw Error(ErrorCode::out_of_bounds, value.where,
                    fmt::format("{} leaves its extents ({} is {})", element_text(tensor.name, where), tensor.name,
                                shape_text(view.shape)),
                    "write `else` behind the access");
      }
      if (!wide_ || !errors) continue;
      for (std::size_t j = 0; j < count; ++j)
        if (positions[j].index->uncertain() && positions[j].index->err[at[j + 1] + k * nest.stride(j + 1)] > 0)
          out->err[to] = is_bool(value.dtype) ? 1 : infinity;
    }
  });
  return seal(std::move(out));
}

}  // namespace cosmati::oracle
