// One call of a program: Python's arguments matched with parameters, arrays borrowed, outputs made.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/runtime.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.h"
#include "bind/function.h"

namespace cosmati::python {

// Runs without the GIL, which whatever calls back into Python takes again.
template <class Body>
auto without_gil(const Body& body) {
  nb::gil_scoped_release released;
  return body();
}

// Asks Python now and then, while something runs without the GIL, whether a signal came: Ctrl-C ends the work.
Fraction interruptible();

// The arguments of one call. Made and destroyed with the GIL held.
class Call {
 public:
  // Throws Error{bad_argument} for what the program does not take, and where an array cannot be borrowed.
  Call(PyFunction& function, nb::args args, nb::kwargs kwargs);

  const cosmati::Function& function() const { return on_->function; }
  // What the library takes, in declared order; null where it is left out.
  std::span<const Argument* const> in_order() const { return pointers_; }
  // The same by name.
  Arguments arguments() const;
  // Makes the outputs that were not given.
  void make_outputs();
  // Gives them shapes without memory, for questions about a call.
  void sketch_outputs();
  // Runs; arrays of a GPU on the stream of their library, which is not waited for. Without the GIL.
  void run() const;
  // Copies what is on a GPU to the host, so that arguments() can be read here.
  void bring_to_host();
  // The outputs in declared order: one, a tuple of several, or None.
  nb::object results();

 private:
  std::vector<cosmati::Function::OutputShape> missing() const;
  void take_out(nb::handle out);
  void take_scalar(std::size_t parameter, nb::handle value);
  void borrow(std::size_t parameter, nb::handle object);
  void give(std::size_t parameter, Argument value);

  PyFunction& owner_;
  const PyFunction::Signature& signature_;
  const PyFunction::OnDevice* on_ = nullptr;
  std::vector<nb::object> objects_;    // by parameter; outs that were made too
  std::vector<Array> arrays_;          // what is borrowed
  std::vector<std::size_t> borrowed_;  // their parameters
  std::vector<Argument> values_;       // by parameter, where there is a pointer
  std::vector<const Argument*> pointers_;
  Extents extents_;         // that were given by name
  Beside beside_;           // the first array among the inputs: outputs are made as it was
  std::string first_;       // the parameter of the first array
  std::vector<bool> made_;  // by parameter: outputs that this call made
};

}  // namespace cosmati::python
