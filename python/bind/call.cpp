// Matching, borrowing and making the arguments of a call.
// SPDX-License-Identifier: Apache-2.0
#include "bind/call.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "bind/errors.h"

namespace cosmati::python {
namespace {

using Kind = Program::Parameter::Kind;

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_argument, {}, message, hint);
}

bool is(nb::handle key, nb::handle name) { return key.ptr() == name.ptr() || PyUnicode_Compare(key.ptr(), name.ptr()) == 0; }

// The names of the options, kept for good: what is destroyed with the process is destroyed after Python.
nb::handle option(const char* name) { return PyUnicode_InternFromString(name); }
bool is_out(nb::handle key) {
  static const nb::handle out = option("out");
  return is(key, out);
}
bool is_device(nb::handle key) {
  static const nb::handle device = option("device");
  return is(key, device);
}

std::string names_of(const PyFunction::Signature& signature, const std::vector<std::size_t>& which) {
  std::string names;
  for (std::size_t i : which) names += (names.empty() ? "" : ", ") + signature.parameters[i].name;
  return names;
}

std::string all_names(const PyFunction::Signature& signature) {
  std::string names;
  for (const auto& parameter : signature.parameters) names += (names.empty() ? "" : ", ") + parameter.name;
  return names;
}

std::optional<std::size_t> find(const PyFunction::Signature& signature, nb::handle key) {
  for (std::size_t i = 0; i < signature.parameters.size(); ++i)
    if (key.ptr() == signature.parameters[i].key.ptr()) return i;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i)
    if (is(key, signature.parameters[i].key)) return i;
  return std::nullopt;
}

bool is_axis_of_an_output(const PyFunction::Signature& signature, const std::string& name) {
  return std::any_of(signature.outs.begin(), signature.outs.end(), [&](std::size_t i) {
    const auto& axes = signature.parameters[i].axes;
    return std::find(axes.begin(), axes.end(), name) != axes.end();
  });
}

// A boolean of NumPy or torch, or an array of one: an integer too, if it is asked.
bool is_boolean(nb::handle value) {
  if (!nb::hasattr(value, "dtype")) return false;
  const auto name = text_of(value.attr("dtype"));
  return name == "bool" || name == "torch.bool";
}

// A number of Python or NumPy, as exactly as it was given.
Argument scalar_of(nb::handle value, const std::string& parameter, const std::string& type) {
  PyObject* o = value.ptr();
  if (PyBool_Check(o)) return o == Py_True;
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  nb::object integer;
  if (PyLong_Check(o)) {
    integer = nb::borrow(o);
  } else if (is_boolean(value)) {
    return PyObject_IsTrue(o) == 1;
  } else {
    integer = nb::steal(PyNumber_Index(o));
    if (!integer.is_valid()) PyErr_Clear();
  }
  if (integer.is_valid()) {
    int overflow = 0;
    const std::int64_t i = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow) refuse(parameter + " is beyond 64 bits", "pass a number that " + type + " holds");
    return i;
  }
  const double d = PyFloat_AsDouble(o);
  if (d == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    refuse(parameter + " is a scalar, and a value of type " + class_name(value) + " is given", "pass a number");
  }
  return d;
}

}  // namespace

Fraction interruptible() {
  return [](double) {
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  };
}

Call::Call(PyFunction& function, nb::args args, nb::kwargs kwargs) : owner_(function), signature_(function.signature()) {
  const std::size_t count = signature_.parameters.size();
  objects_.resize(count);
  values_.resize(count);
  pointers_.resize(count);
  made_.resize(count);
  arrays_.reserve(count);
  std::optional<std::string> device;
  nb::handle out;
  if (args.size() > signature_.inputs.size())
    refuse(owner_.name() + " takes " + counted(signature_.inputs.size(), "array") + " by position (" +
               names_of(signature_, signature_.inputs) + "), and " + std::to_string(args.size()) + " are given",
           "pass outputs as out=, scalars by their names");
  for (std::size_t i = 0; i < args.size(); ++i) objects_[signature_.inputs[i]] = nb::borrow(args[i]);
  for (auto [key, value] : kwargs) {
    const std::optional<std::size_t> at = find(signature_, key);
    const bool output = at && signature_.parameters[*at].kind == Kind::out;
    if ((!at || output) && is_out(key)) {
      out = value;
    } else if (!at && is_device(key)) {
      if (!value.is_none()) device = text_of(value);
    } else if (output) {
      const std::string& name = signature_.parameters[*at].name;
      refuse(name + " is an output of " + owner_.name() + ", and outputs are passed as out=",
             signature_.outs.size() == 1 ? "out=ARRAY" : "out={\"" + name + "\": ARRAY}");
    } else if (at) {
      if (objects_[*at].is_valid()) refuse(signature_.parameters[*at].name + " is given twice, by position and by name");
      objects_[*at] = nb::borrow(value);
    } else {
      const auto name = nb::cast<std::string>(key);
      if (!is_axis_of_an_output(signature_, name))
        refuse(owner_.name() + " has no parameter `" + name + "`", "its parameters are " + all_names(signature_));
      const Argument extent = scalar_of(value, name, "i64");
      if (!std::holds_alternative<std::int64_t>(extent)) refuse("the extent of axis " + name + " is an integer");
      extents_.emplace_back(name, std::get<std::int64_t>(extent));
    }
  }
  if (out.is_valid() && !out.is_none()) take_out(out);
  for (std::size_t i = 0; i < count; ++i) {
    if (!objects_[i].is_valid()) continue;
    if (signature_.parameters[i].kind == Kind::scalar)
      give(i, scalar_of(objects_[i], signature_.parameters[i].name, signature_.declared[i].type));
    else
      borrow(i, objects_[i]);
  }
  on_ = &owner_.on(device, arrays_.empty() ? std::nullopt : arrays_[0].gpu, first_);
}

