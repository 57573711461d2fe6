// The walk over kernel IR. Params and buffer addresses are loaded once at the top of a function, loops carry their values in
// phis, nothing lives on the stack. What a uniform guard protects (offset and value included) is evaluated only
// where it holds; of a guard that varies only the access is.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/codegen.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "backends/cpu/lanes.h"
#include "backends/cpu/quotient.h"
#include "kernel/sums.h"
#include "kernel/tiles.h"
#include "kernel/varying.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::cpu {
namespace {

using kernel::Block;
using kernel::Buffer;
using kernel::BufferId;
using kernel::ExprId;
using support::overloaded;

constexpr int deepest = 2000;  // nested expressions: the walk is recursive, here and in LLVM

[[noreturn]] void too_deep(const kernel::Kernel& k) {
  throw Error(ErrorCode::not_supported, {}, fmt::format("kernel {}: an expression nests deeper than {}", k.name, deepest),
              "bind parts of it with let");
}

// Before anything walks a tree: sanitizers have less stack than the walks of release builds. Parts come before what is made of
// them; where a pass has it otherwise, the walk below looks again.
void check_depth(const kernel::Kernel& k) {
  std::vector<int> depths(k.exprs.size(), 0);
  for (std::size_t e = 0; e < k.exprs.size(); ++e) {
    const auto over = [&](ExprId part) { depths[e] = std::max(depths[e], depths[part.index] + 1); };
    std::visit(overloaded{[&](const kernel::Apply& a) { std::for_each(a.args.begin(), a.args.end(), over); },
                          [&](const kernel::Load& l) {
                            over(l.ref.offset);
                            if (l.guard) over(*l.guard);
                            if (l.otherwise) over(*l.otherwise);
                          },
                          [&](const kernel::Shuffle& s) { over(s.value); }, [](const auto&) {}},
               k.exprs[e].node);
    if (depths[e] > deepest) too_deep(k);
  }
}

class Writer {
 public:
  Writer(const kernel::Kernel& k, LLVMModuleRef module)
      : k_(k),
        varying_(kernel::varying(k)),
        sums_(k),
        at_{LLVMGetModuleContext(module), module, LLVMCreateBuilderInContext(LLVMGetModuleContext(module))},
        lanes_(at_, 1) {}
  ~Writer() { LLVMDisposeBuilder(at_.builder); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void phase(const kernel::Phase& phase, const std::string& symbol) {
    begin(symbol, {i64(), i64(), i64(), pointer(), pointer()});
    lanes_ = Lanes(at_, static_cast<unsigned>(phase.lanes));
    const LLVMValueRef first = LLVMGetParam(function_, 0), last = LLVMGetParam(function_, 1);
    worker_ = LLVMGetParam(function_, 2);
    load_params(LLVMGetParam(function_, 4));
    load_buffers(LLVMGetParam(function_, 3));
    loop(first, last, {}, [&](LLVMValueRef group, const std::vector<LLVMValueRef>&) {
      group_ = group;
      block(phase.body);
      return std::vector<LLVMValueRef>{};
    });
    // Whoever waits for the phase sees what went past the caches.
    if (past_caches_) LLVMBuildFence(at_.builder, LLVMAtomicOrderingSequentiallyConsistent, false, "");
    LLVMBuildRetVoid(at_.builder);
  }

  void size(const kernel::Phase& phase, const std::string& symbol) {
    begin(symbol, {pointer(), pointer()});
    load_params(LLVMGetParam(function_, 0));
    lanes_ = Lanes(at_, static_cast<unsigned>(phase.lanes));
    const LLVMValueRef out = LLVMGetParam(function_, 1), groups = uniform(phase.groups);
    group_ = middle(integer(0), groups);  // one group stands for all
    worker_ = integer(0);
    const LLVMValueRef all = LLVMBuildSIToFP(at_.builder, groups, real(), "");
    LLVMBuildStore(at_.builder, groups, field(out, offsetof(native::Size, groups)));
    LLVMBuildStore(at_.builder, LLVMBuildFMul(at_.builder, all, cost(phase.body), ""),
                   field(out, offsetof(native::Size, operations)));
    LLVMBuildRetVoid(at_.builder);
  }

 private:
  LLVMTypeRef i64() const { return LLVMInt64TypeInContext(at_.context); }
  LLVMTypeRef real() const { return LLVMDoubleTypeInContext(at_.context); }
  LLVMTypeRef pointer() const { return LLVMPointerTypeInContext(at_.context, 0); }
  LLVMValueRef integer(std::int64_t value) const { return LLVMConstInt(i64(), static_cast<unsigned long long>(value), true); }

  // ---- functions ----
  void begin(const std::string& symbol, std::vector<LLVMTypeRef> types) {
    const LLVMTypeRef none = LLVMVoidTypeInContext(at_.context);
    function_ = LLVMAddFunction(at_.module, symbol.c_str(), LLVMFunctionType(none, types.data(), types.size(), false));
    constexpr std::string_view nounwind = "nounwind";
    LLVMAddAttributeAtIndex(
        function_, LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(at_.context, LLVMGetEnumAttributeKindForName(nounwind.data(), nounwind.size()), 0));
    LLVMPositionBuilderAtEnd(at_.builder, new_block("entry"));
    vars_.assign(k_.vars.size(), {});
    params_.clear();
    buffers_.clear();
    past_caches_ = false;
  }

  void load_params(LLVMValueRef array) {
    for (std::size_t i = 0; i < k_.params.size(); ++i) {
      const kernel::Param& p = k_.params[i];
      const LLVMValueRef word = LLVMBuildLoad2(at_.builder, i64(), element(i64(), array, integer(i)), p.name.c_str());
      const DType as = is_float(p.dtype) ? (byte_size(p.dtype) == 8 ? DType::i64_ : DType::i32_) : p.dtype;
      LLVMValueRef value = is_bool(as) ? LLVMBuildICmp(at_.builder, LLVMIntNE, word, integer(0), "")
                                       : LLVMBuildIntCast2(at_.builder, word, register_type(at_, as), true, "");
      if (is_float(p.dtype) && byte_size(p.dtype) < 4)
        value = LLVMBuildTrunc(at_.builder, value, register_type(at_, p.dtype), "");
      params_.push_back(LLVMBuildBitCast(at_.builder, value, register_type(at_, p.dtype), ""));
    }
  }

  void load_buffers(LLVMValueRef array) {
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
      const Buffer& b = k_.buffers[i];
      const LLVMValueRef entry = field(array, i * sizeof(kernel::Memory) + offsetof(kernel::Memory, data));
      LLVMValueRef origin = LLVMBuildLoad2(at_.builder, pointer(), entry, b.name.c_str());
      if (b.kind == Buffer::Kind::worker_scratch)
        origin = element(memory_type(at_, b.dtype), origin, LLVMBuildMul(at_.builder, worker_, uniform(b.elements), ""));
      buffers_.push_back(origin);
    }
  }

