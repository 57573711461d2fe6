// The C++ form of the language: axes, tiles and regions, captured by running a lambda. A Program is captured lazily, on first use
// and once for each binding of its dtypes, so one at namespace scope costs nothing before main; a mistake throws cosmati::Error
// then, at the line of the expression. Nothing here executes anything: operators record tile IR. What must not compile is a
// deleted function with the reason on its line, which compilers show, or a static_assert.
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

#include <cosmati/export.h>
#include <cosmati/program.h>

namespace cosmati {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class Axis;
class Axes;
class Input;
class Output;
class InOut;
class Access;
class OutAccess;
class InOutAccess;
class Operand;
class Replaced;

namespace detail {

template <class T, class... Of>
concept OneOf = (std::is_same_v<T, Of> || ...);
// What denotes a value and is no tile yet.
template <class T>
concept Number = std::is_arithmetic_v<T>;
template <class T>
concept Readable = Number<T> || OneOf<T, Axis, Input, InOut, Access, InOutAccess, Replaced>;

// v.at(a, e, b, f): v[a := e, b := f], simultaneous, of everything that denotes a value.
template <class Value>
class Replaceable {
 public:
  template <class... B>
  Replaced at(const Axis& axis, Operand to, const B&... more) const;
};

}  // namespace detail

// A value: a function of axes. Copies are handles of the same value. Only meaningful inside the capture that made it; what is
// computed outside of any capture, as by objects at namespace scope, is empty, and only its use inside a program is an error. A
// tile does not convert to bool, since it has no value while the program is captured: use where(c, x, y).
class Tile : public detail::Replaceable<Tile> {
 public:
  Tile() = default;
  template <detail::Readable T>
  Tile(const T& value, std::source_location at = std::source_location::current());
  std::uint32_t id = ~0u;
  std::uint32_t run = 0;  // how many times bodies of streams had been run again
  std::uint64_t capture = 0;
};

namespace detail {

COSMATI_API Tile literal(bool value);
COSMATI_API Tile literal(double value);
COSMATI_API Tile literal(std::int64_t value);
COSMATI_API Tile literal(std::uint64_t value, std::source_location at);

}  // namespace detail

// What every operator takes: anything that denotes a value, with the place where it was written.
class COSMATI_API Operand {
 public:
  using Location = std::source_location;
  Operand(Tile tile, Location at = Location::current()) : tile(tile), at(at) {}
  Operand(const Axis& axis, Location at = Location::current());
  Operand(const Input& input, Location at = Location::current());
  Operand(const InOut& inout, Location at = Location::current());
  Operand(const Access& access, Location at = Location::current());
  Operand(const InOutAccess& access, Location at = Location::current());
  Operand(const Replaced& replaced, Location at = Location::current());
  Operand(const Output& out, Location at = Location::current()) = delete;     // an out parameter cannot be read: declare it inout
  Operand(const OutAccess& out, Location at = Location::current()) = delete;  // an out parameter cannot be read: declare it inout
  Operand(const Axes& pack, Location at = Location::current()) = delete;  // a pack of axes has no value: index or reduce with it
  template <detail::Number T>
  Operand(T literal, Location at = Location::current()) : at(at) {
    if constexpr (std::is_same_v<T, bool>)
      tile = detail::literal(literal);
    else if constexpr (std::is_floating_point_v<T>)
      tile = detail::literal(static_cast<double>(literal));
    else if constexpr (std::is_signed_v<T>)
      tile = detail::literal(static_cast<std::int64_t>(literal));
    else
      tile = detail::literal(static_cast<std::uint64_t>(literal), at);
  }
  Tile tile;
  Location at;
};
template <detail::Readable T>
Tile::Tile(const T& value, std::source_location at) : Tile(Operand(value, at).tile) {}

// An axis is an object: two axes are the same exactly when they are the same object.
class COSMATI_API Axis {
 public:
  using Location = std::source_location;
  explicit Axis(const char* name, Location at = Location::current());                 // bound by the dimensions of arguments
  Axis(const char* name, Operand hi, Location at = Location::current());              // 0 .. hi
  Axis(const char* name, Operand lo, Operand hi, Location at = Location::current());  // lo .. hi
  Axis(const Axis&) = delete;  // an axis is its object: pass it by reference
  Axis& operator=(const Axis&) = delete;
  Tile extent(Location at = Location::current()) const;
  std::uint32_t id = ~0u;
  std::uint32_t run = 0;  // how many times bodies of streams had been run again
  std::uint64_t capture = 0;
};

// Any number of leading axes, none included: how many follows from the arguments.
class COSMATI_API Axes {
 public:
  explicit Axes(const char* name, std::source_location at = std::source_location::current());
  Axes(const Axes&) = delete;
  Axes& operator=(const Axes&) = delete;
  std::vector<std::uint32_t> ids;
  std::string name;
  std::uint64_t capture = 0;
};

// ---- declarations --------------------------------------------------------------------------------------------------
// One dimension of a tensor: an axis, a constant, axis + constant, {slow, ..., fast} for a composite one, or a pack.
class COSMATI_API Dim {
 public:
  Dim(const Axis& axis);
  Dim(const Axes& pack);
  Dim(Tile axis_plus_constant, std::source_location at = std::source_location::current());
  template <detail::Number T>
  Dim(T constant) : parts{Part(constant)} {}
  struct COSMATI_API Part {
    Part(const Axis& axis);
    template <detail::Number T>
    Part(T constant) : constant(static_cast<std::int64_t>(constant)) {
      static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "a dimension is an axis, axis + constant or an integer");
    }
    std::optional<std::uint32_t> axis;
    std::uint64_t capture = 0;  // the axis's
    std::int64_t constant = 0;
  };
  Dim(std::initializer_list<Part> composite) : parts(composite) {}
  std::vector<Part> parts;
  const Axes* pack = nullptr;
};
using Dims = std::initializer_list<Dim>;

