// The C++ form of the language: axes, tiles and regions, captured by running a lambda. A Program is captured lazily, on first use and once for
// each binding of its dtypes, so one at namespace scope costs nothing before main; a mistake throws cosmati::Error then, at the line of the
// expression. Nothing here executes anything: operators record tile IR.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cosmati/program.h>

namespace cosmati {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class Axis;
class Axes;
class Input;
class InOut;
class Access;
class InOutAccess;
class Replaced;

// A value: a function of axes. Copies are handles of the same value. Only meaningful inside the capture that made it. There is no
// conversion to bool, so `if (tile)` does not compile: a tile has no value yet, use where(c, x, y).
class Tile {
 public:
  template <class... B>
  Replaced at(const Axis& axis, const B&... binds) const;
  std::uint32_t id = ~0u;
  std::uint64_t capture = 0;
};

// What every operator takes: anything that denotes a value, with the place where it was written.
class Operand {
 public:
  using Location = std::source_location;
  Operand(Tile tile, Location at = Location::current()) : tile(tile), at(at) {}
  Operand(const Axis& axis, Location at = Location::current());
  Operand(const Input& input, Location at = Location::current());
  Operand(const InOut& inout, Location at = Location::current());
  Operand(const Access& access, Location at = Location::current());
  Operand(const InOutAccess& access, Location at = Location::current());
  Operand(const Replaced& replaced, Location at = Location::current());
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T literal, Location at = Location::current()) : at(at) {
    if constexpr (std::is_same_v<T, bool>)
      tile = of(literal);
    else if constexpr (std::is_floating_point_v<T>)
      tile = of(static_cast<double>(literal));
    else
      tile = of(static_cast<std::int64_t>(literal));
  }
  Tile tile;
  Location at;

 private:
  static Tile of(bool literal);
  static Tile of(double literal);
  static Tile of(std::int64_t literal);
};

// An axis is an object: two axes are the same exactly when they are the same object.
class Axis {
 public:
  using Location = std::source_location;
  explicit Axis(const char* name, Location at = Location::current());                          // bound by the dimensions of arguments
  Axis(const char* name, Operand hi, Location at = Location::current());                       // 0 .. hi
  Axis(const char* name, Operand lo, Operand hi, Location at = Location::current());           // lo .. hi
  Axis(const Axis&) = delete;
  Axis& operator=(const Axis&) = delete;
  Tile extent(Location at = Location::current()) const;
  std::uint32_t id = ~0u;
  std::uint64_t capture = 0;
};

// Any number of leading axes, none included: how many follows from the arguments.
class Axes {
 public:
  explicit Axes(const char* name);
  Axes(const Axes&) = delete;
  Axes& operator=(const Axes&) = delete;
  std::vector<std::uint32_t> ids;
  std::string name;
  std::uint64_t capture = 0;
};

// ---- declarations --------------------------------------------------------------------------------------------------
// One dimension of a tensor: an axis, a constant, axis + constant, {slow, ..., fast} for a composite one, or a pack.
class Dim {
 public:
  Dim(const Axis& axis);
  Dim(const Axes& pack);
  Dim(Tile axis_plus_constant);
  Dim(int constant);
  struct Part {
    Part(const Axis& axis);
    Part(int constant) : constant(constant) {}
    std::uint32_t axis = ~0u;
    std::int64_t constant = 0;
  };
  Dim(std::initializer_list<Part> composite) : parts(composite) {}
  std::vector<Part> parts;
  const Axes* pack = nullptr;
};
using Dims = std::initializer_list<Dim>;

// The dtype of a declaration: one of a class (each use of a class is a variable of its own), or that of another parameter.
struct TypeChoice {
  enum class Class : std::uint8_t { any_float, any_int, any, fixed, like } klass;
  DType fixed = DType::f32_;
  std::uint32_t like = 0;
};
inline constexpr TypeChoice any_float{TypeChoice::Class::any_float}, any_int{TypeChoice::Class::any_int}, any_type{TypeChoice::Class::any};

