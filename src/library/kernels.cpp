// Planning, lowering and compiling are plain functions of their inputs; here is only who does them, and once.
// SPDX-License-Identifier: Apache-2.0
#include "library/kernels.h"

#include <fmt/format.h>

#include <chrono>

#include "backends/cpu/cpu.h"
#include "backends/cuda/cuda.h"
#include "library/build_id.h"
#include "library/cache_entry.h"
#include "library/judge.h"
#include "library/kernel_image.h"
#include "library/profile.h"
#include "lower/lower.h"
#include "plan/legal.h"
#include "runtime/device.h"
#include "runtime/log.h"
#include "support/deep_stack.h"
#include "support/fork.h"
#include "support/hash.h"

namespace cosmati::library {

using runtime::Instance;
using runtime::is_logged;
using runtime::log;

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

std::string text_of(const kernel::Shape& shape) {
  std::string text;
  const auto add = [&](const std::vector<std::int64_t>& numbers) {
    for (const std::int64_t n : numbers) fmt::format_to(std::back_inserter(text), "{},", n);
    text += ';';
  };
  add(shape.extents);
  for (const auto& strides : shape.strides) add(strides);
  add(std::vector<std::int64_t>(shape.unaligned.begin(), shape.unaligned.end()));
  add(shape.scalars);
  return text;
}

std::string text_of(const plan::Knobs& knobs) {
  std::string text;
  for (const auto& [knob, value] : knobs) text += knob + "=" + value + "\n";
  return text;
}

std::optional<plan::Knobs> knobs_from(const std::string& text) {
  plan::Knobs knobs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t equal = text.find('=', at), end = text.find('\n', at);
    if (end == text.npos || equal > end) return std::nullopt;
    knobs[text.substr(at, equal - at)] = text.substr(equal + 1, end - equal - 1);
    at = end + 1;
  }
  return knobs;
}

std::string planner_key(const std::string& facts, plan::Planner::Search search) {
  return (search == plan::Planner::Search::rule ? "rule " : "all ") + facts;
}

constexpr std::size_t most_choices = 4096;  // that are remembered: shapes may be without end

kernel::Native native_of(const Device::Impl& device) {
  switch (device.kind) {
    case Device::Impl::Kind::cpu:
      return cpu::native();
    case Device::Impl::Kind::cuda:
      return cuda::native;
    default:
      return {};
  }
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void by_oracle(const ir::Program& program, const oracle::Inputs& inputs, const Fraction& progress) {
  const oracle::Result result = oracle::run(program, inputs, {oracle::Mode::wide, {}, {}, false, progress});
  std::size_t o = 0;
  for (std::size_t t = 0; t < inputs.tensors.size(); ++t)
    if (program.tensors[t].access != ir::Access::in) write(result.outputs[o++], inputs.tensors[t]);
}

}  // namespace

std::shared_ptr<const plan::Planner> Kernels::planner(const Instance& instance, const plan::Facts& facts,
                                                      plan::Planner::Search search) {
  return planners_.get(planner_key(text_of(instance.binding, facts), search), [&] {
    const plan::Knobs knobs(options_.knobs.begin(), options_.knobs.end());
    return std::make_shared<const plan::Planner>(
        instance.inlined, language::print(instance.program), target_, knobs, facts,
        [program = instance.inlined, facts, native = native_of(*device_.impl())](const plan::Mapping& mapping) {
          return kernel::expand(lower::lower(program, mapping, facts), native);
        },
        search);
  });
}

// Where nothing of a mapping can be legal.
void Kernels::require_offsets(const Instance& instance, const kernel::Shape& shape) const {
  if (const place::Verdict fit = plan::offsets_fit(instance.inlined, shape, target_); !fit)
    throw Error(ErrorCode::not_supported, {}, place::message(fit.refused()), std::string(place::remedy(fit.refused().reason)));
}

std::shared_ptr<const plan::Planner> Kernels::planner(const Instance& instance, const plan::Facts& facts,
                                                      const kernel::Shape& shape) {
  require_offsets(instance, shape);
  auto rule = planner(instance, facts, plan::Planner::Search::rule);
  return rule->first_will_do(shape) ? rule : planner(instance, facts, plan::Planner::Search::all);
}