  LLVMValueRef field(LLVMValueRef structure, std::size_t offset) {
    return element(LLVMInt8TypeInContext(at_.context), structure, integer(static_cast<std::int64_t>(offset)));
  }

  LLVMValueRef element(LLVMTypeRef type, LLVMValueRef base, LLVMValueRef index) {
    return LLVMBuildGEP2(at_.builder, type, base, &index, 1, "");
  }

  LLVMBasicBlockRef new_block(const char* name) { return LLVMAppendBasicBlockInContext(at_.context, function_, name); }
  LLVMBasicBlockRef here() const { return LLVMGetInsertBlock(at_.builder); }

  LLVMValueRef phi(LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y, LLVMBasicBlockRef from_y, const char* name = "") {
    const LLVMValueRef merged = LLVMBuildPhi(at_.builder, LLVMTypeOf(x), name);
    LLVMAddIncoming(merged, &x, &from_x, 1);
    LLVMAddIncoming(merged, &y, &from_y, 1);
    return merged;
  }

  // for i in lo .. hi: the body gets i and the carried values and gives the next ones. Tested at the bottom, so that what does
  // not change in the body can move in front of it.
  template <class Body>
  std::vector<LLVMValueRef> loop(LLVMValueRef lo, LLVMValueRef hi, const std::vector<LLVMValueRef>& init, Body body) {
    const LLVMBasicBlockRef before = here(), top = new_block("loop"), after = new_block("done");
    LLVMBuildCondBr(at_.builder, LLVMBuildICmp(at_.builder, LLVMIntSLT, lo, hi, ""), top, after);
    LLVMPositionBuilderAtEnd(at_.builder, top);
    const LLVMValueRef i = LLVMBuildPhi(at_.builder, i64(), "i");
    std::vector<LLVMValueRef> inner;
    for (const LLVMValueRef x : init) inner.push_back(LLVMBuildPhi(at_.builder, LLVMTypeOf(x), "carry"));
    const std::vector<LLVMValueRef> next = body(i, inner);
    const LLVMValueRef following = LLVMBuildNSWAdd(at_.builder, i, integer(1), "");
    LLVMBuildCondBr(at_.builder, LLVMBuildICmp(at_.builder, LLVMIntSLT, following, hi, ""), top, after);
    const LLVMBasicBlockRef bottom = here();
    const auto enters = [&](LLVMValueRef into, LLVMValueRef first, LLVMValueRef again) {
      LLVMValueRef values[] = {first, again};
      LLVMBasicBlockRef blocks[] = {before, bottom};
      LLVMAddIncoming(into, values, blocks, 2);
    };
    enters(i, lo, following);
    for (std::size_t c = 0; c < init.size(); ++c) enters(inner[c], init[c], next[c]);
    LLVMPositionBuilderAtEnd(at_.builder, after);
    std::vector<LLVMValueRef> results;
    for (std::size_t c = 0; c < init.size(); ++c) results.push_back(phi(init[c], before, next[c], bottom));
    return results;
  }

