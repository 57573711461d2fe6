// Emission by demand. A scope binds axes to coordinates (the root binds the grid digits, a loop its axis, a stream its piece); a
// value is emitted once into the innermost scope that it depends on, so whatever a loop does not change stands before it.
// A scope may bind an axis to several coordinates at once, the copies that a worker holds in registers (reg digits): a value is
// then emitted once a copy. A coordinate that varies over the lanes (lane digits) makes what depends on it vary.
// Registers hold values in compute type: narrow types are widened by loads and rounded by stores and casts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "plan/facts.h"
#include "plan/mapping.h"
#include "prove/prove.h"
#include "support/check.h"

namespace cosmati::lower {

using ir::AxisId;
using ir::AxisSet;
using ir::StreamId;
using ir::TensorId;
using ir::ValueId;
using kernel::Block;
using kernel::BufferId;
using kernel::ExprId;
using kernel::VarId;
using ops::Op;

using Arguments = std::vector<ExprId>;

// An array over some axes in scratch: element (coordinate - lo) of each axis, row-major in the order listed. Where the root gives
// the lanes of a group different instances, each lane has an array of its own, interleaved.
struct Array {
  BufferId buffer;
  std::vector<AxisId> axes;
  int lanes = 1;
};

struct CarriedState {  // one carry of a stream: a register, or two arrays (the value, and the next one while it is computed)
  std::optional<ExprId> value;
  std::optional<Array> array, next;
};

struct Coordinates {                            // of one axis
  std::vector<ExprId> at;                       // one a copy
  std::vector<std::optional<ExprId>> inside{};  // whether that coordinate is in the axis's range, where it may not be
  bool lanes = false;                           // they vary over the lanes
  ExprId base{};                                // the first of them in lane 0
};

using CopyKey = std::vector<std::uint32_t>;  // which copy of each axis that has several, in the order of a value's axes

struct Scope {
  Scope* parent;
  Block* block;
  std::map<AxisId, Coordinates> coordinates;
  std::optional<StreamId> stream{};
  bool instance = false;  // every instance axis is bound here
  int nest = 0;           // which nest of loops it is a loop of; 0: none
  bool point = false;     // its axes are bound to one point of their ranges
  std::map<std::pair<ValueId, CopyKey>, Arguments> memo{};
  std::map<StreamId, std::vector<CarriedState>> results{};
  std::map<StreamId, std::vector<CarriedState>> carried{};
  std::map<ValueId, bool> filled{};
};

class Lowering {
 public:
  Lowering(const ir::Program& program, const plan::Mapping& mapping, const plan::Facts& facts)
      : p_(program), m_(mapping), facts_(facts), b_(k_) {}
  kernel::Kernel run();

 private:
  // ---- lower.cpp: phases, and what is known when a launch starts -------------------------------------------------------
  void lower_phase(const plan::Phase& phase);
  ExprId only_where_needed(const plan::Phase& phase, ExprId groups);
  ExprId decode_grid(const plan::Phase& phase, Scope& root);  // binds the axes on the grid; gives the number of groups
  ExprId size(const place::Size& s);
  ExprId param(kernel::Param::Source source, std::uint32_t a, std::uint32_t b, const std::string& name, DType dtype);
  ExprId extent(AxisId axis);
  ExprId axis_extent(AxisId axis);  // hi - lo of a launch-level axis
  ExprId stride(TensorId tensor, std::uint32_t dim);
  ExprId scalar_register(ir::ScalarId s);
  ExprId bound(const prove::Bound& terms);
  ExprId launch_value(ValueId v);  // an integer expression of extents, scalars and constants as a tree of params

  // ---- scopes.cpp: where values go, and the loops that open scopes ------------------------------------------------------
  static Scope* binder(Scope* from, AxisId axis);
  static Scope* root_of(Scope* s);
  Scope* home_scope(ValueId v, Scope* from, const std::vector<AxisId>& except = {});
  const std::vector<StreamId>& streams_in(ValueId v);  // the streams in whose body `v` lives
  bool after_stores(ValueId v);
  ExprId coordinate(Scope* s, AxisId axis) const;  // of the current copy
  CopyKey copy_key(const AxisSet& axes, Scope* s) const;
  static bool lanes_taken(Scope* s);
  // Whether all coordinates of `axes` are in their ranges; nothing where they always are.
  std::optional<ExprId> inside(const AxisSet& axes, Scope* s);
  template <class Visit>
  void each_copy(const AxisSet& axes, Scope* s, const Visit& visit);