// One index: a value, a pack, or dim(slow, ..., fast) of a composite dimension.
class IndexArg {
 public:
  template <class T>
    requires std::is_convertible_v<const T&, Operand>
  IndexArg(const T& value, std::source_location at = std::source_location::current()) : parts{Operand(value, at).tile}, at(at) {}
  IndexArg(const Axes& pack, std::source_location at = std::source_location::current()) : pack(&pack), at(at) {}
  explicit IndexArg(std::vector<Tile> composite, std::source_location at) : parts(std::move(composite)), at(at) {}
  std::vector<Tile> parts;
  const Axes* pack = nullptr;
  std::source_location at;
};
IndexArg dim(Operand slow, Operand fast, std::source_location at = std::source_location::current());
IndexArg dim(Operand slow, Operand middle, Operand fast, std::source_location at = std::source_location::current());

namespace detail {

struct Parameter {
  std::uint32_t tensor = ~0u;
  std::uint64_t capture = 0;
};
Tile load(const Parameter& p, const std::vector<IndexArg>& index, const Operand* otherwise, std::source_location at);
void store(const Parameter& p, const std::vector<IndexArg>& index, const Operand& value);
Parameter declare(int access, const char* name, TypeChoice type, Dims dims, std::source_location at);
void promise(const Parameter& p, const Operand* lo, const Operand* hi, bool sorted, bool distinct);

template <class... Is>
std::vector<IndexArg> indices(const Is&... is) {
  return {IndexArg(is)...};
}

}  // namespace detail

// x(i, j): reads when it is used as a value.
class Access {
 public:
  Access(detail::Parameter p, std::vector<IndexArg> index) : parameter_(p), index_(std::move(index)) {}
  Access(const Access&) = default;
  Access& operator=(const Access&) = delete;  // inputs cannot be written
  Tile otherwise(Operand value) const { return detail::load(parameter_, index_, &value, value.at); }
  Tile value(std::source_location at) const { return detail::load(parameter_, index_, nullptr, at); }

 protected:
  detail::Parameter parameter_;
  std::vector<IndexArg> index_;
};

// y(i, j) = value stores; only the expression itself can be assigned to, never a variable that holds it.
class OutAccess {
 public:
  OutAccess(detail::Parameter p, std::vector<IndexArg> index) : parameter_(p), index_(std::move(index)) {}
  OutAccess(const OutAccess&) = default;
  OutAccess& operator=(const OutAccess&) = delete;
  void operator=(Operand value) && { detail::store(parameter_, index_, value); }

 private:
  detail::Parameter parameter_;
  std::vector<IndexArg> index_;
};

class InOutAccess : public Access {
 public:
  using Access::Access;
  InOutAccess(const InOutAccess&) = default;
  void operator=(const InOutAccess& other) && { detail::store(parameter_, index_, Operand(static_cast<const Access&>(other))); }
  void operator=(Operand value) && { detail::store(parameter_, index_, value); }
};

class Input {
 public:
  explicit Input(detail::Parameter p) : parameter(p) {}
  template <class... Is>
  Access operator()(const Is&... index) const {
    return {parameter, detail::indices(index...)};
  }
  Input& in(Operand lo, Operand hi) { return detail::promise(parameter, &lo, &hi, false, false), *this; }
  Input& sorted() { return detail::promise(parameter, nullptr, nullptr, true, false), *this; }
  Input& distinct() { return detail::promise(parameter, nullptr, nullptr, false, true), *this; }
  detail::Parameter parameter;
};
class Output {
 public:
  explicit Output(detail::Parameter p) : parameter(p) {}
  template <class... Is>
  OutAccess operator()(const Is&... index) const {
    return {parameter, detail::indices(index...)};
  }
  detail::Parameter parameter;
};
class InOut {
 public:
  explicit InOut(detail::Parameter p) : parameter(p) {}
  template <class... Is>
  InOutAccess operator()(const Is&... index) const {
    return {parameter, detail::indices(index...)};
  }
  detail::Parameter parameter;
};

