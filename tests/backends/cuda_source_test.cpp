// The CUDA source of every program is what its kernel says: compiled as C++, it leaves the simulator's bits. Threads that do not
// meet are a loop; others are fibers, each of which runs until it has to wait for the rest.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/clike/source.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/nvrtc.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/prepared.h"
#include "tests/subject.h"

namespace cosmati {
namespace {

constexpr const char* shim = R"(
#include <math.h>
#include <ucontext.h>
#include <memory>
#include <utility>
#include <vector>
#define __device__
#define __global__
#define __launch_bounds__(threads)
#define __align__(bytes)
#define __shared__ static
#define __restrict__
#define COSMATI_LANES
struct Three { unsigned x = 1; };
static Three blockIdx, threadIdx, blockDim, gridDim;
static bool meets;

struct Fiber { ucontext_t context; std::unique_ptr<char[]> stack; bool done; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static void (*fiber_body)(void*);
static void* fiber_data;
static void begin_fiber() { fiber_body(fiber_data); fibers[threadIdx.x].done = true; }
static void wait() { const unsigned own = threadIdx.x; swapcontext(&fibers[own].context, &scheduler); }
static void run_fibers() {
  constexpr size_t bytes = 1 << 17;
  fibers.resize(blockDim.x);
  for (Fiber& f : fibers) {
    if (!f.stack) f.stack.reset(new char[bytes]);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = bytes;
    f.context.uc_link = &scheduler;
    f.done = false;
    makecontext(&f.context, begin_fiber, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
      if (!fibers[threadIdx.x].done) any = true, swapcontext(&scheduler, &fibers[threadIdx.x].context);
  }
}
template <int lanes, int packed> static void fence() { wait(); }
static unsigned held[1024];
template <int lanes> static unsigned swapped_bits(unsigned x, unsigned mask) {
  held[threadIdx.x] = x;
  wait();
  const unsigned other = held[threadIdx.x ^ mask];
  wait();
  return other;
}

template <class... A, std::size_t... I>
static void each(void (*f)(A...), void** a, std::index_sequence<I...>) {
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    if (meets) {
      auto call = [&] { f(*static_cast<A*>(a[I])...); };
      fiber_body = [](void* data) { (*static_cast<decltype(call)*>(data))(); };
      fiber_data = &call;
      run_fibers();
      continue;
    }
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) f(*static_cast<A*>(a[I])...);
  }
}
template <class... A>
static void start(void (*f)(A...), void** a) { each(f, a, std::index_sequence_for<A...>()); }
)";

constexpr unsigned blocks = 2, threads = 3;  // where a thread is a worker
constexpr std::int64_t chip_bytes = 1 << 18;

class OnHost : public kernel::Executable {
 public:
  using Phase = void(void** arguments);
  using Size = void(unsigned blocks, unsigned threads, bool meet);
  OnHost(kernel::Kernel k, std::vector<Phase*> phases, Size* size, bool in_chip)
      : k_(std::move(k)), phases_(std::move(phases)), size_(size), in_chip_(in_chip) {}
  int workers() const override { return 64; }
  using kernel::Executable::run;
  void run(const kernel::Launch& launch, const kernel::Queue*) const override {
    std::vector<std::int64_t> params = launch.params;
    std::vector<void*> buffers;
    for (const kernel::Memory& m : launch.buffers) buffers.push_back(m.data);
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      std::int64_t groups = kernel::evaluate(k_, k_.phases[i].groups, params);
      std::vector<void*> arguments;
      for (std::int64_t& param : params) arguments.push_back(&param);
      arguments.push_back(&groups);
      bool in_chip = in_chip_ && clike::chip_bytes(k_, params) * k_.phases[i].packed <= chip_bytes;
      arguments.push_back(&in_chip);
      for (void*& buffer : buffers) arguments.push_back(&buffer);
      const auto together = static_cast<unsigned>(clike::threads(k_.phases[i]));
      size_(blocks, together ? together : threads, together > 0);
      phases_[i](arguments.data());
    }
  }