  ExprId lo(AxisId axis, Scope* s);
  ExprId hi(AxisId axis, Scope* s);
  std::pair<ExprId, ExprId> range(AxisId axis, Scope* s);  // for the instances of a group its part of it
  struct Shape {  // how a nest runs one axis: `lanes` neighbours at once, `copies` of them in registers
    std::uint32_t lanes = 1, copies = 1;
    bool whole = false;      // that is all of it: no loop
    std::uint32_t side = 1;  // of the copies each lane has so many side by side
  };
  Shape shape(AxisId axis) const;
  // Where a copy is, of a block that starts at `base`.
  ExprId place_in_block(ExprId base, std::uint32_t copy, const Shape& shape);
  void rely_on_whole_vectors(AxisId axis, const Shape& shape);
  void rely_on_alignment(TensorId tensor, const std::vector<ir::Index>& index, Scope* s);
  ExprId is_multiple(ExprId e, std::int64_t of) {
    return b_.apply(Op::eq, {b_.apply(Op::mod, {e, b_.integer(of)}), b_.integer(0)});
  }
  void hold_whole_axes(Scope* s);
  // The axes of a nest, outermost first; one that takes the lanes goes innermost. `lanes`: whether the lanes are free here.
  std::vector<std::pair<AxisId, Shape>> nest(std::vector<AxisId> axes, bool lanes) const;
  using Body = std::function<Arguments(Scope*, const Arguments&)>;
  // Loops around `body`, which gets the innermost scope and the carried registers and returns their next. `state` holds the
  // values before the loops; the result holds those after.
  Arguments loops(const std::vector<std::pair<AxisId, Shape>>& axes, const Arguments& state,
                  const std::vector<std::string>& names, Scope* outer, const Body& body);
  Arguments loops(const std::vector<std::pair<AxisId, Shape>>& axes, std::size_t at, Arguments state,
                  const std::vector<std::string>& names, Scope* outer, const Body& body);
  Arguments loop(AxisId axis, ExprId first, ExprId last, const std::function<Coordinates(ExprId, Block&)>& bind,
                 const Arguments& state, const std::vector<std::string>& names, Scope* outer, const Body& body);
  bool used(ExprId leaf, std::size_t first_expr, std::size_t first_stmt) const;
  // The coordinates base, base + 1, ... of a block; those from `last` on are outside.
  Coordinates neighbours(AxisId axis, ExprId base, std::optional<ExprId> last, Shape shape, Block& block);
  // The reductions that a nest in `s` needs of `values` and does not change, before it: one of them may be where an array is
  // filled that the nest reads.
  void reduce_before(const std::vector<ValueId>& values, Scope* s);
  // The same without registers: the body runs once a copy.
  void loops(const std::vector<AxisId>& axes, Scope* outer, const std::function<void(Scope*)>& body);

  // ---- values.cpp ------------------------------------------------------------------------------------------------------
  ExprId emit(ValueId v, Scope* from);
  Arguments emit_all(ValueId v, Scope* from);
  Arguments emit_node(ValueId v, Scope* s);
  ExprId apply(Op op, const Arguments& args, DType dtype);
  struct Address {
    ExprId offset;
    std::optional<ExprId> inside;  // whether every index is within its extents
  };
  Address address(TensorId tensor, const std::vector<ir::Index>& index, Scope* s, bool guarded);
  ExprId factor_extent(const ir::Factor& factor);
  // A load of an element in the type that memory has it in, which nothing else evaluates.
  bool loads_as_stored(ValueId v) const;
  ExprId as_stored(ValueId v, Scope* s);
  ExprId emit_load(const ir::Load& load, const ir::Value& value, Scope* s);
  ExprId emit_replaced(const ir::Replace& replace, const ir::Value& value, Scope* s);
  void emit_store(const ir::Store& store, Scope* s);
  ExprId guarded_load(BufferId buffer, ExprId offset, std::optional<ExprId> guard);

  // ---- homes.cpp: arrays in scratch ------------------------------------------------------------------------------------
  ExprId array_lo(AxisId axis);      // where an array over the axis starts,
  ExprId array_extent(AxisId axis);  // and how many elements it needs, whatever the instance
  Array scratch(kernel::Buffer::Kind kind, const std::string& name, DType dtype, std::vector<AxisId> axes);
  template <class Coordinate>
  ExprId array_offset(const Array& array, const Coordinate& coordinate);
  ExprId array_offset(const Array& array, Scope* s);
  ExprId read(const Array& array, const AxisSet& axes, Scope* s);
  std::vector<AxisId> step_axes(ValueId v) const;
  bool instances_only(ValueId v) const;
  bool in_registers(ValueId v) const;
  const Array& worker_array(ValueId v);
  Scope* fill_scope(ValueId v, Scope* from);
  bool fills_on_the_way(ValueId v, Scope* s);
  void store_element(const Array& array, ValueId v, ExprId value, Scope* s);
  const Array& filled_array(ValueId v, Scope* from);
  void emit_fill(ValueId v, Scope* root);
  void emit_keep(ValueId v, Scope* root);
  void emit_parts(ValueId v, Scope* root);
  void begin_accumulating(ValueId v, Scope* root);
  void accumulate_element(ValueId v, Scope* inner);
  void emit_accumulate(const std::vector<ValueId>& values, Scope* s);

