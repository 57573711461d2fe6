// Tile IR: what a program means, monomorphic (every dtype and rank known), with no word about machines.
// A value is a function of its axes. Values live in one arena, are pure, immutable and hash-consed by the builder;
// stores and streams are the only effects. The eleven nodes are on this screen.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <cosmati/dtype.h>
#include <cosmati/error.h>

#include "ops/ops.h"
#include "support/id.h"

namespace cosmati::ir {

using ValueId = support::Id<struct ValueTag>;
using AxisId = support::Id<struct AxisTag>;
using TensorId = support::Id<struct TensorTag>;
using ScalarId = support::Id<struct ScalarTag>;
using ReducerId = support::Id<struct ReducerTag>;
using StreamId = support::Id<struct StreamTag>;

using AxisSet = std::vector<AxisId>;  // sorted, unique

// One tensor dimension's index: a single expression, or one per factor of a composite dimension (slow to fast).
using Index = std::vector<ValueId>;
enum class Order : std::uint8_t { tree, left };
enum class Relax : std::uint8_t { none, narrow, tf32, split_tf32, approx };

// ---- the nodes -----------------------------------------------------------------------------------------------------
struct Const {  // a literal; of a float type it is `f` (a real literal keeps its digits, users round them to the type), else `i`
  double f = 0;
  std::int64_t i = 0;
};
struct Coord {  // an axis used as a value: i64, over itself
  AxisId axis;
};
struct Extent {  // extent(axis), i64: hi - lo of a launch-level axis
  AxisId axis;
};
struct ScalarRef {  // a scalar parameter
  ScalarId scalar;
};
struct Load {  // tensor[index...]; with `otherwise`, an index outside the extents gives that value instead
  TensorId tensor;
  std::vector<Index> index;
  std::optional<ValueId> otherwise;
};
struct Elementwise {  // joins its arguments by axis; arguments are already cast to the joined type
  ops::Op op;
  std::vector<ValueId> args;
};
struct Reduce {  // the whole result tuple of a reducer over `axes`; a single result is used directly, several through Part
  ReducerId reducer;
  std::vector<ValueId> args;  // value arguments, then for `index` reducers the coordinate
  AxisSet axes;
  Order order = Order::tree;
  Relax relax = Relax::none;
};
struct Part {  // result `slot` of a Reduce with several results, or the final value of carried `slot` of a stream
  std::variant<ValueId, StreamId> of;
  std::uint32_t slot;
};
struct Replace {  // of[axis := expr, ...], simultaneous; with `otherwise`, outside the axes' ranges it is that value
  ValueId of;
  std::vector<std::pair<AxisId, ValueId>> binds;  // sorted by axis
  std::optional<ValueId> otherwise;
};
struct Carried {  // the carried value `slot` inside the body of a stream
  StreamId stream;
  std::uint32_t slot;
};
struct Arg {  // a parameter of a lambda (lift, merge, finish); only inside reducers and stream merges
  std::uint32_t slot;
};
using Node = std::variant<Const, Coord, Extent, ScalarRef, Load, Elementwise, Reduce, Part, Replace, Carried, Arg>;

struct Value {
  Node node;
  DType dtype;
  bool weak = false;  // a literal or extent expression: takes the other side's type in a join
  AxisSet axes;       // A: the axes it is a function of
  AxisSet done;       // D: the program axes already reduced away
  Where where;
};

// ---- declarations --------------------------------------------------------------------------------------------------
enum class Access : std::uint8_t { in, out, inout };

struct Factor {  // extent(axis) + offset, or the constant `offset` when there is no axis
  AxisId axis;
  std::int64_t offset = 0;
};
using Dim = std::vector<Factor>;  // usually one factor; a composite dimension lists them slow to fast

struct Contract {                 // what is promised about the elements of an integer tensor
  std::optional<ValueId> lo, hi;  // lo <= element < hi; launch-level values
  bool sorted = false;            // non-decreasing along the last dimension
  bool distinct = false;
};
struct Tensor {
  std::string name;
  Access access;
  DType dtype;
  std::vector<Dim> dims;
  Contract contract;
  Where where;
};
struct Scalar {
  std::string name;
  DType dtype;
  std::optional<ValueId> fallback;  // launch-level
  Where where;
};
struct Axis {
  std::string name;
  bool in_dims = false;           // bound by the dimensions of arguments
  std::optional<ValueId> lo, hi;  // declared range, half-open; absent: 0 .. extent from the dims
  bool program = false;           // named by `parallel`
  bool derived = false;           // made by a pass for a replaced coordinate: its range may depend on any axis
  std::optional<StreamId> piece;  // inside that stream's body this axis stands for the streamed one
  Where where;
};
// A function of Args: the parts of a reducer, the merge of a stream. `lets` are the names bound on the way, for printing.
struct Lambda {
  std::vector<ValueId> results;
  std::vector<std::pair<std::string, ValueId>> lets;
};
struct Reducer {  // one per (reducer, argument types): monomorphic
  std::string name;
  bool builtin = true;
  std::vector<std::string> arg_names, state_names;
  std::vector<DType> arg_types, state_types, result_types;
  Lambda identity;              // constants
  Lambda lift;                  // Arg k: value argument k
  Lambda merge;                 // Arg k: a's state k; Arg n + k: b's state k
  Lambda finish;                // Arg k: state k; Arg n: the count of elements
  std::optional<ops::Op> fold;  // the merge is this one operation on a single state
  bool commutative = true, idempotent = false, index = false;
  Where where;
};
struct Carry {
  std::string name;
  ValueId init, next, in_body;  // in_body is the Carried node
  DType dtype;
  AxisSet axes;  // of the carried value (the streamed axis is never among them)
};
struct Store {
  TensorId tensor;
  std::vector<Index> index;
  ValueId value;
  std::optional<StreamId> stream;  // the innermost stream whose body holds it
  Where where;
};
struct Stream {
  AxisId axis;   // the streamed axis outside
  AxisId piece;  // its stand-in inside the body: a coordinate (by index), or the elements of the current piece (tile)
  bool tile = false;
  std::vector<Carry> carries;
  std::optional<Lambda> merge;     // Arg k: a's state k; Arg n + k: b's
  std::optional<StreamId> parent;  // the stream whose body holds it
  Where where;
};

struct Program {
  std::string name;
  std::vector<Axis> axes;
  std::vector<Tensor> tensors;  // in declared order; outputs keep theirs
  std::vector<Scalar> scalars;
  std::vector<std::pair<bool, std::uint32_t>> parameters;  // declared order: (is tensor, index)
  std::vector<Value> values;
  std::vector<Reducer> reducers;
  std::vector<Stream> streams;
  std::vector<Store> stores;  // in text order
  std::vector<std::pair<ValueId, Where>> requires_;
  std::vector<AxisId> program_axes;                    // in `parallel` order, slow to fast
  std::vector<std::pair<std::string, ValueId>> names;  // the user's names for values, in order of binding
  // What messages call the Args of the lambda that is being made, the latest last; empty in a finished program.
  std::vector<std::pair<std::string, ValueId>> arg_names;

