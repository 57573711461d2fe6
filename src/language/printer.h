// Tile IR to text. A value with a name, or with several uses, becomes a let where all that it depends on is known; everything
// else is printed inside its use. What the builder inserts by itself (casts of joins, pieces of streams) is left out again.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "language/operators.h"
#include "language/print_names.h"

namespace cosmati::language {

// Where the type of a printed expression comes from.
enum class Context : std::uint8_t {
  free,    // from itself
  pinned,  // a literal or extent takes the type it needs here
  join,    // also, narrow types compute as wide ones here
  index,   // also, any integer becomes i64 here
  store,   // also, any float becomes the stored one here
};

class Printer {
 public:
  explicit Printer(const ir::Program& program);
  std::string run();

 private:
  // ---- what is a let, and where (print_plan.cpp) ----
  void choose_names();
  void count_uses();
  void find_homes();
  bool is_leaf(ir::ValueId v) const;
  bool is_trivial(ir::ValueId v) const;  // short to repeat
  bool is_let(ir::ValueId v) const;
  ir::StreamId inner(ir::StreamId a, ir::StreamId b) const;
  // v inside the body of a stream over `axis`, when v is Replace(v, axis -> piece) and prints as v alone.
  bool is_local(ir::AxisId axis, ir::ValueId to) const;

  // ---- declarations and statements (print.cpp) ----
  std::string parameters();
  std::string dim(const ir::Dim& dim) const;
  std::string contract_of(const ir::Tensor& tensor);
  std::string axis_range(ir::AxisId axis);
  std::string reducer(ir::ReducerId id);
  std::string merge_binds(const ir::Lambda& merge, const std::vector<std::string>& states);
  void need(ir::ValueId v);
  void need_axis(ir::AxisId axis);
  void need_stream(ir::StreamId stream);
  void print_store(const ir::Store& store);
  void line(ir::StreamId home, std::string text);

  // ---- expressions (print_expr.cpp) ----
  std::string expr(ir::ValueId v, Context context, int level = level_or);
  std::string node(ir::ValueId v, Context context, int level);
  std::string elementwise(ir::ValueId v, const ir::Elementwise& n, Context context, int level);
  std::string reduction(const ir::Reduce& n);
  std::string replacement(const ir::Replace& n, int level);
  std::string load(const ir::Load& n);
  std::vector<Context> argument_contexts(const ir::Elementwise& n) const;
  std::string index(const std::vector<ir::Index>& index);
  bool is_bare(const ir::Load& n) const;
  bool is_natural(ir::ValueId v) const;  // has its own type when printed free
  ir::AxisId outside(ir::AxisId axis) const;
  std::string name_of(ir::AxisId axis) const { return axis_names_[outside(axis).index]; }

  struct LambdaNames {
    std::vector<std::string> args;
    std::vector<std::pair<ir::ValueId, std::string>> bound;
  };
  struct Block {
    ir::StreamId stream;  // none: the region
    std::vector<std::string> lines;
  };

  const ir::Program& p_;
  NamePool pool_, functions_;
  std::vector<std::string> axis_names_, tensor_names_, scalar_names_;
  std::map<ir::ValueId, std::string> user_names_;  // the first name of each value
  std::vector<std::uint32_t> uses_;
  std::vector<bool> forced_, reached_;
  std::vector<bool> ready_, axis_ready_, stream_ready_;
  std::vector<ir::StreamId> homes_;
  std::vector<std::string> bound_;          // names of the lets printed so far
  std::vector<std::string> reducer_names_;  // of those printed so far
  std::vector<ir::ReducerId> reducers_;     // the user's, in the order of their first use
  std::vector<std::vector<std::string>> carry_names_;
  std::vector<Block> blocks_;
  bool in_head_ = true;  // lets are not visible there
  const LambdaNames* lambda_ = nullptr;
  std::size_t steps_ = 0;
};

}  // namespace cosmati::language
