// The CUDA source of every program is what its kernel says: compiled as C++, where threads are a loop, it leaves the simulator's
// bits. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/clike/source.h"
#include "backends/cuda/cuda.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/prepared.h"
#include "tests/subject.h"

namespace cosmati {
namespace {

constexpr const char* shim = R"(
#include <math.h>
#include <utility>
#define __device__
#define __global__
struct Three { unsigned x = 1; };
static Three blockIdx, threadIdx, blockDim, gridDim;
template <class... A, std::size_t... I>
static void each(void (*f)(A...), void** a, std::index_sequence<I...>) {
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) f(*static_cast<A*>(a[I])...);
}
template <class... A>
static void start(void (*f)(A...), void** a) { each(f, a, std::index_sequence_for<A...>()); }
)";

constexpr int workers = 6;  // two blocks of three threads

class OnHost : public kernel::Executable {
 public:
  using Phase = void(void** arguments);
  OnHost(kernel::Kernel k, std::vector<Phase*> phases) : k_(std::move(k)), phases_(std::move(phases)) {}
  int workers() const override { return cosmati::workers; }
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
      for (void*& buffer : buffers) arguments.push_back(&buffer);
      phases_[i](arguments.data());
    }
  }

 private:
  kernel::Kernel k_;
  std::vector<Phase*> phases_;
};

kernel::Kernel universal_kernel(const Subject& s) {
  const ir::Program& p = s.instance->inlined;
  const plan::Plan plan = plan::make_plan(p, "", plan::target_named("cuda"), {}, s.facts);
  return kernel::expand(lower::lower(p, plan.mapping, s.facts));
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

TEST(CudaSource, LeavesTheBitsOfTheSimulator) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("cosmati_source_{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::string text = shim, table;
  std::vector<kernel::Kernel> kernels;
  for (const Subject& s : subjects()) {
    kernels.push_back(universal_kernel(s));
    const kernel::Kernel& k = kernels.back();
    std::string source = cuda::source(k);
    // Programs of one name have one source here.
    for (const std::string head = "extern \"C\" "; source.find(head) != source.npos;)
      source.erase(source.find(head), head.size());
    const std::size_t n = kernels.size() - 1;
    text += fmt::format("namespace program_{} {{\n{}}}\n", n, source);
    for (std::size_t i = 0; i < k.phases.size(); ++i) {
      text +=
          fmt::format("static void call_{}_{}(void** a) {{ start(program_{}::{}, a); }}\n", n, i, n, clike::function_name(k, i));
      table += fmt::format("call_{}_{}, ", n, i);
    }
  }
  text += fmt::format("extern \"C\" void (*phases[])(void**);\nvoid (*phases[])(void**) = {{{}}};\n", table);
  text += "extern \"C\" void size(unsigned blocks, unsigned threads) { gridDim.x = blocks; blockDim.x = threads; }\n";
  std::ofstream(folder / "source.cpp") << text;
  const std::string compiler = std::getenv("CXX") ? std::getenv("CXX") : "c++";
  const std::string command = fmt::format("{} -std=c++17 -w -O0 -ffp-contract=off -fPIC -shared -o {}/source.so {}/source.cpp",
                                          compiler, folder.string(), folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  void* library = ::dlopen((folder / "source.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << ::dlerror();
  reinterpret_cast<void (*)(unsigned, unsigned)>(::dlsym(library, "size"))(2, 3);
  auto** phase = reinterpret_cast<OnHost::Phase**>(::dlsym(library, "phases"));
  ASSERT_TRUE(phase);
  for (std::size_t n = 0; n < kernels.size(); ++n) {
    const Subject& s = subjects()[n];
    const kernel::Kernel& k = kernels[n];
    const std::vector<OnHost::Phase*> own(phase, phase + k.phases.size());
    phase += k.phases.size();
    const auto by_source = s.run([&](const Arguments& a) { launch(s, k, std::make_unique<OnHost>(k, own), a); }, "by its source");
    const auto simulated = s.run([&](const Arguments& a) { launch(s, k, kernel::simulate(k), a); }, "on sim");
    EXPECT_EQ(by_source == simulated, true) << k.name << ": its source and the simulator differ";
  }
  ::dlclose(library);
  std::filesystem::remove_all(folder);
}

TEST(CudaSource, IsEmittedWhateverDeviceThereIs) {
  const Subject s(load("softmax"));
  library::OwnedInputs own = s.before;
  const std::string source = Function(s.program, Device::sim()).emit(s.arguments(own), "cuda");
  EXPECT_THAT(source, testing::HasSubstr("extern \"C\" __global__ void softmax_phase_0(const i64 p_extent_row,")) << source;
}

// What the compiler of a GPU would make of it needs the device itself.
TEST(CudaDevice, EveryProgramIsRight) {
  if (cuda::absent()) GTEST_SKIP() << *cuda::absent();
  const Device device = Device::cuda();
  Options options;
  options.cache = "";
  for (const Subject& s : subjects()) s.run(Function(s.program, device, options), "on cuda");
}

// Arrays in the device's memory are used where they lie; a contract of theirs is checked all the same.
TEST(CudaDevice, ArraysMayLieInItsMemory) {
  if (cuda::absent()) GTEST_SKIP() << *cuda::absent();
  const Device device = Device::cuda();
  const auto gpu = device.impl()->gpu;
  const std::vector<float> x = {0, 1, 2, 3, 1, 0, 0, 5};
  std::vector<std::int32_t> label = {1, 3};
  std::vector<float> loss(2);
  Buffer xs = device.allocate(32), labels = device.allocate(8), losses = device.allocate(8);
  gpu->write(xs.data(), x.data(), 32);
  gpu->write(labels.data(), label.data(), 8);
  Options options;
  options.cache = "";
  const Function f(load("cross_entropy"), device, options);
  f(xs.view(f32, {2, 4}), labels.view(i32, {2}), losses.view(f32, {2}));
  gpu->read(loss.data(), losses.data(), 8);
  EXPECT_NEAR(loss[0], 2.440190, 1e-5);
  EXPECT_NEAR(loss[1], 0.0311, 1e-3);
  f(view(x, {2, 4}), labels.view(i32, {2}), view(loss, {2}));
  EXPECT_NEAR(loss[0], 2.440190, 1e-5);
  label[1] = 4;
  gpu->write(labels.data(), label.data(), 8);
  EXPECT_THROW(f(xs.view(f32, {2, 4}), labels.view(i32, {2}), losses.view(f32, {2})), Error);
}

}  // namespace
}  // namespace cosmati