  const Value& operator[](ValueId v) const { return values[v.index]; }
  const Axis& operator[](AxisId a) const { return axes[a.index]; }
  const Tensor& operator[](TensorId t) const { return tensors[t.index]; }
  const Scalar& operator[](ScalarId s) const { return scalars[s.index]; }
  const Reducer& operator[](ReducerId r) const { return reducers[r.index]; }
  const Stream& operator[](StreamId s) const { return streams[s.index]; }
};

// ---- small questions every later level asks -----------------------------------------------------------------------------
bool contains(const AxisSet& set, AxisId a);
AxisSet set_union(const AxisSet& a, const AxisSet& b);
AxisSet set_minus(const AxisSet& a, const AxisSet& b);
// Per value: axes of instances that have a point wherever the value is evaluated. Those that it is reduced over are none of them:
// they may be empty, and what does not depend on them may be evaluated before their loop.
std::vector<AxisSet> evaluated_within(const Program& program);
// The values a node reads, in order (reducer lambdas and stream bodies excluded).
std::vector<ValueId> operands(const Node& node);
// The stores of a stream's body in an order in which what one of them loads is stored later, as far as `same` says that it is the
// same memory. Nothing: there is no such order, or a stream inside the body loads what the body stores.
std::optional<std::vector<std::uint32_t>> stores_in_order(const Program& p, StreamId stream,
                                                          const std::function<bool(TensorId loaded, TensorId stored)>& same);
// The same node with each operand mapped.
Node map_operands(const Node& node, const std::vector<ValueId>& mapped);
// Per value: whether a store depends on it, by way of values, streams and the ranges of axes. What does not is not printed.
std::vector<bool> used_values(const Program& p);
// How many results the reducer's finish has; a Reduce with one result is that value itself.
std::size_t result_count(const Program& p, const Reduce& r);
// The axes that the range of `a` depends on (empty for launch-level axes).
AxisSet range_axes(const Program& p, AxisId a);
// Whether the range of `a` is known when a launch starts: it depends on no axis, reads no memory, and is not a stream's piece.
bool launch_level(const Program& p, AxisId a);
// Whether a 64-bit integer is cast to a narrower one somewhere: extents are below 2^31 then.
bool narrows_integers(const Program& p);
// Checks the numbered invariants of a finished program (verify.cpp lists them); throws InternalError naming `pass`.
void verify(const Program& p, const char* pass);

}  // namespace cosmati::ir
