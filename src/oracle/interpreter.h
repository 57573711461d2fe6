// Evaluates values on demand under an environment that says where each axis stands: fixed at a point, spanning a dimension, or
// (under a replacement) at coordinates given by an array. Results are remembered in the frame of the innermost binding that they
// depend on, so what does not change between instances, pieces or iterations is computed once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oracle/accumulate.h"
#include "oracle/dense.h"
#include "oracle/facts.h"
#include "oracle/oracle.h"
#include "oracle/progress.h"

namespace cosmati::oracle {

struct Binding {
  enum class Kind : std::uint8_t { fixed, span, array, stream } kind;
  std::int64_t lo = 0, hi = 0;  // the coordinates; fixed: lo + 1 == hi
  std::uint32_t dim = 0;        // span: the dimension they lie along
  Ref coords;                   // all kinds but stream
  int depth = 0;                // the frame that owns it
  std::uint64_t id = 0;
  bool uncertain = false;  // span: the bounds may differ on a device
};
using BindingRef = std::shared_ptr<const Binding>;

class Interpreter {
 public:
  Interpreter(const ir::Program& program, const Inputs& inputs, const Options& options);

  Ref eval(ir::ValueId v);
  const Facts& facts() const { return facts_; }
  BindingRef binding(std::uint32_t slot);
  // The range of an axis where its environment stands.
  BindingRef canonical(std::uint32_t axis);

  // Binds slots until it goes away; a Scope with its own frame also owns what is evaluated under its bindings.
  class Scope {
   public:
    Scope(Interpreter& owner, bool frame);
    ~Scope();
    Scope(const Scope&) = delete;
    void bind(std::uint32_t slot, BindingRef b);
    void fixed(std::uint32_t axis, std::int64_t at);
    void span(std::uint32_t axis, std::uint32_t dim, std::int64_t lo, std::int64_t hi, bool uncertain = false);

   private:
    Interpreter& owner_;
    bool frame_;
    std::vector<std::pair<std::uint32_t, BindingRef>> saved_;
  };

  // The stores and probes of one stream's body, or of the region (nullopt), in text order.
  std::function<void(std::optional<ir::StreamId>)> effects;
  void run_stream(ir::StreamId s);  // with its effects; what it leaves is remembered for its Parts
  bool wide() const { return wide_; }
  Progress& progress() { return progress_; }
  // A block of instances begins: its reductions and streams are turns of it.
  void start_block() { long_nodes_done_ = 0; }
  const std::vector<std::int64_t>& extents() const { return inputs_.extents; }
  const ir::Program& program() const { return program_; }

 private:
  friend class Scope;
  using Bound = std::map<std::uint32_t, BindingRef>;
  struct Entry {
    std::uint64_t key;
    int depth;
    Ref value;
  };
  struct Range {
    std::uint64_t key;
    int depth;
    BindingRef binding;
  };
  struct StreamState {
    std::vector<Ref> carries;
    Bound axes;  // how the carried arrays' axes are bound
    BindingRef piece;
  };

  BindingRef range(std::uint32_t dim, std::int64_t lo, std::int64_t hi, int depth, bool uncertain);
  std::uint64_t key(const Slots& slots);
  int depth(const Slots& slots);
  const Ref* find(std::uint32_t entry, const Slots& slots);
  void remember(std::uint32_t entry, const Slots& slots, Ref value);

  Ref compute(ir::ValueId v);
  Ref load(const ir::Load& n, const ir::Value& value);
  Ref reduce(const ir::Reduce& n, const ir::Value& value);
  Ref replace(const ir::Replace& n, const ir::Value& value, std::vector<Ref> at);
  Ref part_of_stream(ir::StreamId s, std::uint32_t slot);
  Ref carried(const ir::Carried& n);
  // The final carries, in an environment where carried axes span their ranges; `bound` gets their bindings.
  Ref stream_tuple(ir::StreamId s, bool with_effects, Bound& bound);
  std::vector<Ref> stream_pieces(ir::StreamId s, const std::vector<std::int64_t>& points, const std::vector<Ref>& init,
                                 const Bound& bound, bool with_effects);
  std::vector<Ref> with_any_cuts(ir::StreamId s, std::vector<Ref> whole, const std::vector<Ref>& init, const Bound& bound,
                                 std::int64_t lo, std::int64_t hi);
  // Unbinds axes of `values` so that they span their ranges, under fresh dimensions where theirs are taken.
  void span_ranges(Scope& scope, const std::vector<std::uint32_t>& axes, const Slots& values, std::unique_ptr<Scope>& fresh);
  Ref moved(const Ref& value, const Bound& from);
  std::vector<Ref> merge_states(const ir::Stream& stream, const std::vector<Ref>& a, const std::vector<Ref>& b);
  Dims dims_of(const ir::AxisSet& axes);
  double relaxed(const ir::Reduce& n) const;
  // A reduction or stream, the nodes that may take long. Of the outermost one the turns count as progress.
  class LongNode;
  template <class F>
  Ref nested(F&& f);

  const ir::Program& program_;
  const Inputs& inputs_;
  const Options& options_;
  Facts facts_;
  bool wide_;
  Tape::Outer outer_;
  std::vector<BindingRef> bindings_;         // per slot; null: its range
  std::vector<std::vector<Entry>> entries_;  // per value, then per stream
  std::vector<std::vector<Range>> ranges_;   // per axis
  std::vector<StreamState> streams_;
  struct Frame {
    std::vector<std::uint32_t> entries, ranges;
  };
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> dim_of_axis_;
  std::uint32_t next_dim_;
  std::uint64_t next_id_ = 1;
  int nesting_ = 0;
  Progress progress_;
  int long_nodes_ = 0, long_nodes_done_ = 0, long_depth_ = 0;
};

class Interpreter::LongNode {
 public:
  explicit LongNode(Interpreter& owner) : owner_(owner) {
    if (++owner.long_depth_ > 1) return;
    const int index = std::min(owner.long_nodes_done_++, owner.long_nodes_ - 1);
    turn_ = std::make_unique<Progress::Turn>(owner.progress_, index, owner.long_nodes_);
  }
  ~LongNode() { --owner_.long_depth_; }
  LongNode(const LongNode&) = delete;
  // Turn `index` of `count`, while the result lives; nothing inside another long node.
  std::unique_ptr<Progress::Turn> turn(std::int64_t index, std::int64_t count) {
    if (!turn_) return nullptr;
    return std::make_unique<Progress::Turn>(owner_.progress_, static_cast<double>(index), static_cast<double>(count));
  }

 private:
  Interpreter& owner_;
  std::unique_ptr<Progress::Turn> turn_;
};

// The extents of the factors of dimension d, slow to fast; an index may also address a composite dimension as a whole.
std::vector<std::int64_t> factor_extents(const ir::Program& program, const Inputs& inputs, const ir::Tensor& tensor,
                                         std::size_t d, std::size_t factors, std::int64_t size);
// `x[2, 9]`, `5 x 7`.
std::string element_text(const std::string& tensor, const std::vector<std::int64_t>& at);
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace cosmati::oracle
