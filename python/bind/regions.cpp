// Reductions, the region of a program, streams and reducers of the user.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/language.h"

namespace cosmati::python {
namespace {

using cosmati::detail::Over;

void add_axis(Over& over, nb::handle object) {
  const AxisValue* axis = nullptr;
  const Axes* pack = nullptr;
  if (nb::try_cast(object, axis) && axis)
    cosmati::detail::add_axis(over, axis->axis);
  else if (nb::try_cast(object, pack) && pack)
    cosmati::detail::add_axis(over, *pack);
  else
    throw Error(ErrorCode::syntax, user_place(),
                "an axis is needed here, and an object of type " + class_name(object) + " is given",
                "a reduction takes its values first and then axes; for the larger of two values use maximum(x, y)");
}

template <class Choice, std::size_t N>
Choice choose(const char* what, const std::string& word, const std::pair<const char*, Choice> (&choices)[N]) {
  std::string words;
  for (const auto& [name, choice] : choices) {
    if (word == name) return choice;
    words += (words.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorCode::unknown_name, user_place(), std::string(what) + " is not \"" + word + "\"", "it is one of " + words);
}
constexpr std::pair<const char*, order> orders[] = {{"tree", order::tree}, {"left", order::left}};
constexpr std::pair<const char*, relax> relaxations[] = {{"none", relax::none},
                                                         {"narrow", relax::narrow},
                                                         {"tf32", relax::tf32},
                                                         {"split_tf32", relax::split_tf32},
                                                         {"approx", relax::approx}};

Over over_of(nb::handle axes, std::size_t from, const std::string& tree, const std::optional<std::string>& relaxed) {
  Over over{{}, {}};
  for (std::size_t i = from; i < nb::len(axes); ++i) add_axis(over, axes[i]);
  if (over.axes.empty() && nb::len(axes) <= from)
    throw Error(ErrorCode::syntax, user_place(), "a reduction takes its values first and then at least one axis",
                "for the larger of two values use maximum(x, y)");
  over.tree = choose("order", tree, orders);
  over.relaxed = choose("relax", relaxed.value_or("none"), relaxations);
  return over;
}

void reducer(nb::module_& m, const char* name, const char* doc, bool several) {
  const std::string signature = "def " + std::string(name) +
                                "(x: Value | float, *axes: Axis | Axes, order: str = \"tree\", relax: str | None = None) -> " +
                                (several ? "tuple[Tile, Tile]" : "Tile");
  m.def(
      name,
      [name](nb::handle x, nb::args axes, const std::string& order, const std::optional<std::string>& relax) {
        Here here;
        const Operand value = operand(x);
        return results(cosmati::detail::reduce(name, {&value}, over_of(axes, 0, order, relax)));
      },
      nb::arg("x"), nb::arg("axes"), nb::kw_only(), nb::arg("order") = "tree", nb::arg("relax") = nb::none(),
      nb::sig(signature.c_str()), doc);
}

// ---- reducers of the user ------------------------------------------------------------------------------------------
class PyReducer {
 public:
  PyReducer(std::string name, nb::object identity, nb::object lift, nb::object merge, nb::object finish)
      : name(std::move(name)),
        identity(std::move(identity)),
        lift(std::move(lift)),
        merge(std::move(merge)),
        finish(std::move(finish)) {
    const nb::object parameters = nb::module_::import_("inspect").attr("signature")(this->lift).attr("parameters");
    arity_ = nb::len(parameters);
    if (arity_ == 0) throw Error(ErrorCode::syntax, user_place(), "the lift of a reducer takes at least one value");
  }

  nb::object call(nb::args args, const std::string& order, const std::optional<std::string>& relax) const {
    Here here;
    if (nb::len(args) <= arity_)
      throw Error(ErrorCode::syntax, user_place(),
                  "the reducer " + name + " takes " + counted(arity_, "value") + " first and then at least one axis");
    std::vector<Tile> values;
    for (std::size_t i = 0; i < arity_; ++i) values.push_back(operand(args[i]).tile);
    const Over over = over_of(args, arity_, order, relax);
    cosmati::detail::ReducerParts parts;
    parts.name = name.c_str();
    parts.states = calling_python([&] { return tiles_of(identity()).size(); });
    parts.identity = [this, &parts] { return state("identity", parts.states, identity()); };
    parts.lift = [this, &parts](const auto& x) { return state("lift", parts.states, lift(*tuple_of(x))); };
    parts.merge = [this, &parts](const auto& a, const auto& b) {
      return state("merge", parts.states, merge(tuple_of(a), tuple_of(b)));
    };
    parts.finish = [this](const auto& s) { return calling_python([&] { return tiles_of(finish(tuple_of(s))); }); };
    return results(calling_python([&] { return cosmati::detail::reduce(parts, values, over); }));
  }

  std::string name;

 private:
  std::vector<Tile> state(const char* part, std::size_t states, nb::handle returned) const {
    std::vector<Tile> tiles = tiles_of(returned);
    if (tiles.size() != states)
      throw Error(ErrorCode::syntax, user_place(),
                  std::string("the ") + part + " of the reducer " + name + " gives " + counted(tiles.size(), "value") +
                      ", and its state has " + std::to_string(states));
    return tiles;
  }

  nb::object identity, lift, merge, finish;
  std::size_t arity_ = 0;
};

// ---- streams -------------------------------------------------------------------------------------------------------
struct PyTiles {
  nb::object axis;
};

std::vector<Tile> as_many(const char* what, std::size_t count, nb::handle returned) {
  if (returned.is_none())
    throw Error(ErrorCode::syntax, user_place(), std::string(what) + " returns nothing", "return one value for each carried one");
  std::vector<Tile> tiles = tiles_of(returned);
  if (tiles.size() != count)
    throw Error(
        ErrorCode::syntax, user_place(),
        std::string(what) + " returns " + counted(tiles.size(), "value") + ", and the stream carries " + std::to_string(count));
  return tiles;
}

nb::object stream(nb::handle over, nb::handle init, nb::handle body, nb::handle merge) {
  Here here;
  const PyTiles* tiles = nullptr;
  const AxisValue* axis = nullptr;
  const bool pieces = nb::try_cast(over, tiles) && tiles;
  if (!nb::try_cast(pieces ? nb::handle(tiles->axis) : over, axis) || !axis)
    throw Error(ErrorCode::syntax, user_place(), "a stream goes over an axis",
                "stream(t, ...) by index, stream(tiles(t), ...) by pieces");
  const std::vector<Tile> carried = tiles_of(init);
  auto run = [&](const std::vector<Tile>& values) {
    return calling_python([&] {
      nb::object returned = body(*tuple_of(values));
      cosmati::detail::BodyResult result{as_many("the body of a stream", carried.size(), returned), {}};
      if (!merge.is_none())
        result.merge = [&](const std::vector<Tile>& a, const std::vector<Tile>& b) {
          return calling_python(
              [&] { return as_many("the merge of a stream", carried.size(), merge(tuple_of(a), tuple_of(b))); });
        };
      return result;
    });
  };
  return results(cosmati::detail::stream(axis->axis, pieces, carried, run, {}));
}

// ---- the region ----------------------------------------------------------------------------------------------------
struct Region {
  nb::tuple axes;
};

}  // namespace

void bind_regions(nb::module_& m) {
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation) \
  reducer(m, #name, documentation, cosmati::detail::count_results(#finish) > 1);
#include <cosmati/reducers.def>
#undef REDUCER
  m.def(
      "contract",
      [](nb::handle a, nb::handle b, nb::args axes, const std::string& order, const std::optional<std::string>& relax) {
        Here here;
        const Operand x = operand(a), y = operand(b);
        return results(cosmati::detail::reduce("contract", {&x, &y}, over_of(axes, 0, order, relax)));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("axes"), nb::kw_only(), nb::arg("order") = "tree", nb::arg("relax") = nb::none(),
      nb::sig("def contract(a: Value | float, b: Value | float, *axes: Axis | Axes, order: str = \"tree\", relax: str | None = "
              "None) -> Tile"),
      "sum(a * b, axes), the same node.");

  nb::class_<PyReducer>(m, "Reducer",
                        R"(A reducer of one's own: Reducer(name, identity, lift, merge, finish), called as best(x, axis).

identity() gives the state of nothing, lift(x, ...) that of one element, merge(a, b) that of two states together (tuples), finish(s) the
results. Each returns one value or a tuple. lift's parameters say how many values a call takes before its axes. The oracle tests
identity, associativity and, unless order="left", commutativity.)")
      .def(nb::init<std::string, nb::object, nb::object, nb::object, nb::object>(), nb::arg("name"), nb::arg("identity"),
           nb::arg("lift"), nb::arg("merge"), nb::arg("finish"))
      .def("__call__", &PyReducer::call, nb::arg("args"), nb::kw_only(), nb::arg("order") = "tree", nb::arg("relax") = nb::none(),
           nb::sig("def __call__(self, *args: typing.Any, order: str = \"tree\", relax: str | None = None) -> typing.Any"))
      .def("__repr__", [](const PyReducer& r) { return "<cosmati.Reducer " + r.name + ">"; });

  nb::class_<PyTiles>(m, "Tiles", "The pieces of an axis, of any size.").def("__repr__", [](const PyTiles& tiles) {
    return "<cosmati.Tiles of " + text_of(tiles.axis) + ">";
  });
  m.def(
      "tiles", [](nb::object axis) { return PyTiles{std::move(axis)}; }, nb::arg("axis"),
      nb::sig("def tiles(axis: Axis) -> Tiles"), "Stream over pieces of an axis.");
  m.def(
      "stream", stream, nb::arg("over"), nb::arg("init"), nb::arg("body"), nb::arg("merge").none() = nb::none(),
      nb::sig("def stream(over: Axis | Tiles, init: typing.Any, body: typing.Callable[..., typing.Any], merge: "
              "typing.Callable[..., typing.Any] | None = None) -> typing.Any"),
      "Carry values along an axis. body(*carried) returns the next ones: one value or a tuple, as many as `init` has. stream(t, "
      "...) "
      "goes index by index, and stores inside index with t; stream(tiles(t), ...) hands the body pieces, and the meaning may not "
      "depend "
      "on the cuts. merge(a, b), of two tuples, lets a stream be split. Returns the last values; a tuple if there are several.");

  nb::class_<Region>(m, "Region", "The region of a program: `with parallel(row): ...`.")
      .def("__enter__",
           [](const Region& region) {
             Here here;
             Over over{{}, {}};
             for (nb::handle axis : region.axes) add_axis(over, axis);
             cosmati::detail::begin_parallel(over);
           })
      .def(
          "__exit__", [](const Region&, nb::args) { return false; }, nb::arg("exception"),
          nb::sig("def __exit__(self, *exception: object) -> bool"));
  m.def(
      "parallel", [](nb::args axes) { return Region{nb::borrow<nb::tuple>(axes)}; }, nb::arg("axes"),
      nb::sig("def parallel(*axes: Axis | Axes) -> Region"),
      "The region of a program, one instance for every point of the axes, independent of each other: `with parallel(row): ...`.");
}

}  // namespace cosmati::python
