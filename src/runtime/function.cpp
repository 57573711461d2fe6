// Functions: bind, plan, compile what is new, launch. A kernel is compiled once per (dtypes, ranks, facts).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>

#include "backends/cpu/cpu.h"
#include "backends/registry.h"
#include "kernel/launch.h"
#include "language/source.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/bind.h"
#include "runtime/device.h"
#include "runtime/judge.h"
#include "support/memory.h"

namespace cosmati {
namespace {

using runtime::Bound;

plan::Facts facts_of(const ir::Program& p, const oracle::Inputs& inputs, bool read_data) {
  plan::Facts facts;
  for (const TensorView& view : inputs.tensors) {
    std::vector<bool> unit;
    for (std::size_t d = 0; d < view.shape.size(); ++d) unit.push_back(view.shape[d] <= 1 || view.strides[d] == 1);
    facts.unit_stride.push_back(std::move(unit));
  }
  if (read_data)
    for (const auto& pair : runtime::check_memory(p, inputs.tensors)) facts.aliases.insert(pair);
  return facts;
}

// A compiled kernel and the plan it came from.
struct Compiled {
  plan::Plan plan;
  kernel::Kernel kernel;  // as lowered
  std::unique_ptr<kernel::Executable> executable;
};

std::int64_t bits_of(DType t, const ops::Scalar& s) {
  if (!is_float(t)) return s.i;
  std::int64_t bits = 0;
  ops::store(t, &bits, s);
  return bits;
}

kernel::Launch launch_of(const kernel::Kernel& k, const ir::Program& p, const oracle::Inputs& inputs) {
  kernel::Launch launch;
  for (const kernel::Param& param : k.params) {
    switch (param.source) {
      case kernel::Param::Source::extent:
        launch.params.push_back(inputs.extents[param.a]);
        break;
      case kernel::Param::Source::stride:
        launch.params.push_back(inputs.tensors[param.a].strides[param.b]);
        break;
      case kernel::Param::Source::scalar:
        launch.params.push_back(bits_of(p.scalars[param.a].dtype, inputs.scalars[param.a]));
        break;
    }
  }
  for (const kernel::Buffer& buffer : k.buffers) {
    kernel::Memory memory;
    if (buffer.kind == kernel::Buffer::Kind::argument) {
      const TensorView& view = inputs.tensors[buffer.tensor];
      memory.data = view.data;
      if (view.elements() > 0) {
        for (std::size_t d = 0; d < view.shape.size(); ++d) {
          std::int64_t reach = (view.shape[d] - 1) * view.strides[d];
          (reach < 0 ? memory.lo : memory.hi) += reach;
        }
        ++memory.hi;
      }
    }
    launch.buffers.push_back(memory);
  }
  return launch;
}

// What memory cannot hold is for the caller to make smaller.
template <class Body>
auto within_memory(const Program& program, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("{} needs more memory than there is for these arguments", program.name()),
              "use smaller extents");
}

// Scratch of one launch, sized by the kernel's own expressions.
std::vector<std::unique_ptr<char[]>> add_scratch(const kernel::Kernel& k, int workers, kernel::Launch& launch) {
  std::vector<std::unique_ptr<char[]>> owned;
  std::int64_t left = support::machine_memory();
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    const kernel::Buffer& buffer = k.buffers[i];
    if (buffer.kind == kernel::Buffer::Kind::argument) continue;
    std::int64_t elements = kernel::evaluate(k, buffer.elements, launch.params), total = 0;
    std::int64_t copies = buffer.kind == kernel::Buffer::Kind::worker_scratch ? workers : 1;
    if (elements < 0 || __builtin_mul_overflow(elements, copies * byte_size(buffer.dtype), &total) || (left -= total) < 0)
      throw Error(ErrorCode::bad_argument, {},
                  fmt::format("{} needs {} elements of scratch for {}, which is more than the memory there is", k.name, elements,
                              buffer.name),
                  "use smaller extents");
    // One vector of slack: wide loads of a backend may read past the last element.
    owned.push_back(std::unique_ptr<char[]>(new char[static_cast<std::size_t>(total) + 64]));
    launch.buffers[i] = {owned.back().get(), 0, elements};
  }
  return owned;
}

}  // namespace