  // The value of then() where the condition holds, else of otherwise(); both may give null (statements).
  template <class Then, class Otherwise>
  LLVMValueRef branch(LLVMValueRef condition, Then then, Otherwise otherwise) {
    const LLVMBasicBlockRef yes = new_block("then"), no = new_block("else"), after = new_block("after");
    LLVMBuildCondBr(at_.builder, condition, yes, no);
    LLVMPositionBuilderAtEnd(at_.builder, yes);
    const LLVMValueRef x = then();
    const LLVMBasicBlockRef yes_end = here();
    LLVMBuildBr(at_.builder, after);
    LLVMPositionBuilderAtEnd(at_.builder, no);
    const LLVMValueRef y = otherwise();
    const LLVMBasicBlockRef no_end = here();
    LLVMBuildBr(at_.builder, after);
    LLVMPositionBuilderAtEnd(at_.builder, after);
    return x ? phi(x, yes_end, y, no_end) : nullptr;
  }

  // ---- expressions ----
  LLVMValueRef uniform(ExprId e, int depth = 0) {
    const Value v = value(e, depth);
    COSMATI_CHECK(!v.varies(), "kernel {}: a value varies where it must not", k_.name);
    return v.ref;
  }

  Value value(ExprId e, int depth = 0) {
    if (depth > deepest) too_deep(k_);
    const kernel::Expr& expr = k_[e];
    return std::visit(overloaded{[&](const kernel::Const& c) { return Value{constant(at_, expr.dtype, {c.f, c.i})}; },
                                 [&](const kernel::Id& id) {
                                   if (id.what == kernel::Id::What::lane) return lanes_.lane();
                                   return Value{id.what == kernel::Id::What::group ? group_ : worker_};
                                 },
                                 [&](const kernel::ParamRef& p) { return Value{params_[p.param.index]}; },
                                 [&](const kernel::VarRef& v) {
                                   COSMATI_CHECK(vars_[v.var.index].ref, "kernel {}: {} is read before it is bound", k_.name,
                                                 k_[v.var].name);
                                   return vars_[v.var.index];
                                 },
                                 [&](const kernel::Apply& a) { return operation(expr.dtype, a, depth); },
                                 [&](const kernel::Load& l) { return load(l, depth); },
                                 [&](const kernel::Shuffle& s) {
                                   const Value v = value(s.value, depth + 1);
                                   return s.mask ? lanes_.swap(v, expr.dtype, *s.mask) : lanes_.first(v, expr.dtype);
                                 }},
                      expr.node);
  }

