// Arrays held against the oracle: NumPy's and others', computed by whoever is compared.
// SPDX-License-Identifier: Apache-2.0
#include "bind/judge.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind/arrays.h"
#include "bind/call.h"
#include "bind/errors.h"

namespace cosmati::python {
namespace {

Judge judge_of(PyFunction& function, nb::args args, nb::kwargs kwargs) {
  Call call(function, args, kwargs);
  call.make_outputs();
  call.bring_to_host();
  const Arguments before = call.arguments();
  return without_gil([&] { return Judge(function.program(), before, interruptible()); });
}

std::vector<std::string> written_by(PyFunction& function) {
  std::vector<std::string> names;
  for (const Program::Parameter& p : function.signature().declared)
    if (p.kind == Program::Parameter::Kind::out || p.kind == Program::Parameter::Kind::inout) names.push_back(p.name);
  return names;
}

}  // namespace

PyJudge::PyJudge(PyFunction& function, nb::args args, nb::kwargs kwargs)
    : name_(function.name()), written_(written_by(function)), judge_(judge_of(function, args, kwargs)) {}

std::vector<Judgement> PyJudge::operator()(nb::handle outputs) const {
  std::string names;
  for (const std::string& name : written_) names += (names.empty() ? "" : ", ") + name;
  std::vector<Array> borrowed;
  Arguments after;
  const auto take = [&](const std::string& name, nb::handle object) {
    borrowed.emplace_back(object, name);
    after.emplace_back(name, borrowed.back().on_host(borrowed.back().view));
  };
  if (!PyDict_Check(outputs.ptr())) {
    if (written_.size() != 1)
      throw Error(ErrorCode::bad_argument, {},
                  name_ + " writes " + std::to_string(written_.size()) + " arrays (" + names + "), and one is given to be judged",
                  "pass a dict of arrays by their names");
    take(written_[0], outputs);
  } else {
    for (auto [key, value] : nb::borrow<nb::dict>(outputs)) {
      const auto name = text_of(key);
      if (std::find(written_.begin(), written_.end(), name) == written_.end())
        throw Error(ErrorCode::bad_argument, {}, name_ + " has no output `" + name + "`", "it writes " + names);
      take(name, value);
    }
  }
  return without_gil([&] { return judge_(after); });
}

nb::object PyJudge::outputs() const {
  nb::list list;
  for (const auto& output : judge_.outputs())
    list.append(nb::make_tuple(output.name, name(output.dtype), nb::tuple(nb::cast(output.shape))));
  return nb::tuple(list);
}

void bind_judge(nb::module_& m) {
  nb::class_<PyJudge>(m, "Judge",
                      R"(The oracle's results for some arguments, computed once, to hold arrays against that anything computed.

Made by Function.judge(). Call it with one array, or a dict of arrays by the names of outputs; inouts as they are after the run.)")
      .def("__call__", &PyJudge::operator(), nb::arg("outputs"),
           nb::sig("def __call__(self, outputs: typing.Any) -> list[Judgement]"),
           "Hold every element against the oracle, as Function.check does. Raises Error for an array that is missing or of "
           "another "
           "dtype or shape.")
      .def_prop_ro("outputs", &PyJudge::outputs, nb::sig("def outputs(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]"),
                   "What it judges, in declared order: name, dtype and shape of each.");
}

}  // namespace cosmati::python
