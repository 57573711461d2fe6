// From named arguments to everything a launch needs: the program instantiated at their dtypes and ranks and proven, extents
// solved from shapes, declarations and scalars, every equation checked. Nothing is written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cosmati/launch.h>
#include <cosmati/program.h>

#include "backends/gpu/gpu.h"
#include "ir/program.h"
#include "language/source.h"
#include "oracle/oracle.h"
#include "runtime/once_map.h"

namespace cosmati::runtime {

// A program at one binding of its dtype variables and packs: proven, and once more with its replaces inlined.
struct Instance {
  language::Binding binding;
  ir::Program program, inlined;
  bool narrows = false;    // a 64-bit integer becomes a narrower one somewhere: an extent or index may
  bool contracts = false;  // the data of some integer tensor is promised to be in bounds, sorted or distinct
  // per scalar: extents, contracts or requires depend on its value
  std::vector<bool> decides;
};

// Who answers for what a program may do: the prover, or for a package whoever made it.
struct Proofs {
  void (*program)(const ir::Program& p);  // throws Error where something of it is not proven
  // An in and an out that are exactly the same memory. Throws Error{overlap} where the out may not be computed there.
  void (*alias)(const ir::Program& p, ir::TensorId in, ir::TensorId out);
};

// The instances of one program, made on first use. Thread-safe.
class Instances {
 public:
  Instances(Program program, Proofs proofs) : program_(std::move(program)), proofs_(proofs) {}
  std::shared_ptr<const Instance> get(const language::Binding& binding) const;
  const Program& program() const { return program_; }
  const Proofs& proofs() const { return proofs_; }

 private:
  Program program_;
  Proofs proofs_;
  mutable OnceMap<Instance> instances_;
};

using Aliases = std::vector<std::pair<ir::TensorId, ir::TensorId>>;  // an in and an out that are exactly the same memory

struct Bound {
  std::shared_ptr<const Instance> instance;
  oracle::Inputs inputs;               // tensors and scalars in declared order, one extent per axis
  std::vector<std::uint32_t> missing;  // outs that no argument names; their views have a shape and no data
  Aliases aliases;                     // with read_data
};

// The arguments by parameter, in declared order; null: not given.
using Matched = std::span<const Argument* const>;
// Throws Error{bad_argument} for a name that no parameter has or that is given twice.
std::vector<const Argument*> match(const language::Signature& signature, const Arguments& arguments);

// A GPU in whose memory arrays may lie, and the stream behind whose work so far they hold what they shall.
struct OnGpu {
  const gpu::Gpu* gpu = nullptr;
  const gpu::StreamQueue* after = nullptr;  // null: they do already
};

// missing_outputs: outs may be left out (their extents must then follow from the rest). read_data: contracts of integer tensors,
// requires and the overlap of memory are checked too. Throws Error.
struct BindOptions {
  bool missing_outputs = false;
  bool read_data = true;
  const Extents* extents = nullptr;  // of axes that no argument gives
  OnGpu on = {};
};
Bound bind(const Instances& instances, Matched matched, BindOptions options);
Bound bind(const Instances& instances, const Arguments& arguments, BindOptions options);

// Contracts and requires, of data wherever it lies: what a GPU holds is read from there. Throws Error{contract_broken}.
void check_contracts(const ir::Program& p, oracle::Inputs inputs, const OnGpu& on);

// A scalar argument as the parameter's dtype. Throws Error{bad_argument} where it does not fit.
ops::Scalar convert(const Argument& argument, const ir::Scalar& parameter);

// Overlap of outputs with themselves and with other arguments; pairs that are exactly the same memory and proven are returned.
Aliases check_memory(const ir::Program& p, const Proofs& proofs, const std::vector<TensorView>& tensors);

// What a view reaches, in bytes from its first element: lo .. hi, empty for an empty view. It has strides.
struct Reach {
  std::int64_t lo = 0, hi = 0;
};
Reach reach_of(const TensorView& view);

// The strides of a view in elements, dense where it has none.
std::vector<std::int64_t> strides_of(const TensorView& view);

}  // namespace cosmati::runtime
