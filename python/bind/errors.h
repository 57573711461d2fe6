// Errors between C++ and Python: the place of a user's line of Python, cosmati.Error made from Error and taken back.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/dsl.h>
#include <cosmati/error.h>

namespace cosmati::python {

namespace nb = nanobind;

// The innermost Python frame that is not of this package. The column is known from Python 3.11 on.
Where user_place();

// While it lives, mistakes are reported at the user's line of Python.
struct Here : cosmati::detail::CalledFrom {
  Here() : CalledFrom(user_place()) {}
};

// A cosmati.Error of a frame below, on its way through the library, which catches Error. It keeps its traceback.
struct Raised : Error {
  Raised(const Error& error, nb::python_error held) : Error(error), held(std::move(held)) {}
  nb::python_error held;
};

// Runs `body`, which calls Python. A cosmati.Error that comes out of it is thrown as Raised.
[[noreturn]] void rethrow(nb::python_error& error);
template <class Body>
auto calling_python(const Body& body) {
  try {
    return body();
  } catch (nb::python_error& error) {
    rethrow(error);
  }
}

// "1 array", "2 arrays".
std::string counted(std::size_t count, const char* noun);
// str(object).
std::string text_of(nb::handle object);
// The class of an object with its module, for messages.
std::string class_name(nb::handle object);

// Finds the exception classes of cosmati._errors and registers the translation.
void bind_errors();

}  // namespace cosmati::python
