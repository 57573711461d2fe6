// The one way to make tile IR: text and C++ capture both come through here, so typing, axis rules and their errors
// (extra_axis, no_such_axis, unfinished_reduction, range_on_tile_axis, repeated_axis, type_mismatch, ...) exist once.
// Every member that takes a Where throws cosmati::Error at it when the user broke a rule. Values are hash-consed.
// What needs proof (bounds, covering, injectivity) is not asked here: see src/prove.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <unordered_map>

#include "ir/program.h"

namespace cosmati::ir {

struct ReduceOptions {
  Order order = Order::tree;
  Relax relax = Relax::none;
};

// What a stream's body hands back: the next value of each carry, and the merge if there is one.
struct StreamResult {
  std::vector<ValueId> next;
  std::optional<Lambda> merge;
};

class Builder {
 public:
  explicit Builder(std::string program_name);

  // ---- declarations, before parallel ----
  AxisId axis(const std::string& name, const Where& where);             // its extent comes from dims or from range()
  void range(AxisId axis, ValueId lo, ValueId hi, const Where& where);  // `axis n in lo .. hi`; `axis n = e` is 0 .. e
  TensorId tensor(const std::string& name, Access access, DType dtype, std::vector<Dim> dims, const Where& where);
  void contract(TensorId tensor, Contract contract, const Where& where);
  ValueId scalar(const std::string& name, DType dtype, std::optional<ValueId> fallback, const Where& where);
  void default_value(ValueId scalar, ValueId value, const Where& where);  // what scalar() does with its fallback
  void require(ValueId condition, const Where& where);
  void parallel(const std::vector<AxisId>& axes, const Where& where);  // the region starts

  // ---- leaves ----
  ValueId literal(double value);        // weak float
  ValueId literal(std::int64_t value);  // weak integer
  ValueId literal(bool value);
  ValueId constant(DType dtype, double value);  // typed; also for limits (`lowest`, `highest`)
  ValueId coordinate(AxisId axis, const Where& where);
  ValueId extent(AxisId axis, const Where& where);

  // ---- expressions ----
  // x[index...]; out parameters cannot be read.
  ValueId load(TensorId tensor, std::vector<Index> index, std::optional<ValueId> otherwise, const Where& where);
  // A bare x: at its declared axes; an error where a dim is not a plain axis.
  ValueId bare(TensorId tensor, const Where& where);
  // Joins types (weak sides adapt) and axes; folds constants.
  ValueId elementwise(ops::Op op, std::vector<ValueId> args, const Where& where);
  ValueId cast(DType to, ValueId value, const Where& where);
  ValueId bits(DType to, ValueId value, const Where& where);  // f32 <-> u32
  // One value per result of the reducer. `axes` must belong to the arguments or to a range they depend on.
  std::vector<ValueId> reduce(ReducerId reducer, std::vector<ValueId> args, std::vector<AxisId> axes, ReduceOptions options,
                              const Where& where);
  // sum(a * b, axes), the same node as reduce(sum, a * b).
  ValueId contract(ValueId a, ValueId b, std::vector<AxisId> axes, ReduceOptions options, const Where& where);
  ValueId replace(ValueId of, std::vector<std::pair<AxisId, ValueId>> binds, std::optional<ValueId> otherwise,
                  const Where& where);
  void name(const std::string& name, ValueId value);  // keeps the user's name for prints, probes and sources

  // ---- reducers ----
  // A row of reducers.def for these argument types; nullopt if there is none of that name. Coordinate arguments of `index`
  // reducers are not among `args`: reduce() appends them.
  std::optional<ReducerId> builtin(const std::string& name, const std::vector<ValueId>& args, const Where& where);
  // How many value arguments the built-in takes (without the coordinate), or nullopt.
  static std::optional<int> builtin_arity(const std::string& name);
  // A user's reducer for these argument types. Each callback receives Arg values and returns state or results.
  struct ReducerBody {
    std::vector<std::string> arg_names, state_names;
    std::function<std::vector<ValueId>()> identity;
    std::function<std::vector<ValueId>(const std::vector<ValueId>& args)> lift;
    std::function<std::vector<ValueId>(const std::vector<ValueId>& a, const std::vector<ValueId>& b)> merge;
    std::function<std::vector<ValueId>(const std::vector<ValueId>& state)> finish;
  };
  ReducerId reducer(const std::string& name, const ReducerBody& body, const std::vector<ValueId>& args, const Where& where);