namespace detail {

struct Parameter {
  std::uint32_t tensor = ~0u;
  std::uint64_t capture = 0;
};

}  // namespace detail

// The dtype of a declaration: one of a class (each use of a class is a variable of its own), or that of another parameter.
struct TypeChoice {
  enum class Class : std::uint8_t { any_float, any_int, any, fixed, like } klass;
  DType fixed = DType::f32_;
  detail::Parameter like = {};
};
inline constexpr TypeChoice any_float{TypeChoice::Class::any_float}, any_int{TypeChoice::Class::any_int},
    any_type{TypeChoice::Class::any};

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
template <class... F>
IndexArg dim(Operand slow, const F&... faster) {
  return IndexArg(std::vector<Tile>{slow.tile, Operand(faster, slow.at).tile...}, slow.at);
}

namespace detail {

COSMATI_API Tile load(const Parameter& p, const std::vector<IndexArg>& index, const Operand* otherwise, std::source_location at);
COSMATI_API void store(const Parameter& p, const std::vector<IndexArg>& index, const Operand& value);
COSMATI_API Parameter declare(int access, const char* name, TypeChoice type, const std::vector<Dim>& dims,
                              std::source_location at);
COSMATI_API void promise(const Parameter& p, const Operand* lo, const Operand* hi, bool sorted, bool distinct,
                         std::source_location at);

// The first index is converted where the user wrote it, and lends its place to the others.
template <class T>
IndexArg index_at(const T& value, std::source_location at) {
  if constexpr (std::is_same_v<T, IndexArg>)
    return value;
  else
    return IndexArg(value, at);
}
template <class... Is>
std::vector<IndexArg> indices(const IndexArg& first, const Is&... rest) {
  return {first, index_at(rest, first.at)...};
}

}  // namespace detail

// x(i, j): reads when it is used as a value.
class Access : public detail::Replaceable<Access> {
 public:
  Access(detail::Parameter p, std::vector<IndexArg> index, std::source_location at)
      : parameter_(p), index_(std::move(index)), at_(at) {}
  Access(const Access&) = default;
  Access& operator=(const Access&) = delete;      // an in parameter cannot be written
  void operator=(const Operand& value) = delete;  // an in parameter cannot be written
  Tile otherwise(Operand value) const { return detail::load(parameter_, index_, &value, at_); }
  Tile value() const { return detail::load(parameter_, index_, nullptr, at_); }