  Value operation(DType result, const kernel::Apply& a, int depth) {
    std::vector<Value> args;
    for (const ExprId arg : a.args) args.push_back(value(arg, depth + 1));
    if (a.op == ops::Op::div && result == DType::f32_ && args[0].varies() && !args[1].varies() && Quotients::pay(lanes_.count()))
      return quotient(args[0].ref, args[1].ref);
    const DType argument = k_[a.args.back()].dtype;
    if (a.op == ops::Op::cast && argument == DType::f32_ && result == DType::bf16_ && args[0].varies() && lanes_.count() == 16)
      return narrowed(args[0].ref);
    return lanes_.apply(a.op, argument, result, args);
  }

  Value narrowed(LLVMValueRef wide) {
    Place all = at_;
    all.lanes = lanes_.count();
    return {branch(
                bf16_instruction_holds(all, wide), [&] { return bf16_by_instruction(all, wide); },
                [&] { return apply(all, ops::Op::cast, DType::f32_, DType::bf16_, {wide}); }),
            Value::Form::vector};
  }

  Value quotient(LLVMValueRef dividend, LLVMValueRef divisor) {
    Place all = at_;
    all.lanes = lanes_.count();
    const Quotients quotients(at_, all, divisor);
    return {branch(
                quotients.hold(dividend), [&] { return quotients.of(dividend); }, [&] { return quotients.divided(dividend); }),
            Value::Form::vector};
  }

  Value load(const kernel::Load& l, int depth) {
    if (!l.guard) return load(l, nullptr, depth);
    if (varying_(*l.guard)) {
      const Value guard = value(*l.guard, depth + 1);
      return load(l, &guard, depth);
    }
    const bool wide = varying_(l.ref.offset) || varying_(*l.otherwise);
    const auto widened = [&](const Value& v) { return wide ? lanes_.vector(v, k_[l.ref.buffer].dtype) : v.ref; };
    const LLVMValueRef merged = branch(
        uniform(*l.guard, depth + 1), [&] { return widened(load(l, nullptr, depth)); },
        [&] { return widened(value(*l.otherwise, depth + 1)); });
    return {merged, wide ? Value::Form::vector : Value::Form::uniform};
  }

  // Elements of a view may lie at any address.
  Value load(const kernel::Load& l, const Value* guard, int depth) {
    const DType t = k_[l.ref.buffer].dtype;
    const LLVMValueRef base = buffers_[l.ref.buffer.index];
    const Value offset = value(l.ref.offset, depth + 1);
    if (guard) {
      const Value otherwise = value(*l.otherwise, depth + 1);
      return lanes_.load(t, base, offset, guard, &otherwise);
    }
    if (offset.varies()) return lanes_.load(t, base, offset, nullptr, nullptr);
    const LLVMTypeRef type = memory_type(at_, t);
    const LLVMValueRef loaded = LLVMBuildLoad2(at_.builder, type, element(type, base, offset.ref), "");
    LLVMSetAlignment(loaded, 1);
    return {is_bool(t) ? LLVMBuildICmp(at_.builder, LLVMIntNE, loaded, LLVMConstNull(type), "") : loaded};
  }

  // ---- tiles ----
  Value place(const kernel::Sum& sum) {
    Value at{integer(0), Value::Form::strided, 0, integer(0)};
    for (const auto& [leaves, coefficient] : sum) {
      LLVMValueRef product = integer(coefficient);
      bool by_lane = false;
      for (const kernel::Leaf& leaf : leaves) {
        using What = kernel::Leaf::What;
        by_lane = by_lane || leaf.what == What::lane;
        if (leaf.what == What::lane) continue;
        const LLVMValueRef factor = leaf.what == What::group   ? group_
                                    : leaf.what == What::param ? params_[leaf.index]
                                                               : vars_[leaf.index].ref;
        product = LLVMBuildMul(at_.builder, product, factor, "");
      }
      LLVMValueRef& into = by_lane ? at.stride : at.ref;
      into = LLVMBuildAdd(at_.builder, into, product, "");
    }
    return at;
  }

