// The comparisons of one fuzz case.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/execute.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <cosmati/runtime.h>

#include "backends/registry.h"
#include "fuzz/memory.h"
#include "kernel/kernel.h"
#include "library/check_program.h"
#include "library/judge.h"
#include "library/random_inputs.h"
#include "prove/prove.h"

namespace cosmati::fuzz {
namespace {

struct Found {  // thrown inside this file only
  Failure failure;
};
[[noreturn]] void fail(std::string kind, std::string detail) { throw Found{{std::move(kind), std::move(detail)}}; }

// What a launch may refuse although the program is proven: arguments that the fuzzer does not make well, and combinations that
// are documented as not built.
bool may_refuse_launch(ErrorCode code) {
  return code == ErrorCode::bad_argument || code == ErrorCode::extent_mismatch || code == ErrorCode::not_supported;
}

bool has_cpu() {
  for (const backends::Backend& b : backends::list())
    if (b.name == "cpu") return b.present;
  return false;
}

struct Arrays {
  std::vector<std::unique_ptr<Guarded>> tensors;
  Arguments arguments;
};

class Execution {
 public:
  Execution(const Case& c, Counts& counts) : c_(c), counts_(counts), random_(c.seed * 977 + 5) {}

  void run() {
    std::optional<Program> program;
    try {
      const std::vector<Program> programs = parse(c_.text, "fuzz.tile");
      if (programs.empty()) return;
      program = programs.back();
      p_ = program->source().instantiate(c_.binding);
      ir::verify(p_, "fuzz");
      prove::require_proven(p_);
    } catch (const Error& e) {
      ++counts_.refused[static_cast<int>(e.code)];
      if (c_.tell) fmt::print("seed {} refused: {}\n", c_.seed, e.what());
      return;
    }
    ++counts_.accepted;
    const Program again = read_back();
    check_by_oracle();
    for (int r = 0; r < c_.runs; ++r) launch(*program, again, r);
  }

 private:
  Program read_back() {
    const std::string printed = language::print(p_);
    try {
      const Program again = parse(printed, "printed.tile").back();
      ir::Program q = again.source().instantiate({});
      const std::string twice = language::print(q);
      if (twice != printed) fail("print differs", printed + "\n--- printed again\n" + twice);
      prove::require_proven(q);
      return again;
    } catch (const Error& e) {
      fail("print is refused", std::string(e.what()) + "\n" + printed);
    }
  }

  void check_by_oracle() {
    if (p_.streams.empty() && random_() % 8 != 0) return;
    try {
      library::check_by_oracle(p_, c_.seed);
    } catch (const Error& e) {
      fail(fmt::format("check: {}", name(e.code)), e.what());
    }
  }

  Arguments scalar_arguments(const oracle::Inputs& inputs) const {
    Arguments arguments;
    for (std::size_t s = 0; s < p_.scalars.size(); ++s) {
      const ir::Scalar& scalar = p_.scalars[s];
      if (scalar.fallback) continue;
      if (is_float(scalar.dtype))
        arguments.emplace_back(scalar.name, inputs.scalars[s].f);
      else if (is_bool(scalar.dtype))
        arguments.emplace_back(scalar.name, inputs.scalars[s].i != 0);
      else
        arguments.emplace_back(scalar.name, inputs.scalars[s].i);
    }
    return arguments;
  }

  Arrays arrays(const oracle::Inputs& inputs, const std::vector<Layout>& layouts, Poison poison) const {
    Arrays a;
    a.arguments = scalar_arguments(inputs);
    for (std::size_t t = 0; t < p_.tensors.size(); ++t) {
      TensorView from = inputs.tensors[t];
      if (p_.tensors[t].access == ir::Access::out) from.data = nullptr;
      a.tensors.push_back(std::make_unique<Guarded>(from, layouts[t], poison, p_.tensors[t].access == ir::Access::in));
      a.arguments.emplace_back(p_.tensors[t].name, a.tensors.back()->view());
    }
    return a;
  }

