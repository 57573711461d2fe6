// cosmati.Judge: the oracle's results for the arguments of one call, to hold arrays against that anything computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/runtime.h>
#include <string>
#include <vector>

#include "bind/function.h"

namespace cosmati::python {

class PyJudge {
 public:
  // Runs the oracle on the arguments of a call of `function`.
  PyJudge(PyFunction& function, nb::args args, nb::kwargs kwargs);
  // `outputs`: one array, or a dict by name.
  std::vector<Judgement> operator()(nb::handle outputs) const;
  nb::object outputs() const;  // ((name, dtype, shape), ...)

 private:
  std::string name_;
  std::vector<std::string> written_;  // outs and inouts in declared order
  Judge judge_;
};

void bind_judge(nb::module_& m);

}  // namespace cosmati::python
