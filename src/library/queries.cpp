// Questions about a program and arguments that compile nothing: judgement by the oracle, its values, the bounds of contracts.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "library/judge.h"
#include "library/proofs.h"
#include "runtime/bind.h"
#include "runtime/extents.h"
#include "runtime/within_memory.h"

namespace cosmati {

using runtime::Bound;
using runtime::within_memory;

struct Judge::Impl {
  explicit Impl(const Program& of) : instances(of, library::proofs()) {}

  runtime::Instances instances;
  std::shared_ptr<const runtime::Instance> instance;
  library::Reference reference;
};

Judge::Judge(const Program& program, const Arguments& before, const Fraction& progress) {
  auto made = std::make_shared<Impl>(program);
  const Bound bound = runtime::bind(made->instances, before, {true, true});
  made->instance = bound.instance;
  made->reference = within_memory(program, [&] { return library::reference(bound.instance->program, bound.inputs, progress); });
  impl_ = std::move(made);
}

std::vector<Judgement> Judge::operator()(const Arguments& after) const {
  const ir::Program& p = impl_->instance->program;
  std::vector<TensorView> got;
  for (const Function::OutputShape& output : outputs()) {
    const auto named = [&](const auto& argument) { return argument.first == output.name; };
    const auto given = std::find_if(after.begin(), after.end(), named);
    const auto* view = given == after.end() ? nullptr : std::get_if<TensorView>(&given->second);
    if (!view || (!view->data && view->elements() > 0))
      throw Error(ErrorCode::bad_argument, {}, fmt::format("there is no array to judge for the output {}", output.name));
    if (view->dtype != output.dtype)
      throw Error(ErrorCode::bad_argument, {},
                  fmt::format("{} is {}, but {} writes {}", output.name, name(view->dtype), p.name, name(output.dtype)));
    if (view->shape != output.shape)
      throw Error(ErrorCode::extent_mismatch, {},
                  fmt::format("{} is [{}], but {} writes [{}]", output.name, fmt::join(view->shape, ", "), p.name,
                              fmt::join(output.shape, ", ")));
    got.push_back(*view);
  }
  return library::judge(p, impl_->reference, got);
}

std::vector<Function::OutputShape> Judge::outputs() const {
  std::vector<Function::OutputShape> shapes;
  for (const ir::Tensor& tensor : impl_->instance->program.tensors)
    if (tensor.access != ir::Access::in)
      shapes.push_back({tensor.name, tensor.dtype, impl_->reference.wide.outputs[shapes.size()].shape});
  return shapes;
}

std::vector<Judgement> judge(const Program& program, const Arguments& before, const Arguments& after, const Fraction& progress) {
  const runtime::Instances instances(program, library::proofs());
  Bound bound = runtime::bind(instances, before, {true, true});
  Bound results = runtime::bind(instances, after, {false, false});
  std::vector<TensorView> got;
  const ir::Program& p = bound.instance->program;
  for (std::size_t t = 0; t < p.tensors.size(); ++t)
    if (p.tensors[t].access != ir::Access::in) got.push_back(results.inputs.tensors[t]);
  // Outputs bind extents too: the run is judged at the extents it had.
  bound.inputs.extents = results.inputs.extents;
  return within_memory(program, [&] { return library::judge(p, library::reference(p, bound.inputs, progress), got); });
}

Probe probe(const Program& program, const Arguments& arguments, const std::string& name, const Fraction& progress) {
  const runtime::Instances instances(program, library::proofs());
  Bound bound = runtime::bind(instances, arguments, {true, true});
  const ir::Program& p = bound.instance->program;
  std::string known;
  for (const auto& [n, value] : p.names) {
    known += (known.empty() ? "" : ", ") + n;
    if (n != name) continue;
    oracle::Options options;
    options.probe = value;
    options.progress = progress;
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
  throw Error(ErrorCode::unknown_name, program.source().signature().where, fmt::format("{} names no value `{}`", p.name, name),
              known.empty() ? "it names no value" : "its names are " + known);
}

ContractBounds contract_bounds(const Program& program, const Arguments& arguments, const std::string& parameter) {
  const runtime::Instances instances(program, library::proofs());
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