struct Function::Impl {
  Impl(Program program, Device device, Options options)
      : instances(std::move(program)), device(std::move(device)), options(std::move(options)) {}

  const Compiled& compiled(const Bound& bound, bool read_data, bool executable) {
    const ir::Program& p = bound.instance->inlined;
    plan::Facts facts = facts_of(bound.instance->program, bound.inputs, read_data);
    std::string key;
    for (const auto& [variable, type] : bound.instance->binding.types) key += fmt::format("{}={},", variable, name(type));
    for (const auto& [pack, count] : bound.instance->binding.packs) key += fmt::format("{}={},", pack, count);
    for (const auto& dims : facts.unit_stride) {
      for (bool unit : dims) key += unit ? '1' : '0';
      key += ';';
    }
    for (const auto& [in, out] : facts.aliases) key += fmt::format("{}={},", in.index, out.index);
    std::lock_guard lock(mutex);
    auto& slot = kernels[key];
    if (!slot) {
      plan::Knobs knobs(options.knobs.begin(), options.knobs.end());
      if (options.plan) {
        for (const auto& [knob, value] : plan::knobs_of(*options.plan)) knobs[knob] = value;
      }
      auto made = std::make_unique<Compiled>();
      made->plan = plan::make_plan(p, language::print(bound.instance->program), device.name(), knobs, facts);
      if (options.plan) plan::require_same(p, made->plan, *options.plan);
      made->kernel = lower::lower(p, made->plan.mapping, facts);
      slot = std::move(made);
    }
    if (executable && !slot->executable) {
      kernel::Kernel expanded = kernel::expand(slot->kernel);
      kernel::verify(expanded, "expand");
      slot->executable = device.impl()->compile(expanded);
      ++compiles;
    }
    return *slot;
  }

  void run(const Arguments& arguments) {
    Bound bound = runtime::bind(instances, arguments, {});
    if (device.impl()->kind == Device::Impl::Kind::oracle) {
      oracle::Result result = oracle::run(bound.instance->program, bound.inputs);
      std::size_t o = 0;
      for (std::size_t t = 0; t < bound.inputs.tensors.size(); ++t)
        if (bound.instance->program.tensors[t].access != ir::Access::in)
          runtime::write(result.outputs[o++], bound.inputs.tensors[t]);
      return;
    }
    const Compiled& c = compiled(bound, true, true);
    kernel::Launch launch = launch_of(c.kernel, bound.instance->inlined, bound.inputs);
    auto scratch = add_scratch(c.kernel, c.executable->workers(), launch);
    c.executable->run(launch);
  }

  runtime::Instances instances;
  Device device;
  Options options;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Compiled>> kernels;
  std::atomic<std::size_t> compiles{0};
};

Function::Function(Program program, Device device, Options options)
    : impl_(std::make_shared<Impl>(std::move(program), std::move(device), std::move(options))) {
  plan::check_knobs({impl_->options.knobs.begin(), impl_->options.knobs.end()});
}

void Function::operator()(const Arguments& arguments) const {
  within_memory(impl_->instances.program(), [&] { impl_->run(arguments); });
}

std::vector<Function::OutputShape> Function::missing_outputs(const Arguments& arguments) const {
  Bound bound = runtime::bind(impl_->instances, arguments, {true, false});
  std::vector<OutputShape> shapes;
  for (std::uint32_t t : bound.missing)
    shapes.push_back({bound.instance->program.tensors[t].name, bound.inputs.tensors[t].dtype, bound.inputs.tensors[t].shape});
  return shapes;
}

std::string Function::plan(const Arguments& arguments) const {
  Bound bound = runtime::bind(impl_->instances, arguments, {true, false});
  return plan::to_json(bound.instance->inlined, impl_->compiled(bound, false, false).plan);
}

