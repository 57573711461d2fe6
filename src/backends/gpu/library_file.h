// A library that is opened when it is first needed, and its functions by their symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace cosmati::gpu {

// The first of some files that is a library, and what is missing where there is none or it lacks a symbol.
class LibraryFile {
 public:
  explicit LibraryFile(const std::vector<const char*>& files) {
    for (const char* file : files)
      if (!handle_) handle_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle_) absent_ = fmt::format("there is no {}", files.front());
  }
  template <class F>
  void find(F& function, const char* symbol) {
    if (absent_) return;
    function = reinterpret_cast<F>(::dlsym(handle_, symbol));
    if (!function) absent_ = fmt::format("the library lacks {}", symbol);
  }
  const std::optional<std::string>& absent() const { return absent_; }

 private:
  void* handle_ = nullptr;
  std::optional<std::string> absent_;
};

}  // namespace cosmati::gpu