  // Devices agree bit for bit under one plan, and how many lanes a group has is part of it.
  std::map<std::string, std::string> same_lanes() { return {{"lanes", random_() % 2 ? "8" : random_() % 2 ? "4" : "1"}}; }

  // A printed program may not have the names that homes are for.
  static const Program& on_cpu_as(const Options& options, const Program& program, const Program& printed) {
    const bool homes =
        std::any_of(options.knobs.begin(), options.knobs.end(), [](const auto& knob) { return knob.first.starts_with("home."); });
    return homes ? program : printed;
  }

  std::map<std::string, std::string> random_knobs() {
    std::map<std::string, std::string> knobs = same_lanes();
    int tiles = 0;
    for (const ir::Axis& axis : p_.axes) {
      if (!axis.in_dims && !axis.program) continue;  // a printed program has no axis that nothing uses
      if (tiles < 3 && random_() % 4 == 0) knobs["tile." + axis.name] = std::to_string(1 + random_() % 3), ++tiles;
      if (random_() % 4 == 0) knobs[(random_() % 2 ? "split." : "accumulate.") + axis.name] = std::to_string(2 + random_() % 4);
      if (random_() % 4 == 0) knobs["chunk." + axis.name] = std::to_string(1 + random_() % 3);
      if (random_() % 2) continue;
      std::string& list = knobs["lane_axes"];
      list += (list.empty() ? "" : ",") + axis.name;
    }
    if (random_() % 4 == 0) knobs["stores"] = "past_caches";
    if (random_() % 4 == 0) knobs["ahead"] = "group";
    if (random_() % 2) return knobs;
    for (const auto& [name, value] : p_.names)
      if (random_() % 2) knobs["home." + name] = random_() % 2 ? "reload" : "worker";
    return knobs;
  }

  // Takes away the knob that a refusal names, or the axis of a list that finds no lanes; the number of lanes stays.
  static void drop_refused(std::map<std::string, std::string>& knobs, const std::string& refusal) {
    for (auto& [name, value] : knobs) {
      if (name == "lanes" || refusal.find(name) == std::string::npos) continue;
      if (const std::size_t comma = value.rfind(','); comma != std::string::npos)
        value.resize(comma);
      else
        knobs.erase(name);
      return;
    }
    std::erase_if(knobs, [](const auto& knob) { return knob.first != "lanes"; });
  }

  // Runs, and holds the surroundings of every array.
  void call(const Function& f, const Arrays& a, const std::string& what) const {
    f(a.arguments);
    for (std::size_t t = 0; t < a.tensors.size(); ++t)
      if (std::string damage = a.tensors[t]->damage(); !damage.empty())
        fail("damage", fmt::format("{}: {}: {}", what, p_.tensors[t].name, damage));
  }

  void same(const Arrays& a, const Arrays& b, const std::string& kind, const std::string& what) const {
    for (std::size_t t = 0; t < a.tensors.size(); ++t) {
      if (p_.tensors[t].access == ir::Access::in) continue;
      const std::vector<char> x = a.tensors[t]->elements(), y = b.tensors[t]->elements();
      const auto bytes = static_cast<std::size_t>(byte_size(p_.tensors[t].dtype));
      for (std::size_t i = 0; i < x.size(); i += bytes) {
        if (std::memcmp(&x[i], &y[i], bytes) == 0) continue;
        const ops::Scalar p = ops::load(p_.tensors[t].dtype, &x[i]), q = ops::load(p_.tensors[t].dtype, &y[i]);
        fail(kind, fmt::format("{}: element {} of {} (row-major) is {} and {}", what, i / bytes, p_.tensors[t].name,
                               is_float(p_.tensors[t].dtype) ? p.f : static_cast<double>(p.i),
                               is_float(p_.tensors[t].dtype) ? q.f : static_cast<double>(q.i)));
      }
    }
  }