  // ---- reduce.cpp ------------------------------------------------------------------------------------------------------
  // One pass over the points of a reduction: the step takes the state, which copy of the result it belongs to, and the scope.
  struct Fold {
    Arguments identity;
    std::vector<std::string> names;
    std::function<Arguments(const Arguments&, std::size_t, Scope*)> step;
    std::function<Arguments(const Arguments&, const Arguments&, Scope*)> merge;
    bool symmetric = true;  // both orders of a merge give the same bits
    // The state that the merge takes from the one that the steps made, of a copy of the innermost axis; nothing: they are alike.
    std::function<Arguments(const Arguments&, std::size_t, const Shape&)> close{};
    // One state from those of all copies, and of their lanes where these have elements too; nothing: by merges.
    std::function<Arguments(const std::vector<Arguments>&, bool, Scope*)> settle{};
  };
  struct Folding {  // how a reduction runs, and what becomes of the states of its copies
    Fold fold;
    std::function<void(const std::vector<Arguments>&)> finish;
    std::optional<ValueId> extreme_of{};  // the states tell both extremes of this value
  };
  Folding folding(ValueId v, const std::vector<ValueId>& beside, Scope* s);
  bool is_extreme(ValueId v) const;
  Folding by_table(ValueId v, Scope* s);
  std::vector<ValueId> beside(ValueId v, Scope* s);
  static Arguments part(const Arguments& all, std::size_t first, std::size_t count);
  Fold joined(const std::vector<Folding>& all, const std::vector<std::size_t>& distinct,
              std::map<std::size_t, std::size_t>& begins);
  std::vector<Arguments> folded(ValueId v, const Fold& f, Scope* s);
  Arguments settle(const Fold& f, std::vector<Arguments> parts, bool lanes, Scope* s);
  Fold fold_of(ValueId v, Scope* s);
  struct Parts {
    std::vector<Array> states;  // over the axes of the result, part after part
    std::int64_t count;
  };
  Parts& parts_of(ValueId v, const Fold& f);
  ExprId part_offset(const Array& states, ExprId part, Scope* s);
  // The states that the groups of an earlier phase have left, merged.
  std::vector<Arguments> merged_parts(ValueId v, const Fold& f, Scope* s);
  std::vector<AxisId> reduced_axes(const ir::Reduce& reduce) const;
  ExprId count(const ir::Reduce& reduce, Scope* s);
  // Emits every copy of the value at once, so that they share one nest.
  void emit_reduce(ValueId v, Scope* s);
  void emit_moments(ValueId v, Scope* s);
  Arguments lifted(const ir::Reduce& reduce, const ir::Reducer& r, Scope* s);
  Arguments fold(const ir::Reduce& reduce, const ir::Reducer& r, const Arguments& state, Scope* s);
  Arguments merge(const ir::Reducer& r, const Arguments& a, const Arguments& b, Scope* s);
  Arguments butterfly(const Fold& f, Arguments state, std::uint32_t lanes, Scope* s);
  Arguments settle_lanes(const Fold& f, Arguments state, Scope* s);
  std::optional<DType> count_type(const ir::Reducer& r) const;
  bool lifts_unchanged(const ir::Reducer& r) const;
  Arguments lambda(const ir::Lambda& f, const Arguments& args, Scope* s);
  ExprId lambda_value(ValueId v, const Arguments& args, Scope* s, std::map<ValueId, ExprId>& memo);

  // ---- extremes.cpp ----------------------------------------------------------------------------------------------------
  Folding by_bits(ValueId v, Scope* s, bool both_ends);
  bool places_in_order(const ir::Reduce& reduce) const;
  Folding by_places(ValueId v, Scope* s);
  ExprId rank(ExprId x, bool largest, Scope* s);

