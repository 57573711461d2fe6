// Values of the language: conversion from Python, operators, and the functions of ops.def.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/language.h"

namespace cosmati::python {
namespace {

[[noreturn]] void no_value(nb::handle object) {
  const auto type = class_name(object);
  std::string hint = "values are tiles, axes, parameters and numbers";
  if (PySlice_Check(object.ptr())) hint = "index with an axis, which stands for all of its coordinates";
  throw Error(ErrorCode::type_mismatch, user_place(), "an object of type " + type + " is no value of a program", hint);
}

std::unique_ptr<TileValue> apply(const char* op, ValueLike x) {
  Here here;
  const Operand a = operand(x);
  return new_tile(cosmati::detail::apply(op, {&a}, {}));
}
std::unique_ptr<TileValue> apply(const char* op, ValueLike x, ValueLike y) {
  Here here;
  const Operand a = operand(x), b = operand(y);
  return new_tile(cosmati::detail::apply(op, {&a, &b}, {}));
}
std::unique_ptr<TileValue> apply(const char* op, ValueLike x, ValueLike y, ValueLike z) {
  Here here;
  const Operand a = operand(x), b = operand(y), c = operand(z);
  return new_tile(cosmati::detail::apply(op, {&a, &b, &c}, {}));
}

template <int arity>
void function(nb::module_& m, const char* name, const char* doc) {
  if constexpr (arity == 1)
    m.def(name, [name](ValueLike x) { return apply(name, x); }, nb::arg("x"), doc);
  else if constexpr (arity == 2)
    m.def(name, [name](ValueLike x, ValueLike y) { return apply(name, x, y); }, nb::arg("x"), nb::arg("y"), doc);
  else
    m.def(
        name, [name](ValueLike x, ValueLike y, ValueLike z) { return apply(name, x, y, z); }, nb::arg("x"), nb::arg("y"),
        nb::arg("z"), doc);
}

void binary(nb::class_<Value>& c, const char* name, const char* reflected, const char* op) {
  c.def(name, [op](ValueLike x, ValueLike y) { return apply(op, x, y); }, nb::is_operator());
  if (reflected) c.def(reflected, [op](ValueLike y, ValueLike x) { return apply(op, x, y); }, nb::is_operator());
}

// & and | of booleans are the logical ones, as NumPy has it; of integers those of bits.
void logical(nb::class_<Value>& c, const char* name, const char* reflected, const char* of_booleans, const char* of_bits) {
  auto choose = [of_booleans, of_bits](ValueLike x, ValueLike y) {
    Here here;
    const Operand a = operand(x), b = operand(y);
    const bool booleans = is_bool(cosmati::detail::dtype(a)) && is_bool(cosmati::detail::dtype(b));
    return new_tile(cosmati::detail::apply(booleans ? of_booleans : of_bits, {&a, &b}, {}));
  };
  c.def(name, choose, nb::is_operator());
  c.def(reflected, [choose](ValueLike y, ValueLike x) { return choose(x, y); }, nb::is_operator());
}

}  // namespace

std::unique_ptr<TileValue> new_tile(Tile tile) { return std::make_unique<TileValue>(tile); }

nb::object results(const std::vector<Tile>& tiles) {
  if (tiles.size() == 1) return nb::cast(new_tile(tiles[0]));
  return tuple_of(tiles);
}

nb::tuple tuple_of(const std::vector<Tile>& tiles) {
  nb::list list;
  for (const Tile& tile : tiles) list.append(nb::cast(new_tile(tile)));
  return nb::tuple(list);
}

std::vector<Tile> tiles_of(nb::handle returned) {
  std::vector<Tile> tiles;
  if (PyTuple_Check(returned.ptr()) || PyList_Check(returned.ptr()))
    for (nb::handle value : returned) tiles.push_back(operand(value).tile);
  else
    tiles.push_back(operand(returned).tile);
  return tiles;
}

Operand operand(nb::handle object) {
  PyObject* o = object.ptr();
  if (Value* value = nullptr; nb::try_cast(object, value) && value) return value->operand();
  if (PyBool_Check(o)) return Operand(o == Py_True);
  if (PyFloat_Check(o)) return Operand(PyFloat_AS_DOUBLE(o));
  // Numbers of NumPy too, but not what only looks like one: strings and arrays have no place in a program.
  if (!PyLong_Check(o) && !PyNumber_Check(o)) no_value(object);
  if (nb::object integer = nb::steal(PyNumber_Index(o)); integer.is_valid()) {
    int overflow = 0;
    const std::int64_t i = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow)
      throw Error(ErrorCode::type_mismatch, user_place(), text_of(integer) + " is no i64", "integer literals are i64");
    return Operand(i);
  }
  PyErr_Clear();
  const double d = PyFloat_AsDouble(o);
  if (d == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    no_value(object);
  }
  return Operand(d);
}