  void judged(const Program& program, const Arrays& before, const Arrays& after, const std::string& who) {
    for (const Judgement& j : judge(program, before.arguments, after.arguments)) {
      if (who == "sim") counts_.unjudged += static_cast<std::uint64_t>(j.unjudged);
      if (j.ok) continue;
      std::string at;
      for (std::int64_t i : j.at) at += fmt::format("{}{}", at.empty() ? "" : ", ", i);
      fail(who + " is wrong", fmt::format("{}[{}] is {}, the oracle has {} with a bound of {} at its worst element", j.output, at,
                                          j.got, j.expected, j.bound));
    }
  }

  // The typed oracle rounds as a device may, so it is held against the bound too.
  void judge_typed(const Program& program, const library::OwnedInputs& owned, const Arrays& before,
                   const std::vector<Layout>& layouts) {
    const oracle::Result typed = oracle::run(p_, owned.inputs, {oracle::Mode::typed, {}, {}, false});
    const Arrays after = arrays(owned.inputs, layouts, Poison::nan);
    std::size_t o = 0;
    for (std::size_t t = 0; t < p_.tensors.size(); ++t)
      if (p_.tensors[t].access != ir::Access::in) library::write(typed.outputs[o++], after.tensors[t]->view());
    judged(program, before, after, "the typed oracle");
  }

  // How many points all axes have together: about what one value costs.
  static double points(const oracle::Inputs& inputs) {
    double n = 1;
    for (std::int64_t extent : inputs.extents) n *= static_cast<double>(std::max<std::int64_t>(1, extent));
    return n;
  }

  // Some elements become what arithmetic is least sure of: zeros, infinities, NaN, and the ends of the type's range.
  void scatter_edges(library::OwnedInputs& owned) {
    for (std::size_t t = 0; t < p_.tensors.size(); ++t) {
      const DType type = p_.tensors[t].dtype;
      if (!is_float(type)) continue;
      const double inf = std::numeric_limits<double>::infinity(), edges[] = {0.0, 1.0, inf, std::nan(""), 3e38, 1e-40, 6e4, 1e-7};
      const auto bytes = static_cast<std::size_t>(byte_size(type));
      for (std::size_t at = 0; at + bytes <= owned.storage[t].size(); at += bytes) {
        if (random_() % 8 != 0) continue;
        const double edge = edges[random_() % std::size(edges)];
        ops::store(type, owned.storage[t].data() + at, {ops::round_to(type, random_() % 2 ? edge : -edge), 0});
      }
    }
  }