 private:
  kernel::Kernel k_;
  std::vector<Phase*> phases_;
  Size* size_;
  bool in_chip_;
};

kernel::Kernel kernel_of(const Subject& s, const plan::Knobs& knobs, kernel::Native native = cuda::native) {
  const ir::Program& p = s.instance->inlined;
  const plan::Plan plan = plan::make_plan(p, "", plan::target_named("cuda"), knobs, s.facts);
  return kernel::expand(lower::lower(p, plan.mapping, s.facts), native);
}

// A launch of an executable in place of what a function would make.
void launch(const Subject& s, const kernel::Kernel& k, std::unique_ptr<kernel::Executable> executable,
            const Arguments& arguments) {
  auto made = std::make_shared<Kernel::Impl>();
  made->image.interface = k;
  made->facts = s.facts;
  made->executable = std::move(executable);
  const runtime::Instances instances(s.program, library::proofs());
  const std::vector<const Argument*> matched = runtime::match(s.program.source().signature(), arguments);
  const runtime::Prepared prepared({}, runtime::bind(instances, matched, {}), matched, made);
  kernel::Launch launch = prepared.pattern();
  prepared.fill(matched, launch);
  std::vector<char> scratch(prepared.scratch_bytes(), '\xff');
  prepared.place_scratch(scratch.data(), launch);
  prepared.run(matched, launch, nullptr);
}

// One thread an instance; lanes of a part of a subgroup, of one and of several, packed and alone; an axis held whole.
std::vector<plan::Knobs> settings_of(const Subject& s) {
  std::vector<plan::Knobs> all = {{{"lanes", "1"}},
                                  {{"lanes", "8"}, {"packed", "5"}},
                                  {{"lanes", "32"}, {"packed", "2"}},
                                  {{"lanes", "96"}, {"packed", "2"}}};
  const ir::Program& p = s.instance->inlined;
  for (const ir::Axis& axis : p.axes) {
    const std::string tile = "tile." + axis.name, full = "full." + axis.name;
    for (const plan::Knobs& held :
         std::vector<plan::Knobs>{{{"lanes", "32"}, {"resident", axis.name}},
                                  {{"lanes", "96"}, {"resident", axis.name}},
                                  {{"lanes", "8"}, {"resident", axis.name}, {tile, "12"}, {full, "1"}}}) {
      if (axis.piece || !plan::derive(p, plan::target_named("cuda"), held, s.facts)) continue;
      const kernel::Kernel k = kernel_of(s, held);
      if (kernel::meets_conditions(k, kernel::params_of(k, s.shape))) all.push_back(held);
    }
  }
  return all;
}

// Neighbours side by side, in loops and held whole.
std::vector<plan::Knobs> vector_settings_of(const Subject& s) {
  std::vector<plan::Knobs> all;
  const ir::Program& p = s.instance->inlined;
  for (const ir::Axis& axis : p.axes) {
    const std::string vector = "vector." + axis.name, tile = "tile." + axis.name;
    for (const plan::Knobs& knobs :
         std::vector<plan::Knobs>{{{"lanes", "2"}, {vector, "4"}, {tile, "1"}},
                                  {{"lanes", "4"}, {vector, "2"}, {tile, "2"}},
                                  {{"lanes", "8"}, {vector, "4"}, {tile, "1"}, {"resident", axis.name}}}) {
      if (axis.piece || !plan::derive(p, plan::target_named("cuda"), knobs, s.facts)) continue;
      const kernel::Kernel k = kernel_of(s, knobs);
      if (kernel::meets_conditions(k, kernel::params_of(k, s.shape))) all.push_back(knobs);
    }
  }
  return all;
}

std::vector<Subject> subjects_of_vectors() {
  std::vector<Subject> all;
  for (const char* name : {"softmax", "layer_norm", "add_rms_norm", "argmax", "min_max", "bias_gelu", "column_sums",
                           "quantize_rows", "cross_entropy", "layer_norm_backward", "matmul", "linear_recurrence"})
    all.emplace_back(load(name), 4);
  return all;
}

