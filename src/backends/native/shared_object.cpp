// Symbols of one file are seen by nobody else, so any number of packages may be open.
// SPDX-License-Identifier: Apache-2.0
#include "backends/native/shared_object.h"

#include <dlfcn.h>

#include <cosmati/error.h>

namespace cosmati::native {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::bad_file, Where{path, 0, 0}, why, "package the program again");
}

}  // namespace

SharedObject::SharedObject(const std::string& path) : path_(path), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* why = ::dlerror();
  refuse(path_, std::string("its code cannot be loaded: ") + (why ? why : "no reason is given"));
}

SharedObject::~SharedObject() { ::dlclose(handle_); }

void* SharedObject::address(const std::string& symbol) const {
  void* address = ::dlsym(handle_, symbol.c_str());
  if (!address) refuse(path_, "it lacks " + symbol + ": the manifest beside it is of other code");
  return address;
}

}  // namespace cosmati::native