 protected:
  detail::Parameter parameter_;
  std::vector<IndexArg> index_;
  std::source_location at_;
};

// y(i, j) = value stores; only the expression itself can be assigned to, never a variable that holds it.
class OutAccess {
 public:
  OutAccess(detail::Parameter p, std::vector<IndexArg> index, std::source_location) : parameter_(p), index_(std::move(index)) {}
  OutAccess(const OutAccess&) = default;
  OutAccess& operator=(const OutAccess&) = delete;  // an out parameter cannot be read: declare it inout
  void operator=(const Operand& value) & = delete;  // this variable holds an access: store by y(i, j) = value
  void operator=(Operand value) && { detail::store(parameter_, index_, value); }

 private:
  detail::Parameter parameter_;
  std::vector<IndexArg> index_;
};

class InOutAccess : public Access {
 public:
  using Access::Access;
  InOutAccess(const InOutAccess&) = default;
  void operator=(const InOutAccess& other) & = delete;  // this variable holds an access: store by y(i, j) = value
  void operator=(const Operand& value) & = delete;      // this variable holds an access: store by y(i, j) = value
  void operator=(const InOutAccess& other) && { detail::store(parameter_, index_, Operand(other.value(), other.at_)); }
  void operator=(Operand value) && { detail::store(parameter_, index_, value); }
};

namespace detail {

// A tensor parameter: called with one index for each dimension, or with none where it has none.
template <class AccessOf>
class Indexed {
 public:
  explicit Indexed(Parameter p) : parameter(p) {}
  AccessOf operator()(std::source_location at = std::source_location::current()) const { return {parameter, {}, at}; }
  template <class... Is>
  AccessOf operator()(IndexArg first, const Is&... rest) const {
    return {parameter, indices(first, rest...), first.at};
  }
  Parameter parameter;
};

}  // namespace detail

class Input : public detail::Indexed<Access>, public detail::Replaceable<Input> {
 public:
  using Location = std::source_location;
  using Indexed::Indexed;
  Input(const Input&) = default;
  Input& operator=(const Input&) = delete;  // an in parameter cannot be written
  Input& in(Operand lo, Operand hi) { return detail::promise(parameter, &lo, &hi, false, false, hi.at), *this; }
  Input& sorted(Location at = Location::current()) {
    return detail::promise(parameter, nullptr, nullptr, true, false, at), *this;
  }
  Input& distinct(Location at = Location::current()) {
    return detail::promise(parameter, nullptr, nullptr, false, true, at), *this;
  }
};
class Output : public detail::Indexed<OutAccess> {
 public:
  using Indexed::Indexed;
  Output(const Output&) = default;
  Output& operator=(const Output&) = delete;  // this is the parameter itself: store by y(i, j) = value
};
class InOut : public detail::Indexed<InOutAccess>, public detail::Replaceable<InOut> {
 public:
  using Indexed::Indexed;
  InOut(const InOut&) = default;
  InOut& operator=(const InOut&) = delete;  // this is the parameter itself: store by y(i, j) = value
};

template <class AccessOf>
TypeChoice like(const detail::Indexed<AccessOf>& p) {
  return {TypeChoice::Class::like, DType::f32_, p.parameter};
}
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
class COSMATI_API ScalarParameter : public Tile {
 public:
  ScalarParameter(const char* name, DType dtype, std::source_location at);
  ScalarParameter& defaults(Operand value);

 private:
  std::string name_;
};
template <DType T>
ScalarParameter scalar(const char* name, std::source_location at = std::source_location::current()) {
  return ScalarParameter(name, T, at);
}
COSMATI_API void require(Operand condition);
COSMATI_API Tile named(const char* name, Operand value);

