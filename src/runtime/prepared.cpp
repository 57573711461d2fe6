// Filling in and checking a repeated call.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernel/kernel.h"
#include "support/check.h"
#include "support/fork.h"
#include "support/memory.h"

namespace cosmati::runtime {
namespace {

bool same_value(const ops::Scalar& a, const ops::Scalar& b) { return a.i == b.i && std::memcmp(&a.f, &b.f, sizeof a.f) == 0; }

std::size_t hash_of(const Form& form) {
  std::uint64_t h = form.size();
  for (const std::int64_t word : form) {
    h = (h ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

// Where an expression of params is evaluated and refused: a size that no memory has.
[[noreturn]] void too_large(const kernel::Kernel& k, const kernel::Buffer& buffer, std::int64_t elements) {
  throw Error(ErrorCode::bad_argument, {},
              fmt::format("{} needs {} elements of scratch for {}, which is more than the memory there is", k.name, elements,
                          buffer.name),
              "use smaller extents");
}

// Extents, strides or memory that the plan is not for.
[[noreturn]] void outside_conditions(const Kernel::Impl& kernel) {
  std::string conditions;
  for (const std::string& condition : kernel.image.domain)
    if (condition.find(" has at ") != condition.npos || condition.find(" multiple") != condition.npos)
      conditions += (conditions.empty() ? "" : "; ") + condition;
  throw Error(ErrorCode::bad_plan, {}, fmt::format("the plan of {} is for arguments where {}", kernel.image.name, conditions),
              "leave out the knobs resident and vector, or the plan, or set more lanes");
}

}  // namespace

void form_of(Matched matched, Form& form) {
  form.clear();
  for (const Argument* argument : matched) {
    if (!argument) {
      form.push_back(-1);
      continue;
    }
    const TensorView* view = std::get_if<TensorView>(argument);
    if (!view) {
      form.push_back(-2);
      continue;
    }
    form.push_back(static_cast<std::int64_t>(view->dtype) << 8 | (is_aligned(*view) ? 0 : 4) | (view->read_only ? 2 : 0) |
                   (view->data ? 1 : 0));
    form.push_back(static_cast<std::int64_t>(view->shape.size() << 32 | view->strides.size()));
    form.insert(form.end(), view->shape.begin(), view->shape.end());
    form.insert(form.end(), view->strides.begin(), view->strides.end());
  }
}

Prepared::Prepared(Form form, const Bound& bound, Matched matched, std::shared_ptr<const Kernel::Impl> kernel)
    : form_(std::move(form)),
      instance_(bound.instance),
      kernel_(std::move(kernel)),
      inputs_(bound.inputs),
      aliases_(bound.aliases) {
  const ir::Program& p = instance_->inlined;
  std::vector<std::uint32_t> parameter_of(p.scalars.size());
  tensors_.resize(p.tensors.size());
  for (std::uint32_t i = 0; i < p.parameters.size(); ++i) {
    const auto [is_tensor, index] = p.parameters[i];
    if (is_tensor) {
      tensors_[index] = {i, reach_of(inputs_.tensors[index]), p.tensors[index].access != ir::Access::in};
    } else {
      parameter_of[index] = i;
      if (instance_->decides[index] && matched[i]) decided_.push_back({i, index, inputs_.scalars[index]});
    }
  }
  const kernel::Kernel& k = kernel_->image.interface;
  pattern_.params = kernel::params_of(k, shape_of(p, inputs_));
  if (!kernel::meets_conditions(k, pattern_.params)) outside_conditions(*kernel_);
  for (std::uint32_t i = 0; i < k.params.size(); ++i) {
    const kernel::Param& param = k.params[i];
    if (param.source == kernel::Param::Source::scalar && !instance_->decides[param.a] && matched[parameter_of[param.a]])
      scalars_.push_back({parameter_of[param.a], param.a, i});
  }
  for (std::uint32_t i = 0; i < k.buffers.size(); ++i) {
    const kernel::Buffer& buffer = k.buffers[i];
    kernel::Memory memory;
    if (buffer.kind == kernel::Buffer::Kind::argument) {
      const Reach& reach = tensors_[buffer.tensor].reach;
      const std::int64_t size = byte_size(inputs_.tensors[buffer.tensor].dtype);
      memory = {inputs_.tensors[buffer.tensor].data, reach.lo / size, reach.hi / size};
      buffers_.emplace_back(i, buffer.tensor);
    }
    pattern_.buffers.push_back(memory);
  }
  if (kernel_->executable) lay_out_scratch(kernel_->executable->workers());
}

// Scratch of one launch, sized by the kernel's own expressions.
void Prepared::lay_out_scratch(int workers) {
  const kernel::Kernel& k = kernel_->image.interface;
  std::int64_t left = support::machine_memory();
  for (std::uint32_t i = 0; i < k.buffers.size(); ++i) {
    const kernel::Buffer& buffer = k.buffers[i];
    if (buffer.kind == kernel::Buffer::Kind::argument) continue;
    const std::int64_t elements = kernel::evaluate(k, buffer.elements, pattern_.params);
    const std::int64_t copies = buffer.kind == kernel::Buffer::Kind::worker_scratch ? workers : 1;
    std::int64_t total = 0;
    if (elements < 0 || __builtin_mul_overflow(elements, copies * byte_size(buffer.dtype), &total) || (left -= total) < 0)
      too_large(k, buffer, elements);
    scratch_.push_back({i, scratch_bytes_, elements});
    // One vector of slack: wide loads of a backend may read past the last element.
    scratch_bytes_ += (static_cast<std::size_t>(total) / memory_alignment + 2) * memory_alignment;
  }
  if (!scratch_.empty()) scratch_bytes_ += memory_alignment;  // memory of any alignment is rounded up
}

void Prepared::place_scratch(void* memory, kernel::Launch& launch) const {
  if (scratch_.empty()) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  char* base = static_cast<char*>(memory) + (memory_alignment - address % memory_alignment) % memory_alignment;
  for (const Piece& piece : scratch_) launch.buffers[piece.buffer] = {base + piece.offset, 0, piece.elements};
}

bool Prepared::fits(Matched matched) const {
  const ir::Program& p = instance_->inlined;
  for (const Decided& d : decided_)
    if (!same_value(convert(*matched[d.parameter], p.scalars[d.index]), d.value)) return false;
  for (std::uint32_t o = 0; o < tensors_.size(); ++o) {
    const Tensor& out = tensors_[o];
    if (!out.written || out.reach.lo == out.reach.hi) continue;
    const std::int64_t at = reinterpret_cast<std::intptr_t>(view(matched, o).data);
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& other = tensors_[i];
      if (i == o || other.reach.lo == other.reach.hi) continue;
      const std::int64_t there = reinterpret_cast<std::intptr_t>(view(matched, i).data);
      const bool alias =
          std::find(aliases_.begin(), aliases_.end(), std::pair(ir::TensorId{i}, ir::TensorId{o})) != aliases_.end();
      const bool apart = at + out.reach.hi <= there + other.reach.lo || there + other.reach.hi <= at + out.reach.lo;
      if (alias ? at != there : !apart) return false;
    }
  }
  return true;
}

oracle::Inputs Prepared::inputs(Matched matched) const {
  const ir::Program& p = instance_->inlined;
  oracle::Inputs inputs = inputs_;
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) inputs.tensors[t].data = view(matched, t).data;
  for (std::uint32_t i = 0; i < p.parameters.size(); ++i)
    if (const auto [is_tensor, index] = p.parameters[i]; !is_tensor && matched[i])
      inputs.scalars[index] = convert(*matched[i], p.scalars[index]);
  return inputs;
}

void Prepared::check_contracts(Matched matched, const OnGpu& on) const {
  if (has_contracts()) runtime::check_contracts(instance_->program, inputs(matched), on);
}

void Prepared::fill(Matched matched, kernel::Launch& launch) const {
  const ir::Program& p = instance_->inlined;
  for (const auto& [buffer, tensor] : buffers_) launch.buffers[buffer].data = view(matched, tensor).data;
  for (const Scalar& s : scalars_)
    launch.params[s.param] = kernel::param_bits(p.scalars[s.index].dtype, convert(*matched[s.parameter], p.scalars[s.index]));
}

void Prepared::run(Matched matched, const kernel::Launch& launch, const kernel::Queue* queue) const {
  if (kernel_->executable) return kernel_->executable->run(launch, queue);
  kernel_->interpret(instance_->program, inputs(matched), launch.progress);
}

std::shared_ptr<const Prepared> PreparedTable::find(const Form& form, Matched matched) const {
  std::lock_guard lock(support::short_mutex(this));
  for (const auto& prepared : kept_[hash_of(form) % sets])
    if (prepared && prepared->form() == form && prepared->fits(matched)) return prepared;
  return nullptr;
}

void PreparedTable::keep(std::shared_ptr<const Prepared> prepared) {
  auto& ways = kept_[hash_of(prepared->form()) % sets];
  std::shared_ptr<const Prepared> displaced;  // dies outside of the section
  std::lock_guard lock(support::short_mutex(this));
  std::rotate(std::begin(ways), std::end(ways) - 1, std::end(ways));
  displaced = std::exchange(ways[0], std::move(prepared));
}

}  // namespace cosmati::runtime