TEST(CudaSource, LeavesTheBitsOfTheSimulator) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("cosmati_source_{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::string text = shim, table;
  std::vector<kernel::Kernel> kernels, of_simulator;  // with functions that their sources write out, and without
  std::vector<const Subject*> subject_of;
  const auto replaced = [](std::string in, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = in.find(what, at)) != in.npos; at += by.size()) in.replace(at, what.size(), by);
    return in;
  };
  const std::vector<Subject> of_vectors = subjects_of_vectors();
  std::vector<std::pair<const Subject*, plan::Knobs>> cases;
  for (const Subject& s : subjects())
    for (plan::Knobs& knobs : settings_of(s)) cases.emplace_back(&s, std::move(knobs));
  std::size_t at_once = 0;
  for (const Subject& s : of_vectors)
    for (plan::Knobs& knobs : vector_settings_of(s)) cases.emplace_back(&s, std::move(knobs));
  for (const auto& [s, knobs] : cases) {
    subject_of.push_back(s);
    kernels.push_back(kernel_of(*s, knobs));
    of_simulator.push_back(kernel_of(*s, knobs, {}));
    const kernel::Kernel& k = kernels.back();
    // Programs of one name have one source here.
    at_once += cuda::source(k).find("(const Pack<") != std::string::npos;
    const std::string source = replaced(replaced(cuda::source(k), "extern \"C\" ", ""), "extern __shared__", "extern");
    const std::size_t n = kernels.size() - 1;
    text += fmt::format("namespace program_{} {{\n{}\nalignas(16) u8 chip[{}];\n}}\n", n, source, chip_bytes);
    for (std::size_t i = 0; i < k.phases.size(); ++i) {
      text +=
          fmt::format("static void call_{}_{}(void** a) {{ start(program_{}::{}, a); }}\n", n, i, n, clike::function_name(k, i));
      table += fmt::format("call_{}_{}, ", n, i);
    }
  }
  EXPECT_GT(at_once, of_vectors.size());
  text += fmt::format("extern \"C\" void (*phases[])(void**);\nvoid (*phases[])(void**) = {{{}}};\n", table);
  text += "extern \"C\" void size(unsigned b, unsigned t, bool m) { gridDim.x = b; blockDim.x = t; meets = m; }\n";
  std::ofstream(folder / "source.cpp") << text;
  const std::string compiler = std::getenv("CXX") ? std::getenv("CXX") : "c++";
  const std::string command = fmt::format("{} -std=c++17 -w -O0 -ffp-contract=off -fPIC -shared -o {}/source.so {}/source.cpp",
                                          compiler, folder.string(), folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  void* library = ::dlopen((folder / "source.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << ::dlerror();
  auto* size = reinterpret_cast<OnHost::Size*>(::dlsym(library, "size"));
  auto** phase = reinterpret_cast<OnHost::Phase**>(::dlsym(library, "phases"));
  ASSERT_TRUE(phase && size);
  for (std::size_t n = 0; n < kernels.size(); ++n) {
    const Subject& s = *subject_of[n];
    const kernel::Kernel& k = kernels[n];
    const std::vector<OnHost::Phase*> own(phase, phase + k.phases.size());
    phase += k.phases.size();
    const auto simulated =
        s.run([&](const Arguments& a) { launch(s, of_simulator[n], kernel::simulate(of_simulator[n]), a); }, "on sim");
    for (const bool in_chip : {false, true}) {
      const auto by_source =
          s.run([&](const Arguments& a) { launch(s, k, std::make_unique<OnHost>(k, own, size, in_chip), a); }, "by its source");
      EXPECT_EQ(by_source == simulated, true) << k.name << ": its source and the simulator differ\n" << kernel::print(k);
    }
  }
  ::dlclose(library);
  std::filesystem::remove_all(folder);
}

TEST(CudaSource, CompilesForEveryProcessor) {
  if (cuda::nvrtc_absent()) GTEST_SKIP() << *cuda::nvrtc_absent();
  for (const Subject& s : subjects())
    for (const plan::Knobs& knobs : {plan::Knobs{}, plan::Knobs{{"lanes", "1"}}})
      for (const char* processor : {"sm_80", "sm_90a", "sm_100"}) {
        const kernel::Kernel k = kernel_of(s, knobs);
        EXPECT_FALSE(cuda::machine_code(cuda::source(k), k.name, processor).empty()) << k.name << " for " << processor;
      }
}

TEST(CudaSource, IsEmittedWhateverDeviceThereIs) {
  const Subject s(load("softmax"));
  library::OwnedInputs own = s.before;
  const std::string source = Function(s.program, Device::sim()).emit(s.arguments(own), "cuda");
  EXPECT_THAT(source,
              testing::HasSubstr("extern \"C\" __global__ void __launch_bounds__(32) softmax_phase_0(const i64 p_extent_row,"))
      << source;
}

// What the compiler of a GPU would make of it needs the device itself.
TEST(CudaDevice, EveryProgramIsRight) {
  if (cuda::absent()) GTEST_SKIP() << *cuda::absent();
  const Device device = Device::cuda();
  Options options;
  options.cache = "";
  for (const Subject& s : subjects())
    for (const plan::Knobs& knobs : settings_of(s)) {
      options.knobs = {knobs.begin(), knobs.end()};
      s.run(Function(s.program, device, options), "on cuda");
    }
}

// Arrays in the device's memory are used where they lie; a contract of theirs is checked all the same.
TEST(CudaDevice, ArraysMayLieInItsMemory) {
  if (cuda::absent()) GTEST_SKIP() << *cuda::absent();
  const Device device = Device::cuda();
  const std::vector<float> x = {0, 1, 2, 3, 1, 0, 0, 5};
  std::vector<std::int32_t> label = {1, 3};
  std::vector<float> loss(2);
  Buffer xs = device.allocate(32), labels = device.allocate(8), losses = device.allocate(8);
  device.copy(xs.data(), x.data(), 32);
  device.copy(labels.data(), label.data(), 8);
  Options options;
  options.cache = "";
  const Function f(load("cross_entropy"), device, options);
  f(xs.view(f32, {2, 4}), labels.view(i32, {2}), losses.view(f32, {2}));
  device.copy(loss.data(), losses.data(), 8);
  EXPECT_NEAR(loss[0], 2.440190, 1e-5);
  EXPECT_NEAR(loss[1], 0.0311, 1e-3);
  f(view(x, {2, 4}), labels.view(i32, {2}), view(loss, {2}));
  EXPECT_NEAR(loss[0], 2.440190, 1e-5);
  label[1] = 4;
  device.copy(labels.data(), label.data(), 8);
  EXPECT_THROW(f(xs.view(f32, {2, 4}), labels.view(i32, {2}), losses.view(f32, {2})), Error);
}

TEST(CudaDevice, ScratchMayBeLentFromItsMemory) {
  if (cuda::absent()) GTEST_SKIP() << *cuda::absent();
  const Device device = Device::cuda();
  const std::vector<float> x(4000, 1);
  std::vector<float> y(4000);
  Launch launch = Function(load("softmax"), device).prepare({{"x", view(x, {4, 1000})}, {"y", view(y, {4, 1000})}});
  ASSERT_GT(launch.scratch_bytes(), 0U);
  std::vector<char> host(launch.scratch_bytes());
  EXPECT_THROW(launch.scratch(host.data(), host.size()), Error);
  const Buffer lent = device.allocate(launch.scratch_bytes());
  launch.scratch(lent.data(), lent.bytes());
  launch();
  EXPECT_NEAR(y[3999], 0.001, 1e-6);
}

}  // namespace
}  // namespace cosmati