// ---- operations ----------------------------------------------------------------------------------------------------
namespace detail {
COSMATI_API Tile apply(const char* op, std::initializer_list<const Operand*> args, std::source_location at);
COSMATI_API Tile cast(DType to, const Operand& value);
COSMATI_API Tile bits(DType to, const Operand& value);
COSMATI_API DType dtype(const Operand& value);  // as it would be stored: f32, i64 or bool of a literal
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
  std::source_location at;
  std::vector<std::uint32_t> axes;
  order tree = order::tree;
  relax relaxed = relax::none;
};
template <class T>
inline constexpr bool is_axis = OneOf<T, Axis, Axes>;
template <class T>
inline constexpr bool is_over = OneOf<T, Axis, Axes, order, relax>;
COSMATI_API void add_axis(Over& over, const Axis& axis);
COSMATI_API void add_axis(Over& over, const Axes& axes);
inline void add_axis(Over& over, order o) { over.tree = o; }
inline void add_axis(Over& over, relax r) { over.relaxed = r; }
template <class... A>
Over over(std::source_location at, const A&... axes) {
  static_assert((is_over<A> && ...),
                "a reduction takes its values first and then axes (Axis objects), order:: and relax:: only; for the larger of "
                "two values use "
                "maximum(x, y)");
  static_assert(!(is_over<A> && ...) || (is_axis<A> || ...), "a reduction names at least one axis to reduce over");
  Over o{at, {}};
  if constexpr ((is_over<A> && ...)) (add_axis(o, axes), ...);
  return o;
}
COSMATI_API std::vector<Tile> reduce(const char* reducer, std::initializer_list<const Operand*> values, const Over& over);

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
#define REDUCER(name, arguments, states, identity, lift, merge, finish, typing, fold, flags, documentation)           \
  template <class... A>                                                                                               \
  auto name(Operand x, const A&... axes) {                                                                            \
    return detail::results<detail::count_results(#finish)>(detail::reduce(#name, {&x}, detail::over(x.at, axes...))); \
  }
#include <cosmati/reducers.def>
#undef REDUCER
template <class... A>
Tile contract(Operand a, Operand b, const A&... axes) {
  return detail::reduce("contract", {&a, &b}, detail::over(a.at, axes...))[0];
}

// ---- replacement ---------------------------------------------------------------------------------------------------
class COSMATI_API Replaced : public detail::Replaceable<Replaced> {
 public:
  using Binds = std::vector<std::pair<std::uint32_t, Tile>>;
  Replaced(Tile of, Binds binds, std::source_location at) : of_(of), binds_(std::move(binds)), at_(at) {}
  Tile otherwise(Operand value) const;
  Tile value() const;

 private:
  Tile of_;
  Binds binds_;
  std::source_location at_;
};

namespace detail {

COSMATI_API void add_binds(Replaced::Binds& binds, const Axis& axis, const Operand& to);
template <class To, class... B>
void add_binds(Replaced::Binds& binds, const Operand& first, const Axis& axis, const To& to, const B&... more) {
  add_binds(binds, axis, Operand(to, first.at));
  if constexpr (sizeof...(B) > 0) add_binds(binds, first, more...);
}
template <class Value>
template <class... B>
Replaced Replaceable<Value>::at(const Axis& axis, Operand to, const B&... more) const {
  static_assert(sizeof...(B) % 2 == 0, "at() takes pairs: an axis and what it becomes");
  Replaced::Binds binds;
  add_binds(binds, axis, to);
  if constexpr (sizeof...(B) > 0) add_binds(binds, to, more...);
  return {Operand(static_cast<const Value&>(*this), to.at).tile, std::move(binds), to.at};
}

}  // namespace detail

// ---- regions -------------------------------------------------------------------------------------------------------
namespace detail {

COSMATI_API void begin_parallel(const Over& axes);
struct RegionAxis {
  RegionAxis(const Axis& axis, std::source_location at = std::source_location::current()) : over{at, {}} { add_axis(over, axis); }
  RegionAxis(const Axes& pack, std::source_location at = std::source_location::current()) : over{at, {}} { add_axis(over, pack); }
  Over over;
};
template <class F>
void run_region(const F& body) {
  static_assert(std::is_invocable_v<const F&>, "parallel takes axes and then its body");
  if constexpr (std::is_invocable_v<const F&>) {
    static_assert(std::is_void_v<std::invoke_result_t<const F&>>,
                  "the body of parallel returns nothing: store by y(i, j) = value");
    body();
  }
}

}  // namespace detail

// parallel(a, b, ..., body): body runs once, while the program is captured.
template <class F>
  requires std::is_invocable_v<const F&>
void parallel(const F& body, std::source_location at = std::source_location::current()) {
  detail::begin_parallel({at, {}});
  detail::run_region(body);
}
template <class... A>
  requires(sizeof...(A) > 0)
void parallel(detail::RegionAxis first, const A&... rest) {
  auto all = std::tie(rest...);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static_assert((detail::is_axis<std::tuple_element_t<I, std::tuple<A...>>> && ...), "parallel takes axes and then its body");
    (detail::add_axis(first.over, std::get<I>(all)), ...);
  }(std::make_index_sequence<sizeof...(A) - 1>{});
  detail::begin_parallel(first.over);
  detail::run_region(std::get<sizeof...(A) - 1>(all));
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
    static_assert(std::is_same_v<std::invoke_result_t<F, std::array<Tile, N>, std::array<Tile, N>>, Next>,
                  "a merge returns next(...) with as many values as the stream carries");
    merged = [f](std::array<Tile, N> a, std::array<Tile, N> b) -> std::array<Tile, N> { return f(a, b).values; };
    return std::move(*this);
  }
};
template <class... V>
Next<1 + sizeof...(V)> next(Operand first, const V&... rest) {
  return {{first.tile, Operand(rest, first.at).tile...}, {}};
}
template <std::size_t N>
struct Carry {
  std::array<Tile, N> init;
};
template <class... V>
Carry<1 + sizeof...(V)> carry(Operand first, const V&... rest) {
  return {{first.tile, Operand(rest, first.at).tile...}};
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
COSMATI_API Values stream(const Axis& axis, bool tile, const Values& init, const std::function<BodyResult(const Values&)>& body,
                          std::source_location at);

template <std::size_t N>
std::array<Tile, N> to_array(const Values& v) {
  std::array<Tile, N> a;
  for (std::size_t i = 0; i < N; ++i) a[i] = v[i];
  return a;
}
template <std::size_t N, class F>
std::array<Tile, N> stream(const Axis& axis, bool tile, const Carry<N>& init, const F& body, std::source_location at) {
  using Result = decltype([]<std::size_t... I>(std::index_sequence<I...>, const F& f) {
    static_assert(std::is_invocable_v<const F&, decltype((void(I), Tile()))...>,
                  "the body of a stream takes one Tile for each carried value");
    return f((void(I), Tile())...);
  }(std::make_index_sequence<N>{}, body));
  static_assert(std::is_same_v<Result, Next<N>>, "the body of a stream returns next(...) with one value for each carried one");
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
// Reducer best{"best", identity, lift, merge, finish}: identity() and lift(x...) and merge(a, b) return next(...) of the state; a
// and b are arrays of state values; finish(state) returns one value or next(...) of several.
namespace detail {

struct ReducerParts {
  const char* name;
  std::size_t states;
  std::function<Values()> identity;
  std::function<Values(const Values&)> lift;
  std::function<Values(const Values&, const Values&)> merge;
  std::function<Values(const Values&)> finish;
};
COSMATI_API std::vector<Tile> reduce(const ReducerParts& parts, const Values& values, const Over& over);

// One value, or the several of next(...).
template <class R>
constexpr std::size_t count_of() {
  if constexpr (std::is_convertible_v<const R&, Operand>)
    return 1;
  else
    return std::tuple_size_v<decltype(R::values)>;
}
template <class R>
Values to_values(const R& r, std::source_location at) {
  if constexpr (std::is_convertible_v<const R&, Operand>)
    return {Operand(r, at).tile};
  else
    return {r.values.begin(), r.values.end()};
}

}  // namespace detail

template <class Identity, class Lift, class MergeStates, class Finish>
class Reducer {
 public:
  Reducer(const char* name, Identity identity, Lift lift, MergeStates merge, Finish finish)
      : name_(name), identity_(identity), lift_(lift), merge_(merge), finish_(finish) {}
  // The values, then the axes. Returns one tile, or an array of them.
  template <class... A>
  auto operator()(Operand first, const A&... rest) const {
    static_assert(sizeof...(A) >= arity, "a reducer takes its values first and then at least one axis");
    auto all = std::tie(rest...);
    detail::Values values{first.tile};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (values.push_back(Operand(std::get<I>(all), first.at).tile), ...);
    }(std::make_index_sequence<arity - 1>{});
    detail::Over over = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::over(first.at, std::get<arity - 1 + I>(all)...);
    }(std::make_index_sequence<sizeof...(A) + 1 - arity>{});
    return detail::results<detail::count_of<std::invoke_result_t<Finish, State>>()>(
        detail::reduce(parts(first.at), values, over));
  }

 private:
  static constexpr std::size_t arity = std::is_invocable_v<Lift, Tile>               ? 1
                                       : std::is_invocable_v<Lift, Tile, Tile>       ? 2
                                       : std::is_invocable_v<Lift, Tile, Tile, Tile> ? 3
                                                                                     : 0;
  static_assert(arity > 0, "the lift of a reducer takes one to three tiles");
  static constexpr std::size_t states = detail::count_of<std::invoke_result_t<Identity>>();
  using State = std::array<Tile, states>;
  static_assert(std::is_invocable_v<MergeStates, State, State>, "the merge of a reducer takes two states (arrays of tiles)");
  using Lifted = decltype(std::apply(std::declval<const Lift&>(), std::declval<std::array<Tile, arity>>()));
  static_assert(detail::count_of<Lifted>() == states, "the lift of a reducer returns as many values as its identity");
  static_assert(detail::count_of<std::invoke_result_t<MergeStates, State, State>>() == states,
                "the merge of a reducer returns as many values as its identity");
  static_assert(std::is_invocable_v<Finish, State>, "the finish of a reducer takes one state (an array of tiles)");

  detail::ReducerParts parts(std::source_location at) const {
    using detail::to_array, detail::Values, detail::to_values;
    return {
        name_,
        states,
        [this, at] { return to_values(identity_(), at); },
        [this, at](const Values& x) { return to_values(std::apply(lift_, to_array<arity>(x)), at); },
        [this, at](const Values& a, const Values& b) { return to_values(merge_(to_array<states>(a), to_array<states>(b)), at); },
        [this, at](const Values& s) { return to_values(finish_(to_array<states>(s)), at); }};
  }

  const char* name_;
  Identity identity_;
  Lift lift_;
  MergeStates merge_;
  Finish finish_;
};

