// The language in Python: the objects that stand for values, axes and parameters while a program is captured. They wrap those of
// the C++ form, one for one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <cosmati/dsl.h>
#include <memory>
#include <string>
#include <vector>

#include "bind/errors.h"

namespace cosmati::python {

// Whatever denotes a value. operand() records what that takes; the place is that of the Here that lives.
class Value {
 public:
  virtual ~Value() = default;
  virtual Operand operand() const = 0;
};

class TileValue final : public Value {
 public:
  explicit TileValue(Tile tile) : tile(tile) {}
  Operand operand() const override { return tile; }
  Tile tile;
};

class AxisValue final : public Value {
 public:
  explicit AxisValue(const std::string& name) : name(name), axis(name.c_str()) {}
  AxisValue(const std::string& name, const Operand& lo, const Operand& hi) : name(name), axis(name.c_str(), lo, hi) {}
  Operand operand() const override { return axis; }
  std::string name;
  Axis axis;
};

// A parameter, or x[i, j] of one. An access reads where it is used, and its mistakes are reported where it was written.
enum class Kind : std::uint8_t { in, out, inout };
class ParameterValue final : public Value {
 public:
  ParameterValue(cosmati::detail::Parameter parameter, Kind kind, std::string name)
      : parameter(parameter), kind(kind), name(std::move(name)) {}
  Operand operand() const override;
  void refuse_out() const;  // throws where it cannot be read
  cosmati::detail::Parameter parameter;
  Kind kind;
  std::string name;
};
class AccessValue final : public Value {
 public:
  AccessValue(cosmati::detail::Parameter parameter, std::vector<IndexArg> index)
      : parameter(parameter), index(std::move(index)), written(user_place()) {}
  Operand operand() const override {
    cosmati::detail::CalledFrom at(written);
    return cosmati::detail::load(parameter, index, nullptr, {});
  }
  cosmati::detail::Parameter parameter;
  std::vector<IndexArg> index;
  Where written;
};

// v.at(a, e).
class ReplacedValue final : public Value {
 public:
  ReplacedValue(Tile of, Replaced::Binds binds) : replaced(of, std::move(binds), {}), written(user_place()) {}
  Operand operand() const override {
    cosmati::detail::CalledFrom at(written);
    return replaced.value();
  }
  Replaced replaced;
  Where written;
};

// Several axes of a composite dimension: (g, r).
struct Composite {
  nb::tuple parts;
};

// A dtype as an object; calling it casts.
struct DTypeValue {
  DType dtype;
};

// What stands for a value in a signature.
struct ValueLike {
  nb::handle object;
};

// A value, or a number as a literal. Throws Error{type_mismatch} for anything else.
Operand operand(nb::handle object);
inline Operand operand(ValueLike like) { return operand(like.object); }
std::unique_ptr<TileValue> new_tile(Tile tile);
// One tile, or a tuple of several.
nb::object results(const std::vector<Tile>& tiles);
nb::tuple tuple_of(const std::vector<Tile>& tiles);
// What a callback returned: one value, or a tuple or list of several.
std::vector<Tile> tiles_of(nb::handle returned);

void bind_values(nb::module_& m);        // values, operators and functions
void bind_declarations(nb::module_& m);  // axes, dtypes and parameters
void bind_regions(nb::module_& m);       // reductions, parallel, streams
inline void bind_language(nb::module_& m) {
  bind_values(m);
  bind_declarations(m);
  bind_regions(m);
}

}  // namespace cosmati::python

// Any object passes; what is no value is an Error of operand(), at the user's line.
template <>
struct nanobind::detail::type_caster<cosmati::python::ValueLike> {
  NB_TYPE_CASTER(cosmati::python::ValueLike, const_name("Value | float"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
};
