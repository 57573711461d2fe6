// Kernels built by hand, run on the CPU, and compared byte by byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/cpu.h"
#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "ops/ops.h"

namespace cosmati::test {

using kernel::Block;
using kernel::BufferId;
using kernel::ExprId;
using kernel::ParamId;
using kernel::VarId;
using ops::Op;

struct Kit {  // a kernel under construction
  kernel::Kernel kernel;
  kernel::Builder b{kernel};
  std::uint32_t tensors = 0;

  explicit Kit(std::string name) { kernel.name = std::move(name); }
  Kit(const Kit&) = delete;
  Kit& operator=(const Kit&) = delete;

  ParamId param(const std::string& name, DType t = DType::i64_) {
    using Source = kernel::Param::Source;
    const auto i = static_cast<std::uint32_t>(kernel.params.size());
    kernel.params.push_back({t == DType::i64_ ? Source::extent : Source::scalar, i, 0, name, t});
    return ParamId{i};
  }
  BufferId argument(const std::string& name, DType t, kernel::Buffer::Access access = kernel::Buffer::Access::read) {
    kernel.buffers.push_back({kernel::Buffer::Kind::argument, access, tensors++, ExprId{}, name, t});
    return BufferId{static_cast<std::uint32_t>(kernel.buffers.size() - 1)};
  }
  BufferId out(const std::string& name, DType t) { return argument(name, t, kernel::Buffer::Access::write); }
  BufferId scratch(const std::string& name, DType t, kernel::Buffer::Kind kind, ExprId elements) {
    kernel.buffers.push_back({kind, kernel::Buffer::Access::read_write, 0, elements, name, t});
    return BufferId{static_cast<std::uint32_t>(kernel.buffers.size() - 1)};
  }
  void phase(const std::string& name, ExprId groups, Block body) { kernel.phases.push_back({name, groups, std::move(body)}); }
};

struct Array {  // a typed array in memory
  DType dtype;
  std::vector<unsigned char> bytes;

  Array(DType t, std::size_t n) : dtype(t), bytes(n * byte_size(t), 0xCD) {}
  Array(DType t, const std::vector<ops::Scalar>& values) : Array(t, values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) ops::store(t, at(i), values[i]);
  }
  void* at(std::size_t i) { return bytes.data() + i * byte_size(dtype); }
  const void* at(std::size_t i) const { return bytes.data() + i * byte_size(dtype); }
  ops::Scalar operator[](std::size_t i) const { return ops::load(dtype, at(i)); }
  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()) / byte_size(dtype); }
  kernel::Memory memory() { return {bytes.data(), 0, size()}; }
};

// Equal bits; any NaN equals any NaN (the payload of a NaN is not a promise).
inline bool same(DType t, const void* x, const void* y) {
  if (std::memcmp(x, y, byte_size(t)) == 0) return true;
  if (!is_float(t)) return false;
  const double a = ops::load(t, x).f, b = ops::load(t, y).f;
  return a != a && b != b;
}

inline void run(const kernel::Kernel& k, std::vector<kernel::Memory> buffers, std::vector<std::int64_t> params,
                const cpu::Options& options = {}) {
  cpu::compile(k, options)->run({std::move(buffers), std::move(params)});
}

}  // namespace cosmati::test
