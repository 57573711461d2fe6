// Times what the planner tries for a program on a GPU: `gpu_rows softmax x=f32[8192,4096]:normal` prints microseconds, the price
// and the knobs of every candidate, the chosen one first, beside a copy by the driver of as many bytes. Times are of launches in
// a graph, which reads arrays that the launch before has left in the caches. SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/gpu/gpu.h"
#include "language/printer.h"
#include "library/proofs.h"
#include "plan/plan.h"
#include "runtime/bind.h"
#include "runtime/device.h"
#include "runtime/kernel.h"
#include "tools/arguments.h"

namespace {

using cosmati::Arguments;
using nlohmann::json;

template <class F>
F* symbol(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return reinterpret_cast<F*>(library ? ::dlsym(library, name) : nullptr);
}
template <class... A>
void call(const char* name, A... arguments) {
  auto* f = symbol<int(A...)>(name);
  if (!f) throw std::runtime_error(fmt::format("the driver has no {}", name));
  if (const int code = f(arguments...); code != 0) throw std::runtime_error(fmt::format("{} failed with {}", name, code));
}
using Handle = struct HandleTag*;

class Timer {
 public:
  Timer() {
    Handle context = nullptr;
    call("cuDevicePrimaryCtxRetain", &context, 0);
    call("cuCtxSetCurrent", context);
    call("cuStreamCreate", &stream, 1u);
    call("cuEventCreate", &begin_, 0u);
    call("cuEventCreate", &end_, 0u);
  }
  // Microseconds of one launch: the least of a few graphs of many.
  double operator()(const std::function<void()>& launch) const {
    launch();
    call("cuStreamSynchronize", stream);
    Handle graph = nullptr, ready = nullptr;
    constexpr int count = 20, rounds = 7;
    call("cuStreamBeginCapture_v2", stream, 2);
    for (int i = 0; i < count; ++i) launch();
    call("cuStreamEndCapture", stream, &graph);
    call("cuGraphInstantiateWithFlags", &ready, graph, 0ull);
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      call("cuEventRecord", begin_, stream);
      call("cuGraphLaunch", ready, stream);
      call("cuEventRecord", end_, stream);
      call("cuEventSynchronize", end_);
      float ms = 0;
      call("cuEventElapsedTime", &ms, begin_, end_);
      times.push_back(ms * 1000.0 / count);
    }
    call("cuGraphExecDestroy", ready);
    call("cuGraphDestroy", graph);
    std::sort(times.begin(), times.end());
    return times[rounds / 2];
  }
  Handle stream = nullptr;

 private:
  Handle begin_ = nullptr, end_ = nullptr;
};

int run(const std::string& name, const std::vector<std::string>& texts, bool all) {
  const cosmati::Device device = cosmati::Device::cuda();
  const cosmati::Program program = cosmati::load(name);
  cosmati::tools::Bindings bindings(program, texts, 0, {});
  cosmati::Options options;
  options.cache = "";
  const cosmati::Function chosen(program, device, options);
  bindings.add_outputs(chosen.missing_outputs(bindings.arguments()));
  std::vector<cosmati::Buffer> buffers;
  Arguments arguments = bindings.arguments();
  std::size_t bytes = 0;
  for (auto& [parameter, argument] : arguments)
    if (auto* view = std::get_if<cosmati::TensorView>(&argument)) {
      const auto size = static_cast<std::size_t>(view->elements() * byte_size(view->dtype));
      buffers.push_back(device.allocate(size));
      device.copy(buffers.back().data(), view->data, size);
      *view = buffers.back().view(view->dtype, view->shape);
      bytes += size;
    }
  const Timer timer;
  const cosmati::Stream stream = device.adopt(timer.stream);
  bytes = (bytes / 2 + 4095) / 4096 * 4096;
  const cosmati::Buffer from = device.allocate(bytes), to = device.allocate(bytes);
  const double copy = timer([&] {
    call("cuMemcpyDtoDAsync_v2", reinterpret_cast<unsigned long long>(to.data()),
         reinterpret_cast<unsigned long long>(from.data()), bytes, timer.stream);
  });

  const json plan = json::parse(chosen.plan(arguments));
  struct Row {
    json knobs;
    double price, us = -1;
    std::string why;
  };
  std::vector<Row> rows;
  for (const json& c : plan["candidates"])
    if (c["cost_us"]["total"].is_number()) rows.push_back({c["knobs"], c["cost_us"]["total"]});
  if (!all) rows.resize(1);
  // Knobs alone would leave the others to the planner.
  const cosmati::runtime::Instances instances(program, cosmati::library::proofs());
  const auto bound = cosmati::runtime::bind(instances, arguments, {.read_data = false});
  const auto facts = cosmati::runtime::relied_on(cosmati::runtime::facts_of(bound.inputs.tensors, {}), bound.inputs.tensors);
  const auto exactly = [&](const json& knobs) {
    const auto& inlined = bound.instance->inlined;
    return cosmati::plan::to_json(
        inlined, cosmati::plan::make_plan(inlined, cosmati::language::print(bound.instance->program),
                                          cosmati::plan::target_named("cuda"), knobs.get<cosmati::plan::Knobs>(), facts));
  };
  std::vector<std::unique_ptr<cosmati::Function>> functions(rows.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> compilers;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    compilers.emplace_back([&] {
      for (std::size_t i = next++; i < rows.size(); i = next++) try {
          cosmati::Options own = options;
          own.plan = exactly(rows[i].knobs);
          functions[i] = std::make_unique<cosmati::Function>(program, device, own);
          (*functions[i])(arguments);
        } catch (const std::exception& e) {
          rows[i].why = e.what();
        }
    });
  for (std::thread& t : compilers) t.join();
  double best = 1e30;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].why.empty()) continue;
    cosmati::Launch launch = functions[i]->prepare(arguments);
    rows[i].us = timer([&] { launch(stream); });
    best = std::min(best, rows[i].us);
  }
  std::string shape;
  for (const std::string& text : texts) shape += " " + text.substr(0, text.find(':'));
  fmt::print("{}{}: copy {:.2f} us, chosen {:.2f} us, speed ratio {:.3f}, best {:.2f}, regret {:.3f}\n", name, shape, copy,
             rows[0].us, copy / rows[0].us, best, rows[0].us / best);
  for (const Row& row : rows)
    fmt::print("  {:9.2f} us, price {:9.2f}  {}{}\n", row.us, row.price, row.knobs.dump(), row.why.substr(0, 200));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    std::vector<std::string> texts(words + std::min(count, 2), words + count);
    const bool all = !texts.empty() && texts.back() == "--all";
    if (all) texts.pop_back();
    return run(count > 1 ? words[1] : "softmax", texts, all);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