  // ---- streams.cpp -----------------------------------------------------------------------------------------------------
  std::vector<CarriedState>& carried(StreamId stream, Scope* from);
  std::vector<CarriedState>& stream_results(StreamId id, Scope* from);
  void fill(const Array& array, const ir::Carry& carry, ValueId v, Scope* s);
  bool stores_inside(StreamId id) const;
  std::vector<AxisId> carried_axes(const ir::Carry& carry, Scope* s) const;
  Array stream_array(StreamId id, std::uint32_t slot, int which, const ir::Carry& carry, const std::vector<AxisId>& axes);

  // ---- small ones ------------------------------------------------------------------------------------------------------
  static DType reg(DType t) { return compute_type(t); }
  // Literals keep their digits in tile IR.
  ExprId real(DType t, double value) { return b_.constant(reg(t), ops::round_to(t, value)); }
  ExprId add(ExprId a, ExprId b) { return b_.apply(Op::add, {a, b}); }
  ExprId sub(ExprId a, ExprId b) { return b_.apply(Op::sub, {a, b}); }
  ExprId mul(ExprId a, ExprId b) { return b_.apply(Op::mul, {a, b}); }
  ExprId maximum(ExprId a, ExprId b) { return b_.apply(Op::maximum, {a, b}); }
  ExprId both(ExprId a, ExprId b) { return b_.apply(Op::logical_and, {a, b}); }
  ExprId as_i64(ExprId e) { return b_.cast(DType::i64_, e); }
  std::string name_of(ValueId v);

  const ir::Program& p_;
  const plan::Mapping& m_;
  const plan::Facts& facts_;
  kernel::Kernel k_;
  kernel::Builder b_;
  const plan::Phase* phase_ = nullptr;
  std::vector<AxisSet> within_;  // per value
  std::set<std::pair<AxisId, std::uint32_t>> whole_vectors_;
  std::set<std::pair<TensorId, std::uint32_t>> aligned_;
  prove::Hulls hulls_{p_};
  std::map<AxisId, std::pair<ExprId, ExprId>> ranges_;  // of axes of which a group has a part, while its instances are told apart
  std::map<AxisId, std::uint32_t> copies_;              // the copy being emitted, of axes with several
  std::map<ValueId, std::string> names_;
  std::vector<std::vector<StreamId>> streams_in_;
  std::vector<bool> after_stores_;                                                // per value
  std::map<std::tuple<ValueId, std::vector<AxisId>, int>, Array> worker_arrays_;  // with the lanes of the instances
  std::map<std::tuple<StreamId, std::uint32_t, int, std::vector<AxisId>, int>, Array> stream_arrays_;
  std::map<ValueId, Array> kept_, keeping_;              // by earlier phases, and by this one
  std::map<ValueId, Parts> parts_, leaving_parts_;       // of earlier phases, and of this one
  std::optional<std::pair<ExprId, std::int64_t>> part_;  // which one this group has, of how many
  std::set<ValueId> filling_;
  std::set<ValueId> pending_;                                 // reductions whose operands are being written
  std::vector<ValueId> phase_values_;                         // everything that the phase evaluates
  int nest_ = 0, nests_ = 0;                                  // the nest being written, and how many there are
  std::vector<std::tuple<int, Scope*, ValueId>> on_the_way_;  // arrays that nests fill, with the scope in which they stay
  int lanes_ = 1;                                             // of the phase
  int instance_lanes_ = 1;                                    // the same where an instance axis has them, else 1
  bool runs_stores_ = false;
};

// Calls visit() with copies_ at every combination of the copies of `axes` in scope `s`.
template <class Visit>
void Lowering::each_copy(const AxisSet& axes, Scope* s, const Visit& visit) {
  std::vector<std::pair<AxisId, std::uint32_t>> several;
  for (AxisId axis : axes)
    if (Scope* by = binder(s, axis))
      if (const std::size_t n = by->coordinates.at(axis).at.size(); n > 1) several.emplace_back(axis, n);
  const auto before = copies_;
  for (const auto& [axis, n] : several) copies_[axis] = 0;
  for (bool more = true; more;) {
    visit();
    more = false;
    for (std::size_t i = several.size(); i-- > 0 && !more;) {
      std::uint32_t& copy = copies_[several[i].first];
      more = ++copy < several[i].second;
      if (!more) copy = 0;
    }
  }
  copies_ = before;
}

template <class Coordinate>
ExprId Lowering::array_offset(const Array& array, const Coordinate& coordinate) {
  ExprId offset = b_.integer(0);
  for (AxisId axis : array.axes) offset = add(mul(offset, array_extent(axis)), sub(coordinate(axis), array_lo(axis)));
  if (array.lanes > 1) offset = add(mul(offset, b_.integer(array.lanes)), b_.lane());
  return offset;
}

}  // namespace cosmati::lower