// ---- programs ------------------------------------------------------------------------------------------------------
COSMATI_API Program program(const char* name, std::function<void()> body,
                            std::source_location at = std::source_location::current());

// ---- the prelude ---------------------------------------------------------------------------------------------------
namespace detail {

// While it lives, mistakes are reported at the call and not inside the function of this header that was called.
class COSMATI_API CalledFrom {
 public:
  explicit CalledFrom(const std::source_location& at);  // of calls inside calls the outermost counts
  explicit CalledFrom(Where at);  // an expression of another front end's user: the innermost counts, and hides calls inside it
  ~CalledFrom();
  CalledFrom(const CalledFrom&) = delete;
  CalledFrom& operator=(const CalledFrom&) = delete;

 private:
  Where at_;
  const Where* before_;
};

}  // namespace detail

inline Tile gelu(Operand x) {
  detail::CalledFrom call(x.at);
  return 0.5 * x * (1 + erf(x * 0.7071067811865476));
}
inline Tile silu(Operand x) {
  detail::CalledFrom call(x.at);
  return x * sigmoid(x);
}
// The weighted mean of v under softmax(x) over t, and the logarithm of the softmax's denominator.
inline std::array<Tile, 2> attend(Operand x, Operand v, const Axis& t) {
  detail::CalledFrom call(x.at);
  Tile m = max(x, t), p = exp_diff(x, m), l = sum(p, t);
  return {where(l == 0, 0, contract(p, v, t, relax::narrow) / l), m + log(l)};
}

}  // namespace cosmati
