// The CUDA source of every program is what its kernel says: compiled as C++, it leaves the simulator's bits.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/nvrtc.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/prepared.h"
#include "tests/backends/on_host.h"
#include "tests/subject.h"

namespace cosmati {
namespace {

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
  const std::vector<Subject> of_vectors = subjects_of_vectors();
  std::vector<std::pair<const Subject*, plan::Knobs>> cases;
  for (const Subject& s : subjects())
    for (plan::Knobs& knobs : settings_of(s)) cases.emplace_back(&s, std::move(knobs));
  for (const Subject& s : of_vectors)
    for (plan::Knobs& knobs : vector_settings_of(s)) cases.emplace_back(&s, std::move(knobs));
  std::vector<kernel::Kernel> kernels;
  std::size_t at_once = 0;
  for (const auto& [s, knobs] : cases) {
    kernels.push_back(kernel_of(*s, knobs));
    at_once += cuda::source(kernels.back()).find("(const Pack<") != std::string::npos;
  }
  EXPECT_GT(at_once, of_vectors.size());
  const on_host::Sources sources(kernels);
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const auto& [s, knobs] = cases[n];
    const kernel::Kernel expanded = kernel_of(*s, knobs, {});  // with what its source writes out
    const auto simulated = s->run([&](const Arguments& a) { launch(*s, expanded, kernel::simulate(expanded), a); }, "on sim");
    for (const bool in_chip : {false, true}) {
      const auto by_source =
          s->run([&](const Arguments& a) { launch(*s, kernels[n], sources.executable(n, in_chip), a); }, "by its source");
      EXPECT_EQ(by_source == simulated, true) << s->instance->program.name << ": its source and the simulator differ\n"
                                              << kernel::print(kernels[n]);
    }
  }
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
  for (const Subject& s : subjects_of_vectors())
    for (const plan::Knobs& knobs : vector_settings_of(s)) {
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
