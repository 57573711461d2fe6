// CUDA sources that run on the host: compiled as C++, with the intrinsics that they use. Threads that do not meet are a loop;
// others are fibers, each of which runs until it has to wait for the rest. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/clike/source.h"
#include "backends/cuda/cuda.h"
#include "kernel/launch.h"

namespace cosmati::on_host {

inline constexpr const char* shim = R"(
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

inline constexpr unsigned blocks = 2, threads = 3;  // where a thread is a worker
inline constexpr std::int64_t chip_bytes = 1 << 18;

class Executable : public kernel::Executable {
 public:
  using Phase = void(void** arguments);
  using Size = void(unsigned blocks, unsigned threads, bool meet);
  Executable(kernel::Kernel k, std::vector<Phase*> phases, Size* size, bool in_chip)
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

// The sources of several kernels, compiled together.
class Sources {
 public:
  explicit Sources(std::vector<kernel::Kernel> kernels) : kernels_(std::move(kernels)) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("cosmati_source_{}", ::getpid());
    std::filesystem::create_directories(folder);
    std::string text = shim, table;
    const auto replaced = [](std::string in, const std::string& what, const std::string& by) {
      for (std::size_t at = 0; (at = in.find(what, at)) != in.npos; at += by.size()) in.replace(at, what.size(), by);
      return in;
    };
    for (std::size_t n = 0; n < kernels_.size(); ++n) {
      // Programs of one name have one source each here.
      const std::string source =
          replaced(replaced(cuda::source(kernels_[n]), "extern \"C\" ", ""), "extern __shared__", "extern");
      text += fmt::format("namespace program_{} {{\n{}\nalignas(16) u8 chip[{}];\n}}\n", n, source, chip_bytes);
      for (std::size_t i = 0; i < kernels_[n].phases.size(); ++i) {
        text += fmt::format("static void call_{}_{}(void** a) {{ start(program_{}::{}, a); }}\n", n, i, n,
                            clike::function_name(kernels_[n], i));
        table += fmt::format("call_{}_{}, ", n, i);
      }
    }
    text += fmt::format("extern \"C\" void (*phases[])(void**);\nvoid (*phases[])(void**) = {{{}}};\n", table);
    text += "extern \"C\" void size(unsigned b, unsigned t, bool m) { gridDim.x = b; blockDim.x = t; meets = m; }\n";
    std::ofstream(folder / "source.cpp") << text;
    const std::string compiler = std::getenv("CXX") ? std::getenv("CXX") : "c++";
    const std::string command = fmt::format("{} -std=c++17 -w -O0 -ffp-contract=off -fPIC -shared -o {}/source.so {}/source.cpp",
                                            compiler, folder.string(), folder.string());
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
    library_ = ::dlopen((folder / "source.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(::dlerror());
    std::filesystem::remove_all(folder);
  }
  ~Sources() { ::dlclose(library_); }
  Sources(const Sources&) = delete;
  Sources& operator=(const Sources&) = delete;

  // in_chip: where a launch gives them, arrays of a worker are there.
  std::unique_ptr<kernel::Executable> executable(std::size_t n, bool in_chip) const {
    auto** phase = reinterpret_cast<Executable::Phase**>(::dlsym(library_, "phases"));
    for (std::size_t i = 0; i < n; ++i) phase += kernels_[i].phases.size();
    return std::make_unique<Executable>(kernels_[n], std::vector(phase, phase + kernels_[n].phases.size()),
                                        reinterpret_cast<Executable::Size*>(::dlsym(library_, "size")), in_chip);
  }

 private:
  std::vector<kernel::Kernel> kernels_;
  void* library_ = nullptr;
};

}  // namespace cosmati::on_host