  // ---- effects ----
  void store(TensorId tensor, std::vector<Index> index, ValueId value, const Where& where);
  // Runs `body` with the Carried values until their types and axes are stable (a carried value has the axes and type of its
  // next). Inside the body every value over `axis`, and `axis` itself, means the current piece (tile) or point (by index).
  // Returns the final value of each carry.
  std::vector<ValueId> stream(AxisId axis, bool tile, std::vector<std::string> carry_names, std::vector<ValueId> init,
                              const std::function<StreamResult(const std::vector<ValueId>& carried)>& body, const Where& where);
  // A lambda's parameter, for stream merges: typed like `like`, no axes.
  ValueId arg(std::uint32_t slot, ValueId like);
  // What messages call a lambda's parameter from here on.
  void name_arg(const std::string& name, ValueId arg);

  const Program& program() const { return program_; }
  const Value& operator[](ValueId v) const { return program_[v]; }
  // Checks that every parameter is used as declared (outs stored, axes bound), verifies, and hands the program over.
  Program finish(const Where& where);

 private:
  friend class ReducerRow;
  // What the builder remembers of a value beside the value itself.
  struct Facts {
    StreamId scope;              // the innermost stream whose piece or carried values it depends on
    StreamId carried;            // the innermost stream whose carried values it depends on
    bool arg = false;            // depends on a lambda's parameter
    bool pure = false;           // made of constants, extents, scalars and lambda parameters only
    bool index = false;          // an index that a reducer chose
    std::optional<DType> exact;  // the 8- or 16-bit integer type that holds every value it can have
  };
  struct Type {
    DType dtype;
    bool weak;
  };
  struct Axes {
    AxisSet axes, done;
  };
  struct Saved {
    Program program;
    std::unordered_map<std::string, ValueId> interned;
    std::vector<Facts> facts;
  };
  // What a stream's body needed of its carried values before their axes were known: the axis, and the value that lacks it.
  struct Missing {
    AxisId axis;
    std::vector<ValueId> in;
  };
  std::optional<Missing> missing_;
  Saved save() const { return {program_, interned_, facts_}; }
  void restore(const Saved& saved);
  bool guess_better(const Error& error, StreamId stream, std::vector<Type>& types, std::vector<Axes>& axes) const;

  ValueId intern(Node node, Type type, Axes axes, const Where& where);
  Facts facts_of(const Node& node, DType dtype) const;
  const Facts& facts(ValueId v) const { return facts_[v.index]; }
  void declared_before_region(const std::string& what, const Where& where) const;
  void unused_name(const std::string& name, const Where& where) const;
  void finish_before_region();
  ValueId launch_integer(ValueId v, const std::string& what, const Where& where);

  // The value as the open streams see it: over pieces instead of streamed axes (but for the axes in `except`).
  ValueId local(ValueId v, const Where& where, const AxisSet& except = {});
  std::optional<StreamId> open_stream_over(AxisId axis) const;
  void refuse_args(ValueId v, const Where& where) const;

  // Axes: the axes of `set` and those that their ranges depend on; the union over arguments, refusing an unfinished reduction.
  AxisSet closure(const AxisSet& set) const;
  Axes join_axes(const std::vector<ValueId>& args, const Where& where) const;
  void refuse_unfinished(const Axes& axes, const std::vector<ValueId>& args, const Where& where) const;
  void refuse_range_of_rest(const AxisSet& rest, const AxisSet& removed, const std::string& what, const Where& where) const;

  // Types: the joined compute type, a value converted to a joined type, a weak value standing alone, a value made ready to be
  // kept as `dtype` (nothing if that would change its kind).
  using Text = std::function<std::string()>;  // made only for a message
  Type join_types(const std::vector<ValueId>& args, const Text& text, const Where& where) const;
  ValueId adapt(ValueId v, Type to, const Where& where);
  static Const converted(const Value& constant, DType to);
  Type concrete_type(ValueId v) const;
  ValueId concrete(ValueId v, const Where& where);
  std::optional<ValueId> kept_as(DType dtype, ValueId v, const Where& where);
  ValueId integer_index(ValueId v, const std::string& what, const Where& where);
  std::vector<Index> checked_index(TensorId tensor, std::vector<Index> index, const Where& where);
  ValueId in_bounds(TensorId tensor, const std::vector<Index>& index, const Where& where);

  Lambda lambda(const std::function<std::vector<ValueId>()>& results, std::size_t count, const std::string& what,
                const Where& where);
  void require_extents(const Where& where) const;

  Program program_;
  std::unordered_map<std::string, ValueId> interned_;
  std::vector<Facts> facts_;
  std::vector<StreamId> open_streams_;
  bool in_region_ = false;
};

}  // namespace cosmati::ir
