// Elaboration: runs a program's syntax tree through ir::Builder with its dtype variables and axis packs bound. Defs are inlined,
// reducers become monomorphic; names mean what they name here and nowhere else.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/builder.h"
#include "language/ast.h"

namespace cosmati::language {

using Values = std::vector<ir::ValueId>;

struct Pack {
  std::vector<ir::AxisId> axes;
};
using Entity = std::variant<ir::AxisId, Pack, ir::TensorId, ir::ValueId>;

// The names visible at one point of a text. A program has one; each inlined def, lift, merge and finish has its own.
class Scope {
 public:
  struct Entry {
    Entity entity;
    Pos pos;
  };

  explicit Scope(const File& file) : file_(&file) {}
  const File& file() const { return *file_; }
  // Errors inside the prelude are reported where the user called it.
  Where where(Pos pos) const { return call_site ? *call_site : file_->where(pos); }

  const Entry* find(std::string_view name) const;
  void set(std::string_view name, Entity entity, Pos pos);  // replaces
  void declare(const Name& name, Entity entity);            // throws Error{redefined}
  void check_free(const Name& name, const std::string& hint = {}) const;
  std::size_t mark() const { return added_.size(); }
  void rewind(std::size_t mark);
  std::vector<std::string> names() const;
  std::vector<std::string> axes() const;

  std::optional<Where> call_site;
  bool sees_types = false;        // the program's dtype variables
  const char* visible = nullptr;  // for messages: what a scope of its own can see
  // Inside merge: the states and their left and right values.
  const std::vector<std::string>* states = nullptr;
  const Values* left = nullptr;
  const Values* right = nullptr;

 private:
  const File* file_;
  std::unordered_map<std::string_view, Entry> entries_;
  std::vector<std::string_view> added_;
};

class Elaborator {
 public:
  Elaborator(const File& file, const ProgramDecl& decl, const Binding& binding);
  ir::Program run();

 private:
  // ---- declarations and statements (elaborate.cpp) ----
  DType type_of(const Name& name) const;
  void declare_axes();
  void declare_parameters();
  void declare_contracts();
  ir::Dim dim_of(const DimDecl& dim, std::size_t pack_index);
  void statement(const Let& let, Scope& scope);
  void statement(const AxisDecl& axis, Scope& scope);
  void statement(const Require& require, Scope& scope);
  void statement(const StoreStmt& store, Scope& scope);
  void statement(const StreamStmt& stream, Scope& scope);
  void name_value(std::string_view name, ir::ValueId value);

  // ---- expressions (eval_expr.cpp) ----
  Values eval_many(ExprId id, Scope& scope, std::size_t count);
  ir::ValueId eval(ExprId id, Scope& scope);
  Values eval_any(ExprId id, Scope& scope);
  ir::ValueId eval_name(const Expr& expr, Scope& scope);
  ir::ValueId eval_member(const Expr& expr, Scope& scope);
  ir::ValueId eval_index(const Expr& expr, Scope& scope);
  ir::ValueId eval_replace(const Expr& expr, Scope& scope);
  std::vector<ir::Index> index_of(const std::vector<ExprId>& items, std::size_t first, Scope& scope);
  ir::AxisId axis_named(const Name& name, const Scope& scope, const std::string& hint = {}) const;
  [[noreturn]] void fail_unknown(const Name& name, const Scope& scope, const std::string& what) const;

  // ---- calls, defs, reducers (eval_call.cpp) ----
  Values eval_call(const Expr& expr, Scope& scope);
  Values eval_args(const Expr& expr, std::size_t count, Scope& scope);
  std::vector<ir::AxisId> axis_args(const Expr& expr, std::size_t first, Scope& scope) const;
  ir::ReduceOptions options_of(const Expr& expr, const Scope& scope) const;
  std::optional<DType> cast_type(std::string_view name, const Scope& scope) const;
  void expect_args(const Expr& expr, std::size_t count, const Scope& scope) const;
  Values inline_def(const DefDecl& def, const File& home, const Expr& call, Scope& scope);
  Values reduce_by(const ReducerDecl& reducer, const File& home, const Expr& call, Scope& scope);
  // The expression bound to each of `names`, in their order.
  std::vector<ExprId> bound_to(const std::vector<std::string>& names, const std::vector<Bind>& binds, const char* what, Pos pos,
                               const Scope& scope) const;
  ir::Lambda merge_of(const std::vector<Bind>& binds, Pos pos, const std::vector<std::string>& states, const Values& left,
                      const Values& right, const Scope& outer);

  const File& file_;
  const ProgramDecl& decl_;
  const Binding& binding_;
  ir::Builder builder_;
  Scope scope_;
  std::vector<const DefDecl*> active_;                             // defs being inlined
  std::vector<std::pair<std::string, ir::ValueId>> stream_names_;  // bound by the latest run of a stream's body
  bool in_stream_ = false;
  bool in_region_ = false;
  std::unordered_map<std::string_view, bool> declared_axes_;  // axes of the head; whether a dim has them too
  std::vector<std::uint32_t> depth_;                          // of each value: operations in a row below it
  int eval_depth_ = 0;
  std::size_t steps_ = 0;
};

// What a caller must know of a program before its types are bound. Throws Error{unknown_name, redefined, ...}.
Signature signature_of(const File& file, const ProgramDecl& program);

}  // namespace cosmati::language