std::string Function::explain(const Arguments& arguments) const {
  Bound bound = runtime::bind(impl_->instances, arguments, {true, false});
  return plan::to_text(bound.instance->inlined, impl_->compiled(bound, false, false).plan);
}

std::string Function::emit(const Arguments& arguments, const std::string& as) const {
  Bound bound = runtime::bind(impl_->instances, arguments, {true, false});
  if (as == "tile") return language::print(bound.instance->program);
  const Compiled& c = impl_->compiled(bound, false, false);
  if (as == "kernel") return kernel::print(c.kernel);
  if (as == "llvm" || as == "asm") {
    backends::require("cpu");
    return cpu::emit(kernel::expand(c.kernel), as);
  }
  throw Error(ErrorCode::bad_argument, {}, fmt::format("a program is not emitted as `{}`", as),
              "the forms are tile, kernel, llvm, asm");
}

std::size_t Function::compiles() const { return impl_->compiles; }

std::vector<Judgement> judge(const Program& program, const Arguments& before, const Arguments& after) {
  runtime::Instances instances(program);
  Bound bound = runtime::bind(instances, before, {true, true});
  Bound results = runtime::bind(instances, after, {false, false});
  std::vector<TensorView> got;
  const ir::Program& p = bound.instance->program;
  for (std::size_t t = 0; t < p.tensors.size(); ++t)
    if (p.tensors[t].access != ir::Access::in) got.push_back(results.inputs.tensors[t]);
  // Outputs bind extents too: the run is judged at the extents it had.
  bound.inputs.extents = results.inputs.extents;
  return within_memory(program, [&] { return runtime::judge(p, bound.inputs, got); });
}

Probe probe(const Program& program, const Arguments& arguments, const std::string& name) {
  runtime::Instances instances(program);
  Bound bound = runtime::bind(instances, arguments, {true, true});
  const ir::Program& p = bound.instance->program;
  std::string known;
  for (const auto& [n, value] : p.names) {
    known += (known.empty() ? "" : ", ") + n;
    if (n != name) continue;
    oracle::Options options;
    options.probe = value;
    oracle::Result result = within_memory(program, [&] { return oracle::run(p, bound.inputs, options); });
    Probe out;
    for (ir::AxisId axis : p.program_axes)
      if (ir::contains(p[value].axes, axis)) out.axes.push_back(p[axis].name);
    for (ir::AxisId axis : p[value].axes)
      if (!p[axis].program) out.axes.push_back(p[axis].name);
    out.shape = result.probe->shape;
    for (const ops::Scalar& s : result.probe->values)
      out.values.push_back(is_float(p[value].dtype) ? s.f : static_cast<double>(s.i));
    return out;
  }
  throw Error(ErrorCode::unknown_name, {}, fmt::format("{} names no value `{}`", p.name, name),
              known.empty() ? "it names no value" : "its names are " + known);
}

ContractBounds contract_bounds(const Program& program, const Arguments& arguments, const std::string& parameter) {
  runtime::Instances instances(program);
  Bound bound = runtime::bind(instances, arguments, {true, false});
  const ir::Program& p = bound.instance->program;
  std::vector<std::optional<ops::Scalar>> scalars(bound.inputs.scalars.begin(), bound.inputs.scalars.end());
  ContractBounds bounds;
  for (const ir::Tensor& tensor : p.tensors) {
    if (tensor.name != parameter) continue;
    auto value = [&](const std::optional<ir::ValueId>& v) -> std::optional<std::int64_t> {
      if (!v) return std::nullopt;
      auto s = runtime::launch_value(p, *v, bound.inputs.extents, scalars);
      return s ? std::optional(s->i) : std::nullopt;
    };
    bounds = {value(tensor.contract.lo), value(tensor.contract.hi), tensor.contract.sorted, tensor.contract.distinct};
  }
  return bounds;
}

}  // namespace cosmati
