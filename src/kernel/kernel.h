// Kernel IR: exactly what one group executes, with no axis name except for diagnostics. It is the truth that backends spell
// and the simulator executes; every operation is exact or correctly rounded, so bits are equal everywhere.
// Expressions are trees in one arena: an expression that is not a leaf (Const, Id, ParamRef, VarRef) is used exactly once;
// what is needed twice is bound by Let. Statements form blocks. The verifier laws are listed in kernel/verify.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include <cosmati/dtype.h>

#include "ops/ops.h"
#include "support/id.h"

namespace cosmati::kernel {

using ExprId = support::Id<struct ExprTag>;
using StmtId = support::Id<struct StmtTag>;
using VarId = support::Id<struct VarTag>;
using BufferId = support::Id<struct BufferTag>;
using ParamId = support::Id<struct ParamTag>;

struct Ref {  // element `offset` (i64, counted in elements from the buffer's origin) of a buffer
  BufferId buffer;
  ExprId offset;
};

// ---- expressions ---------------------------------------------------------------------------------------------------
struct Const {
  double f = 0;
  std::int64_t i = 0;
};
struct Id {  // i64. group: which group of the phase this is. worker: which of the launch's workers runs it (private scratch).
             // lane: which of the phase's lanes; it varies, and so does every value that depends on it.
  enum class What : std::uint8_t { group, worker, lane } what;
};
struct ParamRef {
  ParamId param;
};
struct VarRef {
  VarId var;
};
struct Apply {  // an operation of ops.def (Op::cast and Op::bits included) on arguments of one type; `where` takes (bool, T, T),
  ops::Op op;   // shifts take (T, T)
  std::vector<ExprId> args;
};
struct Load {  // with a guard, nothing is read where it is false and the value is `otherwise`; offset, guard and `otherwise` are
               // evaluated in any case, as are the offset and the value of a guarded store
  Ref ref;
  std::optional<ExprId> guard, otherwise;
};
struct Shuffle {  // what another lane holds: the lane whose number is this one's xor `mask`, of the same subgroup; without a mask
                  // lane 0, for every lane (all lanes hold the same there, and the value no longer varies)
  ExprId value;
  std::optional<std::uint32_t> mask;
};
using ExprNode = std::variant<Const, Id, ParamRef, VarRef, Apply, Load, Shuffle>;
struct Expr {
  ExprNode node;
  DType dtype;
};

// ---- statements -----------------------------------------------------------------------------------------------------
using Block = std::vector<StmtId>;

struct Let {
  VarId var;
  ExprId value;
};
struct For {  // for var (i64) in lo .. hi; carried values enter as `inner`, leave the body as `next`, and the loop as `result`
  struct Carry {
    VarId inner, result;
    ExprId init, next;
  };
  VarId var;
  ExprId lo, hi;
  std::vector<Carry> carries;
  Block body;  // `next` expressions are evaluated after it, in its scope
};
struct If {
  ExprId condition;
  Block then, otherwise;
};
struct Store {
  Ref ref;
  ExprId value;
  std::optional<ExprId> guard;  // nothing is written where it is false
  bool past_caches = false;     // it is not read again soon: where the machine can, it goes to memory without a place in caches
};
struct Prefetch {  // a hint: the element will be read or written soon. It may lie anywhere, outside the buffer too.
  Ref ref;
  bool write = false;
};
struct Fence {};  // what lanes of the group have written is there for all of them, and all have read what is written after it
using StmtNode = std::variant<Let, For, If, Store, Prefetch, Fence>;
struct Stmt {
  StmtNode node;
};

// ---- the kernel ------------------------------------------------------------------------------------------------------
struct Var {
  std::string name;  // readable, unique within the kernel, an identifier
  DType dtype;
};
struct Param {  // a launch-time scalar
  enum class Source : std::uint8_t { extent, stride, scalar, unaligned } source;
  std::uint32_t a = 0, b = 0;  // extent: axis. stride: tensor, dimension (elements). scalar: index of the scalar parameter.
                               // unaligned: tensor; 0 where it begins at a multiple of aligned_bytes, else 1
  std::string name;
  DType dtype;
};
struct Buffer {
  enum class Kind : std::uint8_t {
    argument,        // the tensor parameter with index `tensor`
    launch_scratch,  // one per launch, shared by all groups and phases; poisoned at the start
    worker_scratch,  // one per worker; contents do not survive a group
  } kind;
  enum class Access : std::uint8_t { read, write, read_write } access;
  std::uint32_t tensor = 0;
  ExprId elements;  // scratch: its size, an i64 expression of params
  std::string name;
  DType dtype;
  bool aliased = false;  // an argument whose memory is that of another one too
};
struct Phase {  // all groups of a phase finish before the next phase starts
  std::string name;
  ExprId groups;  // i64 expression of params
  Block body;
  int lanes = 1;       // how many lanes a group has: 1, 2, 4, .. 32, or several subgroups
  bool apart = false;  // each lane goes its own way, and they meet at shuffles and fences; else they execute every statement
                       // together
  int packed = 1;      // so many groups share the threads of one, each with lanes of its own; they do not meet
};
inline constexpr int subgroup_lanes = 32, most_lanes = 1024, aligned_bytes = 16;
struct Kernel {
  std::string name;
  std::vector<Param> params;
  std::vector<Buffer> buffers;
  std::vector<Var> vars;
  std::vector<Expr> exprs;
  std::vector<Stmt> stmts;
  std::vector<Phase> phases;
  std::vector<ExprId> conditions;  // what the params of a launch have to meet, else the kernel says nothing