void Call::take_out(nb::handle out) {
  if (PyTuple_Check(out.ptr()) || PyList_Check(out.ptr())) {
    const auto arrays = nb::borrow<nb::sequence>(out);
    if (nb::len(arrays) != signature_.outs.size())
      refuse(owner_.name() + " has " + counted(signature_.outs.size(), "output") + " (" + names_of(signature_, signature_.outs) +
                 "), and out= holds " + std::to_string(nb::len(arrays)),
             "pass one for each, None where the library shall make it");
    for (std::size_t i = 0; i < signature_.outs.size(); ++i)
      if (nb::object array = arrays[i]; !array.is_none()) objects_[signature_.outs[i]] = array;
    return;
  }
  if (!PyDict_Check(out.ptr())) {
    if (signature_.outs.size() != 1)
      refuse(owner_.name() + " has " + counted(signature_.outs.size(), "output") + " (" + names_of(signature_, signature_.outs) +
                 "), and out= is one array",
             "pass a tuple of arrays, or a dict of them by their names");
    objects_[signature_.outs[0]] = nb::borrow(out);
    return;
  }
  for (auto [key, value] : nb::borrow<nb::dict>(out)) {
    const std::optional<std::size_t> at = PyUnicode_Check(key.ptr()) ? find(signature_, key) : std::nullopt;
    if (!at || signature_.parameters[*at].kind != Kind::out)
      refuse(owner_.name() + " has no output `" + text_of(key) + "`", "its outputs are " + names_of(signature_, signature_.outs));
    if (!value.is_none()) objects_[*at] = nb::borrow(value);
  }
}

void Call::borrow(std::size_t parameter, nb::handle object) {
  const std::string& name = signature_.parameters[parameter].name;
  Array& array = arrays_.emplace_back(object, name);
  borrowed_.push_back(parameter);
  if (arrays_.size() == 1) first_ = name;
  if (array.gpu != arrays_[0].gpu)
    refuse(name + " is on " + device_name(array.gpu) + ", and " + first_ + " on " + device_name(arrays_[0].gpu),
           "pass arrays of one device");
  if (signature_.parameters[parameter].kind != Kind::out && !beside_.like.is_valid())
    beside_ = {object, array.producer, array.gpu};
  give(parameter, array.view);
}

void Call::give(std::size_t parameter, Argument value) {
  values_[parameter] = std::move(value);
  pointers_[parameter] = &values_[parameter];
}

Arguments Call::arguments() const {
  Arguments arguments;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (pointers_[i]) arguments.emplace_back(signature_.parameters[i].name, values_[i]);
  return arguments;
}

std::vector<cosmati::Function::OutputShape> Call::missing() const {
  const bool some = std::any_of(signature_.outs.begin(), signature_.outs.end(), [&](std::size_t i) { return !pointers_[i]; });
  if (!some && extents_.empty()) return {};
  return without_gil([&] { return function().missing_outputs(in_order(), extents_); });
}

void Call::make_outputs() {
  const auto shapes = missing();
  std::size_t next = 0;
  for (std::size_t i : signature_.outs) {
    if (pointers_[i]) continue;
    const auto& shape = shapes[next++];
    objects_[i] = allocate(shape.dtype, shape.shape, beside_, shape.name);
    borrow(i, objects_[i]);
    made_[i] = true;
  }
}

void Call::sketch_outputs() {
  const auto shapes = missing();
  std::size_t next = 0;
  for (std::size_t i : signature_.outs)
    if (!pointers_[i]) give(i, TensorView(nullptr, shapes[next].dtype, shapes[next].shape)), ++next;
}

void Call::run() const {
  if (arrays_.empty() || !arrays_[0].gpu) return function().call(in_order());
  // Libraries that work on different streams wait for each other's work, and for this.
  const Stream stream = on_->device.adopt(arrays_[0].stream);
  bool several = false;
  for (const Array& array : arrays_) {
    if (array.stream == arrays_[0].stream) continue;
    several = true;
    on_->device.adopt(array.stream).wait();
  }
  function().call(in_order(), stream);
  if (several) stream.wait();
}

void Call::bring_to_host() {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    values_[borrowed_[i]] = arrays_[i].on_host(std::get<TensorView>(values_[borrowed_[i]]));
}

nb::object Call::results() {
  auto result = [&](std::size_t i) { return made_[i] ? as_array_of(beside_, objects_[i]) : objects_[i]; };
  if (signature_.outs.empty()) return nb::none();
  if (signature_.outs.size() == 1) return result(signature_.outs[0]);
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(signature_.outs.size())));
  for (std::size_t k = 0; k < signature_.outs.size(); ++k)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(k), result(signature_.outs[k]).release().ptr());
  return tuple;
}

}  // namespace cosmati::python