plan::Plan Kernels::planned(const Instance& instance, const plan::Facts& facts, const kernel::Shape& shape) {
  if (!options_.plan) return support::on_deep_stack([&] { return planner(instance, facts, shape)->plan(shape); });
  plan::Knobs knobs(options_.knobs.begin(), options_.knobs.end());
  for (const auto& [knob, value] : plan::knobs_of(*options_.plan)) {
    const auto [set, is_new] = knobs.try_emplace(knob, value);
    if (!is_new && set->second != value)
      throw Error(ErrorCode::bad_plan, {}, fmt::format("knob {} is {} in the plan, but is set to {}", knob, value, set->second),
                  "a plan has its own knobs: leave out what is set, or leave out the plan");
  }
  plan::Plan plan = support::on_deep_stack(
      [&] { return plan::make_plan(instance.inlined, language::print(instance.program), target_, knobs, facts); });
  plan::require_same(instance.inlined, plan, *options_.plan);
  return plan;
}

// From memory, else from what an earlier process left, else from the planner.
plan::Knobs Kernels::choice(const Instance& instance, const plan::Facts& facts, const kernel::Shape& shape) {
  if (options_.plan) return {};  // it stands in the key
  const std::string facts_text = text_of(instance.binding, facts), text = facts_text + text_of(shape);
  {
    std::lock_guard lock(support::short_mutex(this));
    if (const auto known = choices_.find(text); known != choices_.end()) return known->second;
  }
  require_offsets(instance, shape);
  const auto rule = planner(instance, facts, plan::Planner::Search::rule);
  std::optional<plan::Knobs> knobs;
  if (rule->first_will_do(shape)) {
    knobs = rule->knobs(0);
  } else {
    const std::string key =
        disk_ ? fmt::format("choice {}\nprices {}\n{}", text_of(shape), target_.prices, key_of(instance, facts)) : "";
    const bool first = !planners_.find(planner_key(facts_text, plan::Planner::Search::all));
    if (disk_ && first)
      if (const std::optional<std::string> bytes = disk_->read(key)) {
        knobs = knobs_from(*bytes);
        if (!knobs) disk_->damaged(key, "its contents are no knobs");
      }
    if (!knobs) {
      const auto all = planner(instance, facts, plan::Planner::Search::all);
      knobs = all->knobs(all->choose(shape));
      // Of the first shape only: with it the next process begins, and need not search.
      if (disk_ && first && options_.jit != Jit::forbid) disk_->write(key, text_of(*knobs));
    }
  }
  std::lock_guard lock(support::short_mutex(this));
  if (choices_.size() >= most_choices) choices_.clear();
  choices_[text] = *knobs;
  return *knobs;
}

kernel::Kernel Kernels::lowered(const Instance& instance, const plan::Plan& plan) const {
  return support::on_deep_stack([&] { return lower::lower(instance.inlined, plan.mapping, plan.facts); });
}

Kernels::Kernels(Device device, const Options& options)
    : device_(std::move(device)),
      options_(options),
      target_(target_of(device_)),
      disk_(device_.impl()->kind == Device::Impl::Kind::cpu ? DiskCache::of(options) : nullptr) {}

