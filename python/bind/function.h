// cosmati.Function: a program that is called with arrays. One object holds the program, its options and, made on first use, one
// Function for each device that it ran on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/runtime.h>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cosmati::python {

namespace nb = nanobind;

class PyFunction {
 public:
  // `body` is the Python function that describes the program, or nothing. An empty device is Device::pick()'s.
  PyFunction(Program program, nb::object body, std::string device, int threads, Options options);

  struct Parameter {
    std::string name;
    nb::object key;  // the name as an interned str
    Program::Parameter::Kind kind;
    std::vector<std::string> axes;  // named in its dimensions
  };
  struct Signature {
    std::vector<Program::Parameter> declared;
    std::vector<Parameter> parameters;      // the same, as calls need them
    std::vector<std::size_t> inputs, outs;  // which take positions; which are returned
  };
  const Signature& signature();
  std::string name() const;
  const Program& program() const { return program_; }
  struct OnDevice {
    Device device;
    cosmati::Function function;
  };
  // The function on `device`, else on the device it was made for; for arrays of a GPU on that. Throws Error{bad_argument} that
  // names `parameter`, which lies there, where that is another device.
  const OnDevice& on(std::optional<std::string> device, std::optional<int> gpu, const std::string& parameter);
  std::string device_name() const { return device_; }
  std::size_t compiles() const;
  std::string repr();

  // The Python object that the program is captured from is called by the library through a borrowed pointer: whoever runs
  // anything of the program holds this object.
  nb::object body;

 private:
  void need_body() const;

  Program program_;
  std::string device_;
  int threads_;
  Options options_;
  std::optional<Signature> signature_;
  bool captured_;
  std::map<std::string, OnDevice> functions_;  // by device
};

void bind_function(nb::module_& m);

}  // namespace cosmati::python
