// Planning, lowering and compiling are plain functions of their inputs; here is only who does them, and once.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels.h"

#include <fmt/format.h>

#include <chrono>

#include "backends/cpu/cpu.h"
#include "lower/lower.h"
#include "runtime/build_id.h"
#include "runtime/cache_entry.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "support/hash.h"

namespace cosmati {

const std::string& Kernel::name() const { return impl_->image.name; }
const std::string& Kernel::plan() const { return impl_->image.plan; }
const std::string& Kernel::explain() const { return impl_->image.explanation; }
const std::vector<std::string>& Kernel::domain() const { return impl_->image.domain; }

namespace runtime {
namespace {

std::string text_of(const language::Binding& binding, const plan::Facts& facts) {
  std::string text;
  for (const auto& [variable, type] : binding.types) text += fmt::format("{}={},", variable, name(type));
  for (const auto& [pack, count] : binding.packs) text += fmt::format("{}...={},", pack, count);
  for (const auto& dims : facts.unit_stride) {
    for (const bool unit : dims) text += unit ? '1' : '0';
    text += ';';
  }
  for (const auto& [in, out] : facts.aliases) text += fmt::format("{}={},", in.index, out.index);
  return text;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

plan::Facts facts_of(const std::vector<TensorView>& tensors, const Aliases& aliases) {
  plan::Facts facts;
  for (const TensorView& view : tensors) {
    std::vector<bool> unit;
    for (std::size_t d = 0; d < view.shape.size(); ++d) unit.push_back(view.shape[d] <= 1 || view.strides[d] == 1);
    facts.unit_stride.push_back(std::move(unit));
  }
  for (const auto& pair : aliases) facts.aliases.insert(pair);
  return facts;
}

std::optional<std::string> outside_domain(const Kernel::Impl& kernel, const ir::Program& program, const plan::Facts& facts) {
  for (std::size_t t = 0; t < program.tensors.size(); ++t)
    for (std::size_t d = 0; d < program.tensors[t].dims.size(); ++d)
      if (kernel.facts.unit_stride[t][d] && !facts.unit_stride[t][d])
        return fmt::format("stride({}, {}) == 1 or extent <= 1", program.tensors[t].name, d);
  for (const auto& [in, out] : kernel.facts.aliases)
    if (!facts.aliases.contains({in, out})) return fmt::format("{} is exactly {}", program[out].name, program[in].name);
  for (const auto& [in, out] : facts.aliases)
    if (!kernel.facts.aliases.contains({in, out}))
      return fmt::format("{} does not share memory with {}", program[out].name, program[in].name);
  return std::nullopt;
}

plan::Plan Kernels::planned(const Instance& instance, const plan::Facts& facts) const {
  plan::Knobs knobs(options_.knobs.begin(), options_.knobs.end());
  if (options_.plan)
    for (const auto& [knob, value] : plan::knobs_of(*options_.plan)) knobs[knob] = value;
  plan::Plan plan = plan::make_plan(instance.inlined, language::print(instance.program), device_.name(), knobs, facts);
  if (options_.plan) plan::require_same(instance.inlined, plan, *options_.plan);
  return plan;
}

kernel::Kernel Kernels::lowered(const Instance& instance, const plan::Plan& plan) const {
  return lower::lower(instance.inlined, plan.mapping, plan.facts);
}

Kernels::Kernels(Device device, const Options& options)
    : device_(std::move(device)),
      options_(options),
      disk_(device_.impl()->kind == Device::Impl::Kind::cpu ? DiskCache::of(options) : nullptr) {}

Kernels::Got Kernels::get(const Instance& instance, const plan::Facts& facts) {
  bool compiled = false;
  auto kernel = kernels_.get(text_of(instance.binding, facts), [&] {
    Got got = make(instance, facts);
    compiled = got.compiled;
    return got.kernel;
  });
  return {std::move(kernel), compiled};
}

// Everything that decides about code. The plan follows from what stands here and from the build, so that it need not be made.
std::string Kernels::key_of(const Instance& instance, const plan::Facts& facts) const {
  std::string key =
      fmt::format("cosmati {} {}\nformat {}\ndevice {}: {}\nfacts {}\n", version(), build_id(), cache_format, device_.name(),
                  device_.impl()->kind == Device::Impl::Kind::cpu ? cpu::identity() : "", text_of(instance.binding, facts));
  for (const auto& [knob, value] : options_.knobs) key += fmt::format("knob {} = {}\n", knob, value);
  if (options_.plan) key += fmt::format("plan {}\n", support::hash128(*options_.plan));
  return key + language::print(instance.program);
}

Kernels::Got Kernels::make(const Instance& instance, const plan::Facts& facts) {
  const std::string key = key_of(instance, facts);
  if (auto kernel = from_disk(facts, key)) return {kernel, false};
  if (device_.impl()->kind == Device::Impl::Kind::oracle) return {compile(instance, facts, key), false};
  if (options_.jit == Jit::forbid) {
    std::string domain;
    for (const std::string& condition : plan::domain(instance.inlined, planned(instance, facts)))
      domain += (domain.empty() ? "" : "; ") + condition;
    throw Error(ErrorCode::not_compiled, {},
                fmt::format("{} is not compiled for these facts, and compiling is forbidden: {}", instance.program.name, domain),
                "warm() a function that may compile with arguments like these and the same cache");
  }
  std::unique_ptr<DiskCache::Lock> turn;
  if (disk_) {
    turn = disk_->lock(key);
    // Whoever had the lock before may have compiled this kernel.
    if (auto kernel = from_disk(facts, key)) return {kernel, false};
  }
  return {compile(instance, facts, key), true};
}

std::shared_ptr<const Kernel::Impl> Kernels::from_disk(const plan::Facts& facts, const std::string& key) {
  if (!disk_) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  const std::optional<std::string> bytes = disk_->read(key);
  if (!bytes) return nullptr;
  std::optional<KernelImage> image = image_of(*bytes);
  if (!image) {
    disk_->damaged(key, "its contents are no kernel");
    return nullptr;
  }
  auto made = std::make_shared<Kernel::Impl>();
  made->facts = facts;
  try {
    made->executable = cpu::load(image->interface, image->object, device_.impl()->cpu);
  } catch (const InternalError& e) {
    disk_->damaged(key, e.what());
    return nullptr;
  }
  image->object = {};
  made->image = std::move(*image);
  if (is_logged())
    log(LogLevel::info, fmt::format("{}: read from the disk cache in {:.1f} ms", made->image.name, milliseconds_since(start)));
  return made;
}

std::shared_ptr<const Kernel::Impl> Kernels::compile(const Instance& instance, const plan::Facts& facts, const std::string& key) {
  const auto start = std::chrono::steady_clock::now();
  const plan::Plan plan = planned(instance, facts);
  auto made = std::make_shared<Kernel::Impl>();
  made->facts = facts;
  KernelImage image{instance.program.name,
                    plan::to_json(instance.inlined, plan),
                    plan::to_text(instance.inlined, plan),
                    plan::domain(instance.inlined, plan),
                    {},
                    {}};
  const Device::Impl& device = *device_.impl();
  if (device.kind != Device::Impl::Kind::oracle) {
    const kernel::Native native = device.kind == Device::Impl::Kind::cpu ? cpu::native() : kernel::Native{};
    const kernel::Kernel k = lowered(instance, plan), expanded = kernel::expand(k, native);
    kernel::verify(expanded, "expand");
    image.interface = interface_of(k);
    if (device.kind == Device::Impl::Kind::sim) {
      made->executable = kernel::simulate(expanded);
    } else {
      image.object = cpu::compile_object(expanded, "cosmati_" + support::hash128(key), device.cpu);
      made->executable = cpu::load(image.interface, image.object, device.cpu);
      if (disk_) disk_->write(key, to_bytes(image));
      image.object = {};
    }
    ++compiles_;
    if (is_logged())
      log(LogLevel::info, fmt::format("{}: compiled for {} in {:.1f} ms", image.name, device.name, milliseconds_since(start)));
  }
  made->image = std::move(image);
  return made;
}

}  // namespace runtime
}  // namespace cosmati
