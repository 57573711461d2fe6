// Code in a file that the system's dynamic linker loads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "backends/native/code.h"

namespace cosmati::native {

class SharedObject : public Code {
 public:
  // Throws Error{bad_file} with what the dynamic linker says.
  explicit SharedObject(const std::string& path);
  ~SharedObject() override;
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  void* address(const std::string& symbol) const override;  // throws Error{bad_file}

 private:
  std::string path_;
  void* handle_;
};

}  // namespace cosmati::native
