// cosmati._core: what Python sees of the library.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cosmati/cosmati.h>

#include "bind/errors.h"
#include "bind/function.h"
#include "bind/language.h"

namespace nb = nanobind;

namespace {

// What the library has to say goes to the logger "cosmati" of Python's logging, from whatever thread says it.
void log_to_python(cosmati::LogLevel level, const std::string& message) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire held;
  try {
    const bool warning = level == cosmati::LogLevel::warning;
    nb::module_::import_("logging").attr("getLogger")("cosmati").attr(warning ? "warning" : "info")("%s", message);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("cosmati's log");
  }
}

}  // namespace

NB_MODULE(_core, m) {
  using namespace cosmati;
  m.doc() = "The library behind the package cosmati.";
  python::bind_errors();
  python::bind_language(m);
  python::bind_function(m);

  nb::class_<DeviceInfo>(m, "DeviceInfo", "A device that this build knows.")
      .def_ro("name", &DeviceInfo::name, "What `device=` takes.")
      .def_ro("present", &DeviceInfo::present, "Whether it can be used here.")
      .def_ro("detail", &DeviceInfo::detail, "The processor and its vectors, or why the device is absent.")
      .def("__repr__", [](const DeviceInfo& d) {
        return "<cosmati.DeviceInfo " + d.name + (d.present ? ": " : ", absent: ") + d.detail + ">";
      });
  m.def("devices", &devices, "The devices that this build knows, present or not.");
  m.def("shipped_programs", &shipped_programs, "The names of the programs that load() knows without a file, sorted.");
  set_log(log_to_python);
  // The interpreter ends before threads of the library do.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { set_log({}); }));
  m.attr("version") = version();
}
