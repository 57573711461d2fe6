// How errors cross between C++ and Python.
// SPDX-License-Identifier: Apache-2.0
#include "bind/errors.h"

#include <nanobind/stl/string.h>

#include <cstring>

namespace cosmati::python {
namespace {

nb::handle error_class, absent_class, internal_class;

nb::object error_object(const Error& e) {
  nb::handle type = e.code == ErrorCode::backend_absent ? absent_class : error_class;
  const std::string_view code = name(e.code);
  return type(e.what(), nb::str(code.data(), code.size()), e.message, e.hint, e.origin, e.where.file, e.where.line,
              e.where.column);
}

// Frames of the package itself are no place of a user's.
bool of_package(PyFrameObject* frame) {
  nb::object globals = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals"));
  if (!globals.is_valid()) {
    PyErr_Clear();
    return false;
  }
  PyObject* module = PyDict_GetItemString(globals.ptr(), "__name__");
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  return name && (std::strcmp(name, "cosmati") == 0 || std::strncmp(name, "cosmati.", 8) == 0);
}

template <class T>
T attribute(nb::handle object, const char* name) {
  return nb::cast<T>(object.attr(name));
}

}  // namespace

Where user_place() {
  PyFrameObject* top = PyEval_GetFrame();
  if (!top) return {};
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(top));
  auto raw = [&] { return reinterpret_cast<PyFrameObject*>(frame.ptr()); };
  while (of_package(raw())) {
    PyFrameObject* back = PyFrame_GetBack(raw());
    if (!back) break;
    frame = nb::steal(reinterpret_cast<PyObject*>(back));
  }
  Where where;
  where.line = PyFrame_GetLineNumber(raw());
  nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw())));
  where.file = attribute<std::string>(code, "co_filename");
#if PY_VERSION_HEX >= 0x030B0000
  int line = 0, column = -1, end_line = 0, end_column = 0;
  const int offset = PyFrame_GetLasti(raw());
  if (offset >= 0 &&
      PyCode_Addr2Location(reinterpret_cast<PyCodeObject*>(code.ptr()), offset, &line, &column, &end_line, &end_column) &&
      column >= 0)
    where.column = column + 1;
#endif
  return where;
}

void rethrow(nb::python_error& error) {
  if (!error.matches(error_class)) throw std::move(error);
  nb::handle value = error.value();
  ErrorCode code{};
  const auto wanted = attribute<std::string>(value, "code");
#define ERROR(row, meaning) \
  if (wanted == #row) code = ErrorCode::row;
#include <cosmati/errors.def>
#undef ERROR
  Where where{attribute<std::string>(value, "file"), attribute<int>(value, "line"), attribute<int>(value, "column")};
  Error plain(code, where, attribute<std::string>(value, "what"), attribute<std::string>(value, "hint"),
              attribute<std::string>(value, "origin"));
  throw Raised(plain, std::move(error));
}

std::string counted(std::size_t count, const char* noun) { return std::to_string(count) + " " + noun + (count == 1 ? "" : "s"); }

std::string text_of(nb::handle object) {
  nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) nb::raise_python_error();
  return nb::cast<std::string>(text);
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::inst_name(object)); }

void bind_errors() {
  nb::module_ errors = nb::module_::import_("cosmati._errors");
  error_class = nb::object(errors.attr("Error")).release();
  absent_class = nb::object(errors.attr("BackendAbsent")).release();
  internal_class = nb::object(errors.attr("InternalError")).release();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (Raised& e) {
      e.held.restore();
    } catch (const Error& e) {
      try {
        nb::object object = error_object(e);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())), object.ptr());
      } catch (nb::python_error& failed) {
        failed.restore();
      }
    } catch (const InternalError& e) {
      PyErr_SetString(internal_class.ptr(), e.what());
    }
  });
}

}  // namespace cosmati::python