void bind_values(nb::module_& m) {
  nb::class_<Value> value(m, "Value", R"(Whatever denotes a value while a program is captured: a function of axes.

Operators work element by element and join by axis. & | ~ are the logical operators of booleans; `and`, `or`, `not`, `if` and chained
comparisons ask for a truth that no value has before the program runs.)");
  binary(value, "__add__", "__radd__", "add");
  binary(value, "__sub__", "__rsub__", "sub");
  binary(value, "__mul__", "__rmul__", "mul");
  binary(value, "__truediv__", "__rtruediv__", "div");
  binary(value, "__floordiv__", "__rfloordiv__", "floordiv");
  binary(value, "__mod__", "__rmod__", "mod");
  binary(value, "__lshift__", "__rlshift__", "shift_left");
  binary(value, "__rshift__", "__rrshift__", "shift_right");
  binary(value, "__pow__", "__rpow__", "pow");
  binary(value, "__eq__", nullptr, "eq");
  binary(value, "__ne__", nullptr, "ne");
  binary(value, "__lt__", nullptr, "lt");
  binary(value, "__le__", nullptr, "le");
  binary(value, "__gt__", nullptr, "gt");
  binary(value, "__ge__", nullptr, "ge");
  logical(value, "__and__", "__rand__", "logical_and", "bit_and");
  logical(value, "__or__", "__ror__", "logical_or", "bit_or");
  logical(value, "__xor__", "__rxor__", "ne", "bit_xor");
  value.def("__neg__", [](ValueLike x) { return apply("neg", x); })
      .def("__invert__", [](ValueLike x) { return apply("logical_not", x); })
      .def("__abs__", [](ValueLike x) { return apply("abs", x); })
      .def("__hash__", [](nb::handle x) { return reinterpret_cast<std::intptr_t>(x.ptr()) >> 4; })
      .def("__bool__",
           [](const Value&) -> bool {
             throw Error(
                 ErrorCode::not_supported, user_place(), "a value has no truth while the program is captured",
                 "choose with where(c, x, y), or with maximum(x, y) and minimum(x, y) in place of Python's max and min; combine "
                 "conditions with & | ~, each comparison in parentheses");
           })
      .def("__getitem__",
           [](const Value&, nb::handle) -> nb::object {
             throw Error(ErrorCode::type_mismatch, user_place(), "only parameters are indexed",
                         "say where a computed value is taken by value.at(axis, index)");
           })
      .def(
          "at",
          [](const Value& v, nb::args pairs) {
            Here here;
            if (pairs.size() == 0 || pairs.size() % 2)
              throw Error(ErrorCode::syntax, user_place(), "at() takes pairs: an axis and what it becomes", "v.at(a, e, b, f)");
            Replaced::Binds binds;
            for (std::size_t i = 0; i < pairs.size(); i += 2) {
              const AxisValue* axis = nullptr;
              if (!nb::try_cast(pairs[i], axis) || !axis)
                throw Error(ErrorCode::syntax, user_place(), "at() takes pairs: an axis and what it becomes", "v.at(a, e, b, f)");
              cosmati::detail::add_binds(binds, axis->axis, operand(pairs[i + 1]));
            }
            return new ReplacedValue(v.operand().tile, std::move(binds));
          },
          nb::arg("pairs"), nb::sig("def at(self, *pairs: Value | float) -> Replaced"),
          "v.at(a, e, b, f): the value with axis a taken at e and b at f, at once: renames, slices, shifts and gathers. Where e "
          "may leave the axis, add .otherwise(value).");
  // No sequence, no iterable.
  value.attr("__iter__") = nb::none();
  value.attr("__contains__") = nb::none();
  // NumPy's functions are for arrays; only those that its numbers call for an operator beside a value are meant as that operator.
  value.def("__array_ufunc__", [](nb::handle self, nb::handle function, nb::handle, nb::args inputs, nb::kwargs) -> nb::object {
    static constexpr std::pair<const char*, const char*> operators[] = {{"add", "__radd__"},
                                                                        {"subtract", "__rsub__"},
                                                                        {"multiply", "__rmul__"},
                                                                        {"divide", "__rtruediv__"},
                                                                        {"true_divide", "__rtruediv__"},
                                                                        {"floor_divide", "__rfloordiv__"},
                                                                        {"remainder", "__rmod__"},
                                                                        {"power", "__rpow__"},
                                                                        {"left_shift", "__rlshift__"},
                                                                        {"right_shift", "__rrshift__"},
                                                                        {"bitwise_and", "__rand__"},
                                                                        {"bitwise_or", "__ror__"},
                                                                        {"bitwise_xor", "__rxor__"},
                                                                        {"equal", "__eq__"},
                                                                        {"not_equal", "__ne__"},
                                                                        {"less", "__gt__"},
                                                                        {"less_equal", "__ge__"},
                                                                        {"greater", "__lt__"},
                                                                        {"greater_equal", "__le__"}};
    const auto name = nb::cast<std::string>(function.attr("__name__"));
    const bool beside = inputs.size() == 2 && !nb::isinstance<Value>(inputs[0]) && inputs[1].is(self);
    for (const auto& [called, reflected] : operators)
      if (beside && name == called) return self.attr(reflected)(inputs[0]);
    const bool ours = nb::hasattr(nb::module_::import_("cosmati"), name.c_str());
    throw Error(ErrorCode::type_mismatch, user_place(), "numpy." + name + " is a function of arrays, and a program has values",
                ours ? "use cosmati." + name : "use the operations of cosmati, which `cosmati docs ops` lists");
  });

  nb::class_<TileValue, Value>(m, "Tile", "A computed value.").def("__repr__", [](const TileValue&) { return "<cosmati.Tile>"; });
  nb::class_<AccessValue, Value>(m, "Access", "x[i, j]: reads where it is used.")
      .def(
          "otherwise",
          [](const AccessValue& a, ValueLike other) {
            Here here;
            const Operand value = operand(other);
            cosmati::detail::CalledFrom at(a.written);
            return new_tile(cosmati::detail::load(a.parameter, a.index, &value, {}));
          },
          nb::arg("value"), "x[i, j], and `value` where the index leaves x.")
      .def("__repr__", [](const AccessValue&) { return "<cosmati.Access>"; });
  nb::class_<ReplacedValue, Value>(m, "Replaced", "v.at(a, e): a value taken elsewhere.")
      .def(
          "otherwise",
          [](const ReplacedValue& r, ValueLike other) {
            Here here;
            const Operand value = operand(other);
            cosmati::detail::CalledFrom at(r.written);
            return new_tile(r.replaced.otherwise(value));
          },
          nb::arg("value"), "v.at(a, e), and `value` where e leaves the axis.")
      .def("__repr__", [](const ReplacedValue&) { return "<cosmati.Replaced>"; });

#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) function<arity>(m, #name, documentation);
#include <cosmati/ops.def>
#undef OP
  m.def(
      "bits_f32",
      [](ValueLike x) {
        Here here;
        return new_tile(cosmati::bits_f32(operand(x)));
      },
      nb::arg("x"), "The f32 with the bits of a u32.");
  m.def(
      "bits_u32",
      [](ValueLike x) {
        Here here;
        return new_tile(cosmati::bits_u32(operand(x)));
      },
      nb::arg("x"), "The bits of an f32 as a u32.");
  m.def(
      "gelu",
      [](ValueLike x) {
        Here here;
        return new_tile(cosmati::gelu(operand(x)));
      },
      nb::arg("x"), "x times the normal distribution's P(X <= x).");
  m.def(
      "silu",
      [](ValueLike x) {
        Here here;
        return new_tile(cosmati::silu(operand(x)));
      },
      nb::arg("x"), "x * sigmoid(x).");
  m.def(
      "attend",
      [](ValueLike x, ValueLike v, const AxisValue& t) {
        Here here;
        const auto [out, lse] = cosmati::attend(operand(x), operand(v), t.axis);
        return results({out, lse});
      },
      nb::arg("x"), nb::arg("v"), nb::arg("t"),
      nb::sig("def attend(x: Value | float, v: Value | float, t: Axis) -> tuple[Tile, Tile]"),
      "The mean of v weighted by softmax(x) over t, and the logarithm of the softmax's denominator.");
  m.def(
      "named",
      [](const std::string& name, ValueLike x) {
        Here here;
        return new_tile(cosmati::named(name.c_str(), operand(x)));
      },
      nb::arg("name"), nb::arg("value"), "The value under a name, which plans, sources and knobs then use.");
  m.def(
      "require",
      [](ValueLike condition) {
        Here here;
        cosmati::require(operand(condition));
      },
      nb::arg("condition"), "A promise about extents and scalars: checked at every call, and proofs may use it.");
  m.attr("inf") = nb::float_(cosmati::inf);
  m.attr("nan") = nb::float_(cosmati::nan);
}

}  // namespace cosmati::python