  const Expr& operator[](ExprId e) const { return exprs[e.index]; }
  const Stmt& operator[](StmtId s) const { return stmts[s.index]; }
  const Var& operator[](VarId v) const { return vars[v.index]; }
  const Buffer& operator[](BufferId b) const { return buffers[b.index]; }
  const Param& operator[](ParamId p) const { return params[p.index]; }
};

// ---- building --------------------------------------------------------------------------------------------------------
// Appends to a kernel's arenas. Folds constants and trivial identities of integer and boolean operations (exactly), and choices
// by a constant condition (`where`, guards); never a float operation.
class Builder {
 public:
  explicit Builder(Kernel& kernel) : k_(kernel) {}
  ExprId constant(DType dtype, double value);  // float types
  ExprId integer(std::int64_t value, DType dtype = DType::i64_);
  ExprId boolean(bool value);
  ExprId param(ParamId p);
  ExprId group();
  ExprId worker();
  ExprId lane();
  ExprId swap(ExprId value, std::uint32_t mask);  // Shuffle with a mask
  ExprId first(ExprId value);                     // Shuffle without
  ExprId var(VarId v);
  ExprId apply(ops::Op op, std::vector<ExprId> args);  // result type: bool for comparisons and tests, else the arguments'
  ExprId cast(DType to, ExprId value);                 // nothing where the type already fits
  ExprId bits(DType to, ExprId value);
  ExprId load(BufferId buffer, ExprId offset, std::optional<ExprId> guard = {}, std::optional<ExprId> otherwise = {});
  // An identifier that no param, buffer or var has and the text form does not reserve: a number is appended where needed.
  // Params and buffers are named by it too: a tensor may be called `group`.
  std::string unique_name(const std::string& name);
  VarId fresh(const std::string& name, DType dtype);  // named by unique_name
  // Binds `value` unless it is a leaf already; the result is a leaf and may be used many times.
  ExprId let(Block& block, const std::string& name, ExprId value);
  void store(Block& block, BufferId buffer, ExprId offset, ExprId value, std::optional<ExprId> guard = {},
             bool past_caches = false);
  StmtId statement(StmtNode node);
  Kernel& kernel() { return k_; }

 private:
  Kernel& k_;
  std::unordered_set<std::string> taken_;  // the names of the params, buffers and vars seen so far
  std::unordered_map<std::string, std::uint32_t> next_number_;
  std::size_t seen_params_ = 0, seen_buffers_ = 0, seen_vars_ = 0;
};

// ---- services --------------------------------------------------------------------------------------------------------
std::string print(const Kernel& k);              // the text form; parse(print(k)) prints the same
Kernel parse(const std::string& text);           // throws cosmati::Error{syntax}
void verify(const Kernel& k, const char* pass);  // throws InternalError naming the pass, with the text
struct Native {                                  // what a backend has instructions for
  bool half = false;                             // conversions between f16 and f32
  bool ldexp = false;                            // ldexp on f32, of what is no NaN or by a finite n
  bool bf16 = false;                             // conversions from f32 to bf16
  bool exp = false;                              // exp on f32, which it writes out itself
};
// Replaces every expanded operation (exp, log, ...) and the conversions a backend does not have by primitives.
Kernel expand(Kernel k, Native native = {});
// The value of an expression of constants and params (phase sizes, scratch sizes). params: bit patterns, one per Param.
std::int64_t evaluate(const Kernel& k, ExprId e, const std::vector<std::int64_t>& params);
// Whether they meet all conditions.
bool meets_conditions(const Kernel& k, const std::vector<std::int64_t>& params);

}  // namespace cosmati::kernel
