// The syntax tree of one file. Expressions live in one arena and name each other by index, so that no tree is deep to destroy;
// names are views into the text that the File owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/program.h"
#include "language/lexer.h"
#include "language/source.h"

namespace cosmati::language {

using ExprId = std::uint32_t;

struct Name {
  std::string_view text;
  Pos pos;
};

enum class ExprKind : std::uint8_t { integer, real, boolean, name, member, operation, call, index, replace, tuple, pack };

struct Expr {
  ExprKind kind;
  Pos pos;
  std::uint32_t height = 1;  // of the tree below, kept small by the parser
  std::string_view text;     // name, callee; member: a or b
  std::string_view member;   // member: the state
  ops::Op op{};              // operation
  double real = 0;
  std::int64_t integer = 0;  // also boolean
  std::vector<ExprId> args;  // operands; index and replace: the base first
  std::vector<Name> axes;    // replace: one per value in args after the base
  std::optional<ExprId> otherwise;
  std::optional<ir::Order> order;
  std::optional<Name> relax;
};

struct Bind {
  Name name;
  ExprId value;
};
struct Let {
  std::vector<Name> names;
  ExprId value;
};
struct AxisDecl {
  Name name;
  std::optional<ExprId> lo;  // absent: 0
  ExprId hi;
};
struct Require {
  ExprId condition;
};
struct StoreStmt {
  Name tensor;
  std::vector<ExprId> index;
  ExprId value;
};
using BodyStmt = std::variant<Let, AxisDecl, StoreStmt>;
struct StreamStmt {
  Pos pos;
  bool tile = false;
  Name axis;
  std::vector<Bind> carry;
  std::vector<BodyStmt> body;
  Pos next_pos, merge_pos;
  std::vector<Bind> next;
  std::optional<std::vector<Bind>> merge;
};
using HeadStmt = std::variant<Let, AxisDecl, Require>;
using RegionStmt = std::variant<Let, AxisDecl, StoreStmt, StreamStmt>;

struct FactorDecl {
  std::optional<Name> axis;
  std::int64_t offset = 0;
};
struct DimDecl {
  std::vector<FactorDecl> factors;
  bool pack = false;  // the one factor's axis names a pack
};
struct ParamDecl {
  Name name;
  bool is_tensor = true;
  ir::Access access = ir::Access::in;
  Name type;
  std::vector<DimDecl> dims;
  std::optional<std::pair<ExprId, ExprId>> range;
  bool sorted = false, distinct = false;
  std::optional<ExprId> fallback;
};
struct AxisRef {
  Name name;
  bool pack = false;
};
struct TypeVariable {
  Name name;
  TypeClass type_class;
};
struct ProgramDecl {
  Name name;
  std::vector<TypeVariable> types;
  std::vector<ParamDecl> params;
  std::vector<HeadStmt> head;
  Pos region_pos;
  std::vector<AxisRef> parallel;
  std::vector<RegionStmt> region;
};
struct DefDecl {
  Name name;
  std::vector<Name> params;
  std::vector<Let> lets;
  ExprId result;
};
struct ReducerDecl {
  Name name;
  std::vector<Name> params;
  std::vector<Bind> identity, lift, merge;
  Pos lift_pos, merge_pos;
  ExprId finish;
};

// Never moved: the views point into `text`.
struct File {
  std::string name, text;
  std::vector<Expr> exprs;
  std::vector<DefDecl> defs;
  std::vector<ReducerDecl> reducers;
  std::vector<ProgramDecl> programs;
  std::unordered_map<std::string_view, std::uint32_t> def_index, reducer_index;

  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const Expr& operator[](ExprId id) const { return exprs[id]; }
  Where where(Pos pos) const { return {name, static_cast<int>(pos.line), static_cast<int>(pos.column)}; }
  const DefDecl* find_def(std::string_view name) const;
  const ReducerDecl* find_reducer(std::string_view name) const;
};

// Syntax only; what names mean is the elaborator's. Throws Error{syntax, redefined, not_supported}.
std::shared_ptr<const File> parse_file(const std::string& text, const std::string& file);
// gelu, silu and attend, known to every file.
const File& prelude();

}  // namespace cosmati::language
