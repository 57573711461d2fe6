// Axes, dtypes, parameters, and the indices of accesses and stores.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/language.h"

namespace cosmati::python {
namespace {

template <class T>
const T* as(nb::handle object) {
  const T* found = nullptr;
  return nb::try_cast(object, found) ? found : nullptr;
}

std::optional<std::int64_t> integer(nb::handle object) {
  if (PyBool_Check(object.ptr()) || !PyLong_Check(object.ptr())) return std::nullopt;
  int overflow = 0;
  const std::int64_t i = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow) return std::nullopt;
  return i;
}

// ---- dimensions ----------------------------------------------------------------------------------------------------
Dim composite_dim(nb::handle parts) {
  Dim dim(0);
  dim.parts.clear();
  for (nb::handle part : parts) {
    if (const auto* axis = as<AxisValue>(part))
      dim.parts.emplace_back(axis->axis);
    else if (auto constant = integer(part))
      dim.parts.emplace_back(static_cast<int>(*constant));
    else
      throw Error(ErrorCode::not_supported, user_place(), "the factors of a composite dimension are axes and constants",
                  "(slow, fast)");
  }
  return dim;
}

std::vector<Dim> dims_of(nb::handle list) {
  if (!PyList_Check(list.ptr()) && !PyTuple_Check(list.ptr()))
    throw Error(ErrorCode::syntax, user_place(), "dimensions are a list", "[row, col]");
  std::vector<Dim> dims;
  for (nb::handle item : list) {
    if (const auto* axis = as<AxisValue>(item))
      dims.emplace_back(axis->axis);
    else if (const auto* pack = as<Axes>(item))
      dims.emplace_back(*pack);
    else if (const auto* composite = as<Composite>(item))
      dims.push_back(composite_dim(composite->parts));
    else if (PyTuple_Check(item.ptr()))
      dims.push_back(composite_dim(item));
    else if (auto constant = integer(item))
      dims.emplace_back(static_cast<int>(*constant));
    else
      dims.emplace_back(operand(item).tile);
  }
  return dims;
}

// ---- indices -------------------------------------------------------------------------------------------------------
IndexArg composite_index(nb::handle parts) {
  std::vector<Tile> tiles;
  for (nb::handle part : parts) tiles.push_back(operand(part).tile);
  return IndexArg(std::move(tiles), std::source_location::current());
}

std::vector<IndexArg> index_of(nb::handle key) {
  auto one = [](nb::handle item) {
    if (const auto* pack = as<Axes>(item)) return IndexArg(*pack);
    if (const auto* composite = as<Composite>(item)) return composite_index(composite->parts);
    if (PyTuple_Check(item.ptr())) return composite_index(item);
    return IndexArg(operand(item).tile);
  };
  std::vector<IndexArg> index;
  if (PyTuple_Check(key.ptr()))
    for (nb::handle item : key) index.push_back(one(item));
  else
    index.push_back(one(key));
  return index;
}

// ---- dtypes --------------------------------------------------------------------------------------------------------
// bool is Python's: `boolean`, as in C++.
std::string object_name(DType t) { return is_bool(t) ? "boolean" : std::string(name(t)); }

TypeChoice choice_of(nb::handle type) {
  if (const auto* dtype = as<DTypeValue>(type)) return {TypeChoice::Class::fixed, dtype->dtype};
  if (const auto* choice = as<TypeChoice>(type)) return *choice;
  throw Error(ErrorCode::syntax, user_place(), "the type of a parameter is a dtype, a class of dtypes, or like(x)",
              "f32, any_float, like(x)");
}

std::unique_ptr<ParameterValue> declare(Kind kind, const std::string& name, nb::handle type, nb::handle dims) {
  Here here;
  const TypeChoice choice = choice_of(type);
  const int access = static_cast<int>(kind);
  return std::make_unique<ParameterValue>(cosmati::detail::declare(access, name.c_str(), choice, dims_of(dims), {}), kind, name);
}

}  // namespace

Operand ParameterValue::operand() const {
  refuse_out();
  return kind == Kind::in ? Operand(Input(parameter)) : Operand(InOut(parameter));
}
void ParameterValue::refuse_out() const {
  if (kind == Kind::out)
    throw Error(ErrorCode::not_supported, user_place(), "the out parameter " + name + " cannot be read", "declare it inout");
}