  void load(const kernel::Tile& tile) {
    const std::vector<Value> values = lanes_.load_tile(k_[tile.buffer].dtype, buffers_[tile.buffer.index], place(tile.first));
    for (std::size_t i = 0; i < values.size(); ++i) vars_[std::get<kernel::Let>(k_[tile.members[i]].node).var.index] = values[i];
  }

  void store(const kernel::Tile& tile) {
    const DType t = k_[tile.buffer].dtype;
    std::vector<Value> values;
    bool past_caches = false;
    for (const kernel::StmtId s : tile.members) {
      const auto& store = std::get<kernel::Store>(k_[s].node);
      values.push_back(value(store.value));
      past_caches = past_caches || store.past_caches;
    }
    std::vector<Vector> rows;
    for (const auto& [offset, row] : lanes_.rows_of_tile(t, place(tile.first), values))
      rows.push_back({t, buffers_[tile.buffer.index], offset, row});
    if (past_caches) return store_past_caches(rows);
    for (const Vector& row : rows) store(row);
  }

  // ---- statements ----
  void block(const Block& statements) {
    // Loads at the first member and stores at the last: what lies between them touches other elements.
    std::map<kernel::StmtId, const kernel::Tile*> tile_of, tile_at;
    const std::vector<kernel::Tile> tiles = kernel::tiles(k_, sums_, statements, lanes_.count());
    for (const kernel::Tile& tile : tiles) {
      for (const kernel::StmtId s : tile.members) tile_of[s] = &tile;
      const auto in = [&](kernel::StmtId s) {
        return std::find(tile.members.begin(), tile.members.end(), s) != tile.members.end();
      };
      if (std::holds_alternative<kernel::Let>(k_[tile.members[0]].node))
        tile_at[*std::find_if(statements.begin(), statements.end(), in)] = &tile;
      else
        tile_at[*std::find_if(statements.rbegin(), statements.rend(), in)] = &tile;
    }
    std::vector<Vector> together;  // that go past the caches, one after the other
    const auto finish = [&] {
      if (!together.empty()) store_past_caches(together);
      together.clear();
    };
    for (const kernel::StmtId s : statements) {
      if (const auto tile = tile_at.find(s); tile != tile_at.end())
        std::holds_alternative<kernel::Let>(k_[s].node) ? load(*tile->second) : store(*tile->second);
      if (tile_of.contains(s)) continue;
      const auto* past = std::get_if<kernel::Store>(&k_[s].node);
      if (past && past->past_caches && !past->guard && varying_(past->ref.offset)) {
        const DType t = k_[past->ref.buffer].dtype;
        together.push_back({t, buffers_[past->ref.buffer.index], value(past->ref.offset), value(past->value)});
        continue;
      }
      finish();
      statement(s);
    }
    finish();
  }

  void statement(kernel::StmtId s) {
    std::visit(
        overloaded{
            [&](const kernel::Let& let) { vars_[let.var.index] = value(let.value); }, [&](const kernel::For& f) { for_loop(f); },
            [&](const kernel::If& i) {
              branch(uniform(i.condition), [&] { return block(i.then), nullptr; }, [&] { return block(i.otherwise), nullptr; });
            },
            [&](const kernel::Store& s) {
              if (!s.guard || varying_(*s.guard)) return store(s);
              branch(uniform(*s.guard), [&] { return store(s), nullptr; }, [] { return nullptr; });
            },
            [](const kernel::Fence&) { throw InternalError("lanes are together here"); },
            [&](const kernel::Prefetch& p) {
              const LLVMValueRef at =
                  element(memory_type(at_, k_[p.ref.buffer].dtype), buffers_[p.ref.buffer.index], value(p.ref.offset).ref);
              const auto flag = [&](bool on) { return LLVMConstInt(LLVMInt32TypeInContext(at_.context), on, false); };
              // Into the second cache: the nearest is full of what the loop itself uses.
              const LLVMValueRef soon = LLVMConstInt(LLVMInt32TypeInContext(at_.context), 2, false);
              intrinsic(at_, "llvm.prefetch", {pointer()}, {at, flag(p.write), soon, flag(true)});
            }},
        k_[s].node);
  }

