// Each function by its symbol.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvrtc.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>

#include "backends/gpu/library_file.h"
#include "support/check.h"

namespace cosmati::cuda {
namespace {

// As NVRTC declares them.
using Result = int;
using Program = struct ProgramTag*;

struct Nvrtc {
  Result (*create)(Program* program, const char* source, const char* name, int headers, const char* const* texts,
                   const char* const* names);
  Result (*destroy)(Program* program);
  Result (*compile)(Program program, int options, const char* const* texts);
  Result (*log_size)(Program program, std::size_t* bytes);
  Result (*log)(Program program, char* log);
  Result (*image_size)(Program program, std::size_t* bytes);
  Result (*image)(Program program, char* image);
  const char* (*error_text)(Result result);
};

struct FoundNvrtc {
  Nvrtc nvrtc = {};
  std::optional<std::string> absent;

  FoundNvrtc() {
    gpu::LibraryFile library({"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"});
    library.find(nvrtc.create, "nvrtcCreateProgram");
    library.find(nvrtc.destroy, "nvrtcDestroyProgram");
    library.find(nvrtc.compile, "nvrtcCompileProgram");
    library.find(nvrtc.log_size, "nvrtcGetProgramLogSize");
    library.find(nvrtc.log, "nvrtcGetProgramLog");
    library.find(nvrtc.image_size, "nvrtcGetCUBINSize");
    library.find(nvrtc.image, "nvrtcGetCUBIN");
    library.find(nvrtc.error_text, "nvrtcGetErrorString");
    absent = library.absent();
  }
};

const FoundNvrtc& found() {
  static const FoundNvrtc once;
  return once;
}

}  // namespace

std::optional<std::string> nvrtc_absent() { return found().absent; }

std::string machine_code(const std::string& source, const std::string& name, const std::string& architecture) {
  const Nvrtc& to = found().nvrtc;
  Program program = nullptr;
  const auto check = [&](Result result, const char* doing) {
    if (result != 0) throw InternalError(fmt::format("NVRTC failed at {}: {}", doing, to.error_text(result)));
  };
  check(to.create(&program, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr), "taking a source");
  const std::unique_ptr<Program, void (*)(Program*)> owned(&program, [](Program* p) { found().nvrtc.destroy(p); });
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array options = {target.c_str(), "--std=c++17", "--fmad=false"};
  if (to.compile(program, options.size(), options.data()) != 0) {
    std::size_t bytes = 0;
    std::string log;
    if (to.log_size(program, &bytes) == 0) log.resize(bytes);
    if (bytes == 0 || to.log(program, log.data()) != 0) log = "no log";
    throw InternalError(fmt::format("NVRTC refuses the source of {}:\n{}", name, log));
  }
  std::size_t bytes = 0;
  check(to.image_size(program, &bytes), "compiling");
  std::string image(bytes, 0);
  check(to.image(program, image.data()), "compiling");
  return image;
}

}  // namespace cosmati::cuda