void bind_declarations(nb::module_& m) {
  nb::class_<DTypeValue>(m, "DType", "An element type. Calling it casts: f32(x).")
      .def_prop_ro("name", [](const DTypeValue& t) { return std::string(cosmati::name(t.dtype)); })
      .def_prop_ro(
          "bytes", [](const DTypeValue& t) { return byte_size(t.dtype); }, "The size of an element.")
      .def(
          "__call__",
          [](const DTypeValue& t, ValueLike x) {
            Here here;
            return new_tile(cosmati::detail::cast(t.dtype, operand(x)));
          },
          nb::arg("x"), nb::sig("def __call__(self, x: Value | float) -> Tile"),
          "The value as this type; float to integer truncates and saturates, NaN gives 0.")
      .def("__repr__", [](const DTypeValue& t) { return "cosmati." + object_name(t.dtype); });
  for (int i = 0; i < dtype_count; ++i) {
    const auto t = static_cast<DType>(i);
    m.attr(object_name(t).c_str()) = nb::cast(DTypeValue{t});
  }
  nb::class_<TypeChoice>(m, "TypeChoice", "The type of a parameter that arguments decide: any_float, any_int, any_type, like(x).")
      .def("__repr__", [](const TypeChoice& choice) {
        constexpr const char* names[] = {"any_float", "any_int", "any_type", "a dtype", "like(...)"};
        return std::string("<cosmati.TypeChoice ") + names[static_cast<int>(choice.klass)] + ">";
      });
  m.attr("any_float") = nb::cast(any_float);
  m.attr("any_int") = nb::cast(any_int);
  m.attr("any_type") = nb::cast(any_type);
  m.def(
      "like", [](const ParameterValue& x) { return TypeChoice{TypeChoice::Class::like, DType::f32_, x.parameter}; },
      nb::arg("parameter"), "The type of another parameter.");

  nb::class_<AxisValue, Value>(
      m, "Axis", R"(An axis: two axes are the same exactly when they are the same object. As a value it is its coordinate.

Axis("row") is bound by the dimensions of arguments, Axis("half", 2) is 0 .. 2, Axis("t", lo, hi) is lo .. hi, and empty where hi <= lo.)")
      .def(
          "__init__",
          [](AxisValue* self, const std::string& name, nb::args range) {
            Here here;
            if (range.size() > 2)
              throw Error(ErrorCode::syntax, user_place(), "an axis has a name and at most two bounds", "Axis(\"t\", lo, hi)");
            if (range.size() == 0)
              new (self) AxisValue(name);
            else if (range.size() == 1)
              new (self) AxisValue(name, Operand(0), operand(range[0]));
            else
              new (self) AxisValue(name, operand(range[0]), operand(range[1]));
          },
          nb::arg("name"), nb::arg("range"), nb::sig("def __init__(self, name: str, *range: Value | float) -> None"))
      .def(
          "extent",
          [](const AxisValue& a) {
            Here here;
            return new_tile(a.axis.extent());
          },
          "How many coordinates it has.")
      .def_ro("name", &AxisValue::name)
      .def("__repr__", [](const AxisValue& a) { return "<cosmati.Axis " + a.name + ">"; });
  nb::class_<Axes>(m, "Axes", "Any number of leading axes, none included: how many follows from the arguments.")
      .def(
          "__init__",
          [](Axes* self, const std::string& name) {
            Here here;
            new (self) Axes(name.c_str());
          },
          nb::arg("name"))
      .def_ro("name", &Axes::name)
      .def("__repr__", [](const Axes& a) { return "<cosmati.Axes " + a.name + "...>"; });
  nb::class_<Composite>(m, "Composite", "Axes of one tensor dimension, the last one fastest.")
      .def("__repr__", [](const Composite& c) { return "<cosmati.Composite " + text_of(c.parts) + ">"; });
  m.def(
      "dim", [](nb::args parts) { return Composite{nb::borrow<nb::tuple>(parts)}; }, nb::arg("axes"),
      nb::sig("def dim(*axes: Value | float) -> Composite"),
      "One dimension or index of several axes, the last one fastest. A tuple says the same: [b, (g, r), d].");

  nb::class_<ParameterValue, Value>(
      m, "Tensor", R"(A tensor parameter. x[i, j] reads, y[i, j] = value stores; a bare x is x at its declared axes.)")
      .def(
          "__getitem__",
          [](const ParameterValue& p, nb::handle key) {
            Here here;
            p.refuse_out();
            return std::make_unique<AccessValue>(p.parameter, index_of(key));
          },
          nb::arg("index"))
      .def(
          "__setitem__",
          [](const ParameterValue& p, nb::handle key, ValueLike value) {
            Here here;
            if (p.kind == Kind::in)
              throw Error(ErrorCode::not_supported, user_place(), "the in parameter " + p.name + " cannot be written",
                          "declare it inout");
            const Operand stored = operand(value);
            cosmati::detail::store(p.parameter, index_of(key), stored);
          },
          nb::arg("index"), nb::arg("value").none(),
          nb::sig("def __setitem__(self, index: object, value: Value | float) -> None"))
      .def_ro("name", &ParameterValue::name)
      .def("__repr__", [](const ParameterValue& p) { return "<cosmati.Tensor " + p.name + ">"; });
  m.def(
      "input",
      [](const std::string& name, nb::handle type, nb::handle dims, nb::handle within, bool sorted, bool distinct) {
        auto made = declare(Kind::in, name, type, dims);
        Here here;
        if (!within.is_none()) {
          if (!PyTuple_Check(within.ptr()) || nb::len(within) != 2)
            throw Error(ErrorCode::syntax, user_place(), "within is a pair (lo, hi)", "within=(0, col.extent())");
          const Operand lo = operand(within[0]), hi = operand(within[1]);
          cosmati::detail::promise(made->parameter, &lo, &hi, false, false, {});
        }
        if (sorted || distinct) cosmati::detail::promise(made->parameter, nullptr, nullptr, sorted, distinct, {});
        return made;
      },
      nb::arg("name"), nb::arg("type"), nb::arg("dims"), nb::kw_only(), nb::arg("within").none() = nb::none(),
      nb::arg("sorted") = false, nb::arg("distinct") = false,
      nb::sig("def input(name: str, type: DType | TypeChoice, dims: list[typing.Any], *, within: tuple[Value | float, Value | "
              "float] | None = None, sorted: bool = False, "
              "distinct: bool = False) -> Tensor"),
      "Declare a tensor that is read. Dimensions are axes, constants, axis + constant, (slow, fast), or Axes. Of integers: "
      "within=(lo, "
      "hi) promises lo <= x < hi, `sorted` and `distinct` hold along the last dimension; promises are checked at every call.");
  m.def(
      "output", [](const std::string& name, nb::handle type, nb::handle dims) { return declare(Kind::out, name, type, dims); },
      nb::arg("name"), nb::arg("type"), nb::arg("dims"),
      nb::sig("def output(name: str, type: DType | TypeChoice, dims: list[typing.Any]) -> Tensor"),
      "Declare a tensor that is written completely.");
  m.def(
      "inout", [](const std::string& name, nb::handle type, nb::handle dims) { return declare(Kind::inout, name, type, dims); },
      nb::arg("name"), nb::arg("type"), nb::arg("dims"),
      nb::sig("def inout(name: str, type: DType | TypeChoice, dims: list[typing.Any]) -> Tensor"),
      "Declare a tensor that is updated in place: reads see what it held before the program.");
  m.def(
      "scalar",
      [](const std::string& name, const DTypeValue& type, nb::handle fallback) {
        Here here;
        ScalarParameter parameter(name.c_str(), type.dtype, {});
        if (!fallback.is_none()) parameter.defaults(operand(fallback));
        return new_tile(parameter);
      },
      nb::arg("name"), nb::arg("type"), nb::arg("default").none() = nb::none(),
      nb::sig("def scalar(name: str, type: DType, default: Value | float | None = None) -> Tile"),
      "Declare a scalar, optional where it has a default.");
}

}  // namespace cosmati::python