inline TypeChoice like(const Input& p) { return {TypeChoice::Class::like, DType::f32_, p.parameter.tensor}; }
inline TypeChoice like(const InOut& p) { return {TypeChoice::Class::like, DType::f32_, p.parameter.tensor}; }
inline Input input(const char* name, TypeChoice type, Dims dims, std::source_location at = std::source_location::current()) {
  return Input(detail::declare(0, name, type, dims, at));
}
inline Output output(const char* name, TypeChoice type, Dims dims, std::source_location at = std::source_location::current()) {
  return Output(detail::declare(1, name, type, dims, at));
}
inline InOut inout(const char* name, TypeChoice type, Dims dims, std::source_location at = std::source_location::current()) {
  return InOut(detail::declare(2, name, type, dims, at));
}
template <DType T>
Input input(const char* name, Dims dims, std::source_location at = std::source_location::current()) {
  return input(name, {TypeChoice::Class::fixed, T}, dims, at);
}
template <DType T>
Output output(const char* name, Dims dims, std::source_location at = std::source_location::current()) {
  return output(name, {TypeChoice::Class::fixed, T}, dims, at);
}
template <DType T>
InOut inout(const char* name, Dims dims, std::source_location at = std::source_location::current()) {
  return inout(name, {TypeChoice::Class::fixed, T}, dims, at);
}

// A scalar parameter: a value; `.defaults(e)` makes it optional.
class ScalarParameter : public Tile {
 public:
  ScalarParameter(const char* name, DType dtype, std::source_location at);
  ScalarParameter& defaults(Operand value);

 private:
  const char* name_;
};
template <DType T>
ScalarParameter scalar(const char* name, std::source_location at = std::source_location::current()) {
  return ScalarParameter(name, T, at);
}
void require(Operand condition);
Tile named(const char* name, Operand value);

// ---- operations ----------------------------------------------------------------------------------------------------
namespace detail {
Tile apply(const char* op, std::initializer_list<const Operand*> args, std::source_location at);
Tile cast(DType to, const Operand& value);
Tile bits(DType to, const Operand& value);
}  // namespace detail

#define COSMATI_BINARY(symbol, op) \
  inline Tile operator symbol(Operand x, Operand y) { return detail::apply(op, {&x, &y}, y.at); }
COSMATI_BINARY(+, "add")
COSMATI_BINARY(-, "sub")
COSMATI_BINARY(*, "mul")
COSMATI_BINARY(/, "div")
COSMATI_BINARY(%, "mod")
COSMATI_BINARY(==, "eq")
COSMATI_BINARY(!=, "ne")
COSMATI_BINARY(<, "lt")
COSMATI_BINARY(<=, "le")
COSMATI_BINARY(>, "gt")
COSMATI_BINARY(>=, "ge")
COSMATI_BINARY(&&, "logical_and")
COSMATI_BINARY(||, "logical_or")
COSMATI_BINARY(&, "bit_and")
COSMATI_BINARY(|, "bit_or")
COSMATI_BINARY(^, "bit_xor")
COSMATI_BINARY(<<, "shift_left")
COSMATI_BINARY(>>, "shift_right")
#undef COSMATI_BINARY
inline Tile operator-(Operand x) { return detail::apply("neg", {&x}, x.at); }
inline Tile operator!(Operand x) { return detail::apply("logical_not", {&x}, x.at); }