  void launch(const Program& program, const Program& again, int r) {
    std::optional<library::OwnedInputs> owned;
    for (std::uint64_t attempt = 0; attempt < 8 && !owned; ++attempt) {
      const std::int64_t largest = attempt < 4 ? c_.largest_extent : std::min<std::int64_t>(c_.largest_extent, 5);
      owned = library::random_inputs(p_, c_.seed * 64 + static_cast<std::uint64_t>(r) * 8 + attempt, largest);
      if (owned && points(owned->inputs) > 40000) owned.reset();
    }
    if (!owned) {
      ++counts_.impossible_arguments;
      return;
    }
    if (c_.edges) scatter_edges(*owned);
    std::vector<Layout> layouts;
    for (const TensorView& view : owned->inputs.tensors)
      layouts.push_back(r == 0 ? dense_layout(view.shape) : random_layout(view.shape, random_));
    Options options;
    options.knobs = r > 0 ? random_knobs() : same_lanes();
    const Arrays before = arrays(owned->inputs, layouts, Poison::nan);
    Arrays simulated = arrays(owned->inputs, layouts, Poison::nan);
    std::optional<Function> sim;
    Options on_cpu = options;
    const Program* for_cpu = &program;
    for (bool done = false; !done;) {
      bool planned = false;
      try {
        // What the planner of the CPU chooses is what the simulator runs.
        if (has_cpu()) {
          on_cpu.knobs = options.knobs;
          for_cpu = &on_cpu_as(options, program, again);
          on_cpu.plan = Function(*for_cpu, Device::cpu(), options).plan(simulated.arguments);
          planned = true;
          const nlohmann::json plan = nlohmann::json::parse(*on_cpu.plan);
          for (const auto& [knob, value] : plan["knobs"].items()) options.knobs[knob] = value;
        }
        sim.emplace(program, Device::sim(), options);
        call(*sim, simulated, "sim");
        done = true;
      } catch (const Error& e) {
        if (e.code == ErrorCode::bad_knob && planned) fail("sim refuses what the CPU's planner chose", e.what());
        if (e.code == ErrorCode::bad_knob && options.knobs.size() > 1) {
          ++counts_.refused_knobs;
          drop_refused(options.knobs, e.what());
          continue;
        }
        if (!may_refuse_launch(e.code)) fail(fmt::format("launch: {}", name(e.code)), e.what());
        ++counts_.refused_at_launch[static_cast<int>(e.code)];
        if (c_.tell) fmt::print("seed {} refused at launch: {}\n", c_.seed, e.what());
        return;
      }
    }
    ++counts_.runs;
    for (std::size_t t = 0; t < p_.tensors.size(); ++t)
      if (p_.tensors[t].access != ir::Access::in)
        counts_.elements += static_cast<std::uint64_t>(owned->inputs.tensors[t].elements());
    try {
      judge_typed(program, *owned, before, layouts);
      judged(program, before, simulated, "sim");
      if (has_cpu()) {
        const Function cpu(*for_cpu, Device::cpu(1 + static_cast<int>(random_() % 3)), on_cpu);
        const Arrays first = arrays(owned->inputs, layouts, Poison::nan), second = arrays(owned->inputs, layouts, Poison::huge);
        call(cpu, first, "cpu");
        same(simulated, first, "sim and cpu differ", "sim and cpu");
        call(cpu, second, "cpu");
        same(first, second, "poison matters", "cpu beside NaN and beside 1e30");
      } else {
        ++counts_.without_cpu;
      }
      const Arrays huge = arrays(owned->inputs, layouts, Poison::huge);
      call(*sim, huge, "sim");
      same(simulated, huge, "poison matters", "sim beside NaN and beside 1e30");
      check_files(*sim, program, again, before, options);
    } catch (const Error& e) {
      fail(fmt::format("after the simulator: {}", name(e.code)), e.what());
    } catch (Found& found) {
      for (const auto& [knob, value] : options.knobs) found.failure.detail += fmt::format(" --set {}={}", knob, value);
      throw;
    }
  }

  // The kernel's text reads back; the plan replays, on the printed program too.
  void check_files(const Function& f, const Program& program, const Program& printed, const Arrays& a, Options options) {
    const std::string kernel = f.emit(a.arguments, "kernel");
    if (kernel::print(kernel::parse(kernel)) != kernel) fail("kernel text differs", kernel);
    options.plan = f.plan(a.arguments);
    if (Function(program, Device::sim(), options).plan(a.arguments) != *options.plan) fail("plan differs", *options.plan);
    if (&on_cpu_as(options, program, printed) != &printed) return;  // its knobs are about names that it may not have
    try {
      static_cast<void>(Function(printed, Device::sim(), options).plan(a.arguments));
    } catch (const Error& e) {
      fail("plan differs on the printed program", e.what());
    }
  }

  const Case& c_;
  Counts& counts_;
  std::mt19937_64 random_;
  ir::Program p_;
};

}  // namespace

std::optional<Failure> execute(const Case& c, Counts& counts) {
  try {
    Execution(c, counts).run();
    return std::nullopt;
  } catch (const Found& found) {
    return found.failure;
  } catch (const InternalError& e) {
    return Failure{"internal error", e.what()};
  } catch (const Error& e) {
    return Failure{fmt::format("error {}", name(e.code)), e.what()};
  } catch (const std::exception& e) {
    return Failure{"exception", e.what()};
  }
}

}  // namespace cosmati::fuzz