  void store(const kernel::Store& s) {
    const DType t = k_[s.ref.buffer].dtype;
    const Value stored = value(s.value), offset = value(s.ref.offset);
    const LLVMValueRef base = buffers_[s.ref.buffer.index];
    if (offset.varies()) {
      if (!s.guard) return store({t, base, offset, stored});
      if (!varying_(*s.guard)) return lanes_.store(t, base, offset, stored, nullptr);
      const Value guard = value(*s.guard);
      return lanes_.store(t, base, offset, stored, &guard);
    }
    const LLVMTypeRef type = memory_type(at_, t);
    LLVMValueRef ref = stored.ref;
    if (is_bool(t)) ref = LLVMBuildZExt(at_.builder, ref, type, "");
    LLVMSetAlignment(LLVMBuildStore(at_.builder, ref, element(type, base, offset.ref)), 1);
  }

  struct Vector {  // one element a lane, on its way to memory
    DType t;
    LLVMValueRef base;
    Value offset, value;
  };
  void store(const Vector& v) { lanes_.store(v.t, v.base, v.offset, v.value, nullptr); }

  // What goes past the caches lies at a multiple of its size: parts of lines would take memory longer than lines through caches.
  void store_past_caches(const std::vector<Vector>& all) {
    constexpr unsigned least = 16;
    const auto bytes = [&](const Vector& v) { return lanes_.count() * static_cast<unsigned>(std::max(1, byte_size(v.t))); };
    const auto through = [&] {
      for (const Vector& v : all) store(v);
      return nullptr;
    };
    if (std::any_of(all.begin(), all.end(), [&](const Vector& v) { return !v.offset.neighbours() || bytes(v) < least; })) {
      through();
      return;
    }
    past_caches_ = true;
    LLVMValueRef beyond = integer(0);
    for (const Vector& v : all) {
      const LLVMValueRef at = LLVMBuildPtrToInt(at_.builder, element(memory_type(at_, v.t), v.base, v.offset.ref), i64(), "");
      beyond = LLVMBuildOr(at_.builder, beyond, LLVMBuildAnd(at_.builder, at, integer(bytes(v) - 1), ""), "");
    }
    const auto past = [&] {
      for (const Vector& v : all) lanes_.store_past_caches(v.t, v.base, v.offset, v.value, bytes(v));
      return nullptr;
    };
    branch(LLVMBuildICmp(at_.builder, LLVMIntEQ, beyond, integer(0), ""), past, through);
  }

  void for_loop(const kernel::For& f) {
    const LLVMValueRef lo = uniform(f.lo), hi = uniform(f.hi);
    // A carried value that varies is a vector from the start.
    const auto carried = [&](const kernel::For::Carry& c, ExprId e) {
      const Value v = value(e);
      return varying_(c.inner) ? lanes_.vector(v, k_[c.inner].dtype) : v.ref;
    };
    const auto bound = [&](const kernel::For::Carry& c, LLVMValueRef ref) {
      return Value{ref, varying_(c.inner) ? Value::Form::vector : Value::Form::uniform};
    };
    std::vector<LLVMValueRef> init;
    for (const auto& carry : f.carries) init.push_back(carried(carry, carry.init));
    const auto results = loop(lo, hi, init, [&](LLVMValueRef i, const std::vector<LLVMValueRef>& inner) {
      vars_[f.var.index] = {i};
      for (std::size_t c = 0; c < inner.size(); ++c) vars_[f.carries[c].inner.index] = bound(f.carries[c], inner[c]);
      block(f.body);
      std::vector<LLVMValueRef> next;
      for (const auto& carry : f.carries) next.push_back(carried(carry, carry.next));
      return next;
    });
    for (std::size_t c = 0; c < results.size(); ++c) vars_[f.carries[c].result.index] = bound(f.carries[c], results[c]);
  }

  // ---- the estimate ----
  // Straight-line code over what is known before the launch: params, and variables computed from them. A loop variable stands at
  // the middle of its range; a loop whose range depends on memory counts as `unknown_trips`.
  static constexpr double unknown_trips = 64, memory_cost = 2, library_cost = 20;

  LLVMValueRef number(double x) const { return LLVMConstReal(real(), x); }
  LLVMValueRef add(LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFAdd(at_.builder, x, y, ""); }