// Every row of ops.def is a function of its name, the operators' rows too.
#define COSMATI_FUNCTION_1(name) \
  inline Tile name(Operand x) { return detail::apply(#name, {&x}, x.at); }
#define COSMATI_FUNCTION_2(name) \
  inline Tile name(Operand x, Operand y) { return detail::apply(#name, {&x, &y}, x.at); }
#define COSMATI_FUNCTION_3(name) \
  inline Tile name(Operand x, Operand y, Operand z) { return detail::apply(#name, {&x, &y, &z}, x.at); }
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) COSMATI_FUNCTION_##arity(name)
#include <cosmati/ops.def>
#undef OP
#undef COSMATI_FUNCTION_1
#undef COSMATI_FUNCTION_2
#undef COSMATI_FUNCTION_3
template <DType T>
Tile cast(Operand x) {
  return detail::cast(T, x);
}
inline Tile bits_f32(Operand x) { return detail::bits(DType::f32_, x); }
inline Tile bits_u32(Operand x) { return detail::bits(DType::u32_, x); }

// ---- reductions ----------------------------------------------------------------------------------------------------
enum class order : std::uint8_t { tree, left };
enum class relax : std::uint8_t { none, narrow, tf32, split_tf32, approx };

namespace detail {

struct Over {  // what follows the values of a reduction
  std::vector<std::uint32_t> axes;
  order tree = order::tree;
  relax relaxed = relax::none;
};
template <class T>
inline constexpr bool is_over = std::is_base_of_v<Axis, T> || std::is_same_v<T, Axes> || std::is_same_v<T, order> || std::is_same_v<T, relax>;
void add_axis(Over& over, const Axis& axis);
void add_axis(Over& over, const Axes& axes);
inline void add_axis(Over& over, order o) { over.tree = o; }
inline void add_axis(Over& over, relax r) { over.relaxed = r; }
template <class... A>
Over over(const A&... axes) {
  static_assert((is_over<A> && ...), "a reduction takes its values first and then axes (Axis objects), order:: and relax:: only; for the larger of two values use maximum(x, y)");
  Over o;
  (add_axis(o, axes), ...);
  return o;
}
std::vector<Tile> reduce(const char* reducer, std::initializer_list<const Operand*> values, const Over& over, std::source_location at);

}  // namespace detail

namespace detail {
// How many results a row's finish column, "(a, f(b, c))", lists.
constexpr std::size_t count_results(const char* list) {
  std::size_t count = 1;
  int depth = 0;
  for (; *list; ++list) {
    depth += (*list == '(') - (*list == ')');
    count += *list == ',' && depth == 1;
  }
  return count;
}
template <std::size_t N>
auto results(std::vector<Tile> r) {
  if constexpr (N == 1) {
    return r[0];
  } else {
    std::array<Tile, N> a;
    for (std::size_t i = 0; i < N; ++i) a[i] = r[i];
    return a;
  }
}
}  // namespace detail

// Every row of reducers.def: the value, then axes, order:: and relax:: in any order. Several results come as an array.
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation)                          \
  template <class... A>                                                                                                              \
  auto name(Operand x, const A&... axes) {                                                                                           \
    return detail::results<detail::count_results(#finish)>(detail::reduce(#name, {&x}, detail::over(axes...), x.at));                \
  }
#include <cosmati/reducers.def>
#undef REDUCER
template <class... A>
Tile contract(Operand a, Operand b, const A&... axes) {
  return detail::reduce("contract", {&a, &b}, detail::over(axes...), a.at)[0];
}

// ---- replacement ---------------------------------------------------------------------------------------------------
// v.at(a, e, b, f): v[a := e, b := f], simultaneous.
class Replaced {
 public:
  Replaced(Tile of, std::vector<std::pair<std::uint32_t, Tile>> binds, std::source_location at) : of_(of), binds_(std::move(binds)), at_(at) {}
  Tile otherwise(Operand value) const;
  Tile value() const;

 private:
  Tile of_;
  std::vector<std::pair<std::uint32_t, Tile>> binds_;
  std::source_location at_;
};
namespace detail {
inline void add_binds(std::vector<std::pair<std::uint32_t, Tile>>&) {}
template <class E, class... Rest>
void add_binds(std::vector<std::pair<std::uint32_t, Tile>>& binds, const Axis& axis, const E& e, const Rest&... rest) {
  binds.emplace_back(axis.id, Operand(e).tile);
  add_binds(binds, rest...);
}
}  // namespace detail
template <class... B>
Replaced Tile::at(const Axis& axis, const B&... binds) const {
  std::vector<std::pair<std::uint32_t, Tile>> list;
  detail::add_binds(list, axis, binds...);
  return {*this, std::move(list), std::source_location::current()};
}

// ---- regions -------------------------------------------------------------------------------------------------------
namespace detail {
void begin_parallel(const Over& axes, std::source_location at);
}
// parallel(a, b, ..., body): body runs once, while the program is captured.
template <class... A>
void parallel(A&&... args) {
  auto all = std::forward_as_tuple(args...);
  constexpr std::size_t last = sizeof...(A) - 1;
  [&]<std::size_t... I>(std::index_sequence<I...>) { detail::begin_parallel(detail::over(std::get<I>(all)...), std::source_location::current()); }
  (std::make_index_sequence<last>{});
  std::get<last>(all)();
}

// ---- streams -------------------------------------------------------------------------------------------------------
template <std::size_t N>
struct Next;
template <std::size_t N>
using Merge = std::function<std::array<Tile, N>(std::array<Tile, N>, std::array<Tile, N>)>;
// What the body of a stream hands back: the next carried values, and how two halves are merged if it may be split.
template <std::size_t N>
struct Next {
  std::array<Tile, N> values;
  Merge<N> merged;
  template <class F>
  Next merge(F f) && {
    merged = [f](std::array<Tile, N> a, std::array<Tile, N> b) -> std::array<Tile, N> { return f(a, b).values; };
    return std::move(*this);
  }
};
template <class... V>
Next<sizeof...(V)> next(const V&... values) {
  return {{Operand(values).tile...}, {}};
}
template <std::size_t N>
struct Carry {
  std::array<Tile, N> init;
};
template <class... V>
Carry<sizeof...(V)> carry(const V&... init) {
  return {{Operand(init).tile...}};
}
struct Tiles {
  const Axis& axis;
};
inline Tiles tiles(const Axis& axis) { return {axis}; }

namespace detail {
using Values = std::vector<Tile>;
struct BodyResult {
  Values next;
  std::function<Values(const Values&, const Values&)> merge;
};
Values stream(const Axis& axis, bool tile, const Values& init, const std::function<BodyResult(const Values&)>& body, std::source_location at);

template <std::size_t N>
std::array<Tile, N> to_array(const Values& v) {
  std::array<Tile, N> a;
  for (std::size_t i = 0; i < N; ++i) a[i] = v[i];
  return a;
}
template <std::size_t N, class F>
std::array<Tile, N> stream(const Axis& axis, bool tile, const Carry<N>& init, const F& body, std::source_location at) {
  auto run = [&](const Values& carried) {
    Next<N> n = std::apply(body, to_array<N>(carried));
    BodyResult result{{n.values.begin(), n.values.end()}, {}};
    if (n.merged)
      result.merge = [m = n.merged](const Values& a, const Values& b) {
        auto r = m(to_array<N>(a), to_array<N>(b));
        return Values(r.begin(), r.end());
      };
    return result;
  };
  return to_array<N>(stream(axis, tile, Values(init.init.begin(), init.init.end()), run, at));
}
}  // namespace detail

// stream(t, carry(...), body): index by index. stream(tiles(t), carry(...), body): by pieces of any size.
template <std::size_t N, class F>
std::array<Tile, N> stream(const Axis& axis, Carry<N> init, F body, std::source_location at = std::source_location::current()) {
  return detail::stream(axis, false, init, body, at);
}
template <std::size_t N, class F>
std::array<Tile, N> stream(Tiles t, Carry<N> init, F body, std::source_location at = std::source_location::current()) {
  return detail::stream(t.axis, true, init, body, at);
}

// ---- user reducers -------------------------------------------------------------------------------------------------
// Reducer best{"best", identity, lift, merge, finish}: identity() and lift(x...) and merge(a, b) return next(...) of the state; a and b are
// arrays of state values; finish(state) returns one value or next(...) of several.
template <class Identity, class Lift, class MergeStates, class Finish>
class Reducer {
 public:
  Reducer(const char* name, Identity identity, Lift lift, MergeStates merge, Finish finish)
      : name_(name), identity_(identity), lift_(lift), merge_(merge), finish_(finish) {}
  // The values, then the axes. Returns one tile, or an array of them.
  template <class... A>
  auto operator()(const A&... args) const {
    return call(std::index_sequence_for<A...>{}, std::forward_as_tuple(args...));
  }

 private:
  static constexpr std::size_t arity =
      std::is_invocable_v<Lift, Tile> ? 1 : std::is_invocable_v<Lift, Tile, Tile> ? 2 : std::is_invocable_v<Lift, Tile, Tile, Tile> ? 3 : 0;
  static_assert(arity > 0, "the lift of a reducer takes one to three tiles");
  static constexpr std::size_t states = std::tuple_size_v<decltype(std::declval<Identity>()().values)>;

  template <class R>
  static detail::Values values(const R& r) {
    if constexpr (std::is_convertible_v<const R&, Operand>)
      return {Operand(r).tile};
    else
      return {r.values.begin(), r.values.end()};
  }
  template <std::size_t... I, class Args>
  auto call(std::index_sequence<I...>, const Args& args) const;

  const char* name_;
  Identity identity_;
  Lift lift_;
  MergeStates merge_;
  Finish finish_;
};

namespace detail {
struct ReducerParts {
  const char* name;
  std::size_t states;
  std::function<Values()> identity;
  std::function<Values(const Values&)> lift;
  std::function<Values(const Values&, const Values&)> merge;
  std::function<Values(const Values&)> finish;
};
Values reduce(const ReducerParts& parts, const Values& values, const Over& over, std::source_location at);
template <class Args, std::size_t... I>
Values first_values(const Args& args, std::index_sequence<I...>) {
  return {Operand(std::get<I>(args)).tile...};
}
template <std::size_t Skip, class Args, std::size_t... I>
Over rest_over(const Args& args, std::index_sequence<I...>) {
  return over(std::get<Skip + I>(args)...);
}
}  // namespace detail

template <class Identity, class Lift, class MergeStates, class Finish>
template <std::size_t... I, class Args>
auto Reducer<Identity, Lift, MergeStates, Finish>::call(std::index_sequence<I...>, const Args& args) const {
  static_assert(sizeof...(I) > arity, "a reducer takes its values first and then at least one axis");
  detail::ReducerParts parts{
      name_, states, [this] { return values(identity_()); },
      [this](const detail::Values& x) { return values(std::apply(lift_, detail::to_array<arity>(x))); },
      [this](const detail::Values& a, const detail::Values& b) { return values(merge_(detail::to_array<states>(a), detail::to_array<states>(b))); },
      [this](const detail::Values& s) { return values(finish_(detail::to_array<states>(s))); }};
  auto results = detail::reduce(parts, detail::first_values(args, std::make_index_sequence<arity>{}),
                                detail::rest_over<arity>(args, std::make_index_sequence<sizeof...(I) - arity>{}), std::source_location::current());
  using Result = std::invoke_result_t<Finish, std::array<Tile, states>>;
  if constexpr (std::is_convertible_v<const Result&, Operand>)
    return results[0];
  else
    return detail::to_array<std::tuple_size_v<decltype(Result::values)>>(results);
}

// ---- programs ------------------------------------------------------------------------------------------------------
Program program(const char* name, std::function<void()> body, std::source_location at = std::source_location::current());

// ---- the prelude ---------------------------------------------------------------------------------------------------
inline Tile gelu(Operand x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); }
inline Tile silu(Operand x) { return x * sigmoid(x); }
// The weighted mean of v under softmax(x) over t, and the logarithm of the softmax's denominator.
inline std::array<Tile, 2> attend(Operand x, Operand v, const Axis& t) {
  Tile m = max(x, t), p = exp_diff(x, m), l = sum(p, t);
  return {where(l == 0, 0, contract(p, v, t, relax::narrow) / l), m + log(l)};
}

}  // namespace cosmati