Kernels::Got Kernels::get(const Instance& instance, const plan::Facts& facts, const kernel::Shape& shape) {
  return support::on_deep_stack([&]() -> Got {
    const Wanted wanted{instance, facts, shape, choice(instance, facts, shape)};
    bool compiled = false;
    auto kernel = kernels_.get(text_of(instance.binding, facts) + text_of(wanted.knobs), [&] {
      Got got = make(wanted);
      compiled = got.compiled;
      return got.kernel;
    });
    return {std::move(kernel), compiled};
  });
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

Kernels::Got Kernels::make(const Wanted& wanted) {
  const std::string key = key_of(wanted.instance, wanted.facts) + "choice\n" + text_of(wanted.knobs);
  if (auto kernel = from_disk(wanted.facts, key)) return {kernel, false};
  if (device_.impl()->kind == Device::Impl::Kind::oracle) return {compile(wanted, key), false};
  if (options_.jit == Jit::forbid) {
    if (auto kernel = made_before(wanted)) return {kernel, false};
    std::string domain;
    const ir::Program& program = wanted.instance.inlined;
    for (const std::string& condition : plan::domain(program, planned(wanted.instance, wanted.facts, wanted.shape)))
      domain += (domain.empty() ? "" : "; ") + condition;
    throw Error(ErrorCode::not_compiled, {},
                fmt::format("{} is not compiled for these facts, and compiling is forbidden: {}", program.name, domain),
                "warm() a function that may compile with arguments like these and the same cache");
  }
  std::unique_ptr<DiskCache::Lock> turn;
  if (disk_) {
    turn = disk_->lock(key);
    // Whoever had the lock before may have compiled this kernel.
    if (auto kernel = from_disk(wanted.facts, key)) return {kernel, false};
  }
  return {compile(wanted, key), true};
}

// Every candidate is right for every shape: where compiling is forbidden, one that there is serves for the best.
std::shared_ptr<const Kernel::Impl> Kernels::made_before(const Wanted& wanted) {
  if (options_.plan) return nullptr;
  const std::string facts = text_of(wanted.instance.binding, wanted.facts), key = key_of(wanted.instance, wanted.facts);
  for (const plan::Plan::Priced& candidate : planned(wanted.instance, wanted.facts, wanted.shape).candidates) {
    const std::string knobs = text_of(candidate.knobs);
    if (knobs == text_of(wanted.knobs)) continue;
    if (auto kernel = kernels_.find(facts + knobs)) return kernel;
    if (auto kernel = from_disk(wanted.facts, key + "choice\n" + knobs)) return kernel;
  }
  return nullptr;
}

std::shared_ptr<const Kernel::Impl> Kernels::from_disk(const plan::Facts& facts, const std::string& key) {
  if (!disk_) return nullptr;
  const auto start = std::chrono::steady_clock::now();
  const std::optional<std::string> bytes = disk_->read(key);
  if (!bytes) return nullptr;
  std::optional<StoredKernel> stored = stored_kernel(*bytes);
  if (!stored) {
    disk_->damaged(key, "its contents are no kernel");
    return nullptr;
  }
  auto made = std::make_shared<Kernel::Impl>();
  made->facts = facts;
  try {
    made->executable = cpu::load(stored->image.interface, stored->object, device_.impl()->cpu);
  } catch (const InternalError& e) {
    disk_->damaged(key, e.what());
    return nullptr;
  }
  made->image = std::move(stored->image);
  if (is_logged())
    log(LogLevel::info, fmt::format("{}: read from the disk cache in {:.1f} ms", made->image.name, milliseconds_since(start)));
  return made;
}

std::shared_ptr<const Kernel::Impl> Kernels::compile(const Wanted& wanted, const std::string& key) {
  const auto& [instance, facts, shape, knobs] = wanted;
  const auto start = std::chrono::steady_clock::now();
  const plan::Plan plan = planned(instance, facts, shape);
  auto made = std::make_shared<Kernel::Impl>();
  made->facts = facts;
  made->image = {instance.program.name,
                 plan::to_json(instance.inlined, plan),
                 plan::to_text(instance.inlined, plan),
                 plan::domain(instance.inlined, plan),
                 {}};
  const Device::Impl& device = *device_.impl();
  if (device.kind == Device::Impl::Kind::oracle) {
    made->interpret = by_oracle;
  } else {
    const kernel::Kernel k = lowered(instance, plan), expanded = kernel::expand(k, native_of(device));
    kernel::verify(expanded, "expand");
    made->image.interface = interface_of(k);
    if (device.kind == Device::Impl::Kind::sim) {
      made->executable = kernel::simulate(expanded);
    } else if (device.kind == Device::Impl::Kind::cuda) {
      made->executable = cuda::compile(expanded, *device.gpu);
    } else {
      const cpu::Object object = cpu::compile_object(expanded, "cosmati_" + support::hash128(key));
      made->executable = cpu::load(made->image.interface, object, device.cpu);
      if (disk_) disk_->write(key, to_bytes({made->image, object}));
    }
    ++compiles_;
    if (is_logged())
      log(LogLevel::info,
          fmt::format("{}: compiled for {} in {:.1f} ms", made->image.name, device.name, milliseconds_since(start)));
  }
  return made;
}

}  // namespace cosmati::library