  LLVMValueRef middle(LLVMValueRef lo, LLVMValueRef hi) {
    const LLVMValueRef half = LLVMBuildAShr(at_.builder, LLVMBuildSub(at_.builder, hi, lo, ""), integer(1), "");
    return LLVMBuildAdd(at_.builder, lo, half, "");
  }

  bool known(ExprId e, int depth = 0) const {
    return std::visit(overloaded{[&](const kernel::VarRef& v) { return vars_[v.var.index].ref != nullptr; },
                                 [&](const kernel::Load&) { return false; }, [&](const kernel::Shuffle&) { return false; },
                                 [&](const kernel::Apply& a) {
                                   return depth < deepest &&
                                          std::all_of(
                                              a.args.begin(), a.args.end(), [&](ExprId x) { return known(x, depth + 1); });
                                 },
                                 [](const auto&) { return true; }},
                      k_[e].node);
  }

  double operations(ExprId e, int depth = 0) const {
    if (depth > deepest) return 0;
    return std::visit(
        overloaded{[&](const kernel::Load& l) { return memory_cost + operations(l.ref.offset, depth + 1); },
                   [&](const kernel::Apply& a) {
                     const auto& rows = library_functions();
                     double sum =
                         std::any_of(rows.begin(), rows.end(), [&](auto& row) { return row.op == a.op; }) ? library_cost : 1;
                     for (const ExprId x : a.args) sum += operations(x, depth + 1);
                     return sum;
                   },
                   [&](const kernel::Shuffle& s) { return 1 + operations(s.value, depth + 1); }, [](const auto&) { return 0.0; }},
        k_[e].node);
  }

  LLVMValueRef cost(const Block& statements) {
    LLVMValueRef sum = number(1);
    for (const kernel::StmtId s : statements)
      std::visit(overloaded{[&](const kernel::Let& let) {
                              if (known(let.value)) vars_[let.var.index] = value(let.value);
                              sum = add(sum, number(operations(let.value)));
                            },
                            [&](const kernel::If& i) { sum = add(sum, add(cost(i.then), cost(i.otherwise))); },
                            [&](const kernel::Store& s) {
                              sum = add(sum, number(memory_cost + operations(s.value) + operations(s.ref.offset)));
                            },
                            [](const kernel::Prefetch&) {}, [](const kernel::Fence&) {},
                            [&](const kernel::For& f) { sum = add(sum, cost(f)); }},
                 k_[s].node);
    return sum;
  }

  LLVMValueRef cost(const kernel::For& f) {
    LLVMValueRef trips = number(unknown_trips);
    if (known(f.lo) && known(f.hi)) {
      const LLVMValueRef lo = uniform(f.lo), hi = uniform(f.hi);
      const LLVMValueRef span = LLVMBuildSub(at_.builder, hi, lo, ""), empty = LLVMBuildICmp(at_.builder, LLVMIntSLE, hi, lo, "");
      trips = LLVMBuildSIToFP(at_.builder, LLVMBuildSelect(at_.builder, empty, integer(0), span, ""), real(), "");
      vars_[f.var.index] = {middle(lo, hi)};
    }
    LLVMValueRef once = cost(f.body);
    for (const auto& carry : f.carries) once = add(once, number(1 + operations(carry.next)));
    return LLVMBuildFMul(at_.builder, trips, once, "");
  }

  const kernel::Kernel& k_;
  const kernel::Varying varying_;
  const kernel::Sums sums_;
  Place at_;
  Lanes lanes_;
  LLVMValueRef function_ = nullptr, group_ = nullptr, worker_ = nullptr;
  std::vector<LLVMValueRef> params_, buffers_;  // by id; buffers: the address of the origin
  std::vector<Value> vars_;                     // by id; without a ref where not known
  bool past_caches_ = false;                    // some store of the function goes there
};

}  // namespace

void generate(const kernel::Kernel& k, const std::string& prefix, LLVMModuleRef module) {
  check_depth(k);
  Writer writer(k, module);
  for (std::size_t i = 0; i < k.phases.size(); ++i) {
    writer.phase(k.phases[i], native::phase_symbol(prefix, i));
    writer.size(k.phases[i], native::size_symbol(prefix, i));
  }
}

}  // namespace cosmati::cpu
