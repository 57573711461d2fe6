// One broken kernel a law, built through the arenas; each differs from a lawful kernel by one edit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include <cosmati/error.h>

#include "kernel/kernel.h"

namespace cosmati::kernel {
namespace {

using ops::Op;

// y[group] = the sum of x[j] for j in 0 .. n, where above is the last of them or 0.
struct Lawful {
  Kernel k;
  ExprId load, add, size, groups, condition, guard, otherwise, one;
  StmtId let, loop, branch, store;
  VarId bound, j, inner, result;

  Lawful() {
    Builder b(k);
    k.name = "k";
    k.params.push_back({Param::Source::extent, 0, 0, "n", DType::i64_});
    k.params.push_back({Param::Source::scalar, 0, 0, "scale", DType::f32_});
    size = b.apply(Op::mul, {b.param(ParamId{0}), b.integer(2)});
    groups = b.param(ParamId{0});
    k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::read, 0, {}, "x", DType::f32_});
    k.buffers.push_back({Buffer::Kind::argument, Buffer::Access::write, 1, {}, "y", DType::f32_});
    k.buffers.push_back({Buffer::Kind::worker_scratch, Buffer::Access::read_write, 0, size, "s", DType::f32_});
    bound = b.fresh("bound", DType::i64_);
    let = b.statement(Let{bound, b.apply(Op::sub, {b.param(ParamId{0}), b.integer(1)})});
    j = b.fresh("j", DType::i64_), inner = b.fresh("inner", DType::f32_), result = b.fresh("result", DType::f32_);
    guard = b.apply(Op::lt, {b.var(j), b.var(bound)});
    otherwise = b.constant(DType::f32_, 0);
    load = b.load(BufferId{0}, b.var(j), guard, otherwise);
    add = b.apply(Op::add, {b.var(inner), load});
    one = b.constant(DType::f32_, 1);
    loop = b.statement(For{j, b.integer(0), b.param(ParamId{0}), {{inner, result, one, add}}, {}});
    Block stores;
    b.store(stores, BufferId{1}, b.group(), b.var(result));
    store = stores[0];
    condition = b.apply(Op::gt, {b.var(result), b.constant(DType::f32_, 0)});
    branch = b.statement(If{condition, stores, {}});
    k.phases.push_back({"main", groups, {let, loop, branch}});
  }
  Builder builder() { return Builder(k); }
  template <class T>
  T& stmt(StmtId s) {
    return std::get<T>(k.stmts[s.index].node);
  }
  template <class T>
  T& expr(ExprId e) {
    return std::get<T>(k.exprs[e.index].node);
  }
};

void breaks(const std::string& law, const std::function<void(Lawful&)>& edit) {
  Lawful l;
  edit(l);
  try {
    verify(l.k, "some_pass");
    ADD_FAILURE() << law << " was not noticed";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("some_pass: kernel"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(": " + law + ": "), std::string::npos) << e.what();
  }
}

TEST(Verifier, AcceptsTheLawfulKernel) {
  const Lawful l;
  EXPECT_NO_THROW(verify(l.k, "some_pass"));
  EXPECT_EQ(print(parse(print(l.k))), print(l.k));
}

TEST(Verifier, K1Names) {
  breaks("K1", [](Lawful& l) { l.k.name = "two words"; });
  breaks("K1", [](Lawful& l) { l.k.vars[0].name = "group"; });
  breaks("K1", [](Lawful& l) { l.k.vars[0].name = "x"; });
  breaks("K1", [](Lawful& l) { l.k.params[1].name = "n"; });
  breaks("K1", [](Lawful& l) { l.k.buffers[0].name = "inf_f32"; });
  breaks("K1", [](Lawful& l) { l.k.phases.push_back({"main", l.builder().integer(1), {}}); });
}

TEST(Verifier, K2Ids) {
  breaks("K2", [](Lawful& l) { l.expr<Apply>(l.add).args[1] = ExprId{}; });
  breaks("K2", [](Lawful& l) { l.expr<Load>(l.load).ref.buffer = BufferId{9}; });
  breaks("K2", [](Lawful& l) { l.k.exprs[l.groups.index].node = ParamRef{{7}}; });
  breaks("K2", [](Lawful& l) { l.stmt<Let>(l.let).var = VarId{}; });
  breaks("K2", [](Lawful& l) { l.k.phases[0].body.push_back(StmtId{99}); });
  breaks("K2", [](Lawful& l) { l.k.buffers[2].elements = {}; });
}

TEST(Verifier, K3OneDefinition) {
  breaks("K3", [](Lawful& l) {
    Builder b = l.builder();
    l.k.phases[0].body.push_back(b.statement(Let{l.bound, b.integer(1)}));
  });
  breaks("K3", [](Lawful& l) { l.stmt<For>(l.loop).carries[0].result = l.inner; });
  breaks("K3", [](Lawful& l) { l.stmt<For>(l.loop).var = l.bound; });
}

TEST(Verifier, K4Scope) {
  breaks("K4", [](Lawful& l) { std::swap(l.k.phases[0].body[0], l.k.phases[0].body[1]); });
  breaks("K4", [](Lawful& l) { l.stmt<Store>(l.store).value = l.builder().var(l.inner); });
  breaks("K4", [](Lawful& l) { l.stmt<Store>(l.store).ref.offset = l.builder().var(l.j); });
  breaks("K4", [](Lawful& l) { l.stmt<For>(l.loop).carries[0].init = l.builder().var(l.result); });
  breaks("K4", [](Lawful& l) { l.stmt<For>(l.loop).hi = l.builder().var(l.j); });
  breaks("K4", [](Lawful& l) {
    Builder b = l.builder();
    l.k.phases.push_back({"second", b.integer(1), {b.statement(Let{b.fresh("w", DType::i64_), b.var(l.bound)})}});
  });
}

TEST(Verifier, K5OneUse) {
  breaks("K5", [](Lawful& l) { l.k.phases[0].groups = l.size; });
  breaks("K5", [](Lawful& l) { l.stmt<If>(l.branch).otherwise = {l.store}; });
  breaks("K5", [](Lawful& l) { l.expr<Apply>(l.add).args[1] = l.add; });
}

TEST(Verifier, K6Typing) {
  breaks("K6", [](Lawful& l) { l.expr<Apply>(l.add).args.pop_back(); });
  breaks("K6", [](Lawful& l) { l.expr<Apply>(l.add).args[0] = l.builder().integer(1); });
  breaks("K6", [](Lawful& l) { l.k.exprs[l.add.index].dtype = DType::f64_; });
  breaks("K6", [](Lawful& l) { l.k.exprs[l.guard.index].dtype = DType::i64_; });
  breaks("K6", [](Lawful& l) { l.expr<Apply>(l.add).op = Op::floordiv; });
  breaks("K6", [](Lawful& l) { l.expr<Apply>(l.size).op = Op::div; });
  const auto bind = [](Op op, DType t, std::vector<DType> args) {
    return [=](Lawful& l) {
      Builder b = l.builder();
      std::vector<ExprId> values;
      for (DType a : args) values.push_back(is_float(a) ? b.constant(a, 1) : is_bool(a) ? b.boolean(true) : b.integer(1, a));
      l.k.exprs.push_back({Apply{op, values}, t});
      const ExprId e{static_cast<std::uint32_t>(l.k.exprs.size() - 1)};
      l.k.phases[0].body.push_back(b.statement(Let{b.fresh("w", t), e}));
    };
  };
  breaks("K6", bind(Op::add, DType::f16_, {DType::f16_, DType::f16_}));
  breaks("K6", bind(Op::mul, DType::u8_, {DType::u8_, DType::u8_}));
  breaks("K6", bind(Op::add, DType::bool_, {DType::bool_, DType::bool_}));
  breaks("K6", bind(Op::logical_and, DType::bool_, {DType::i64_, DType::i64_}));
  breaks("K6", bind(Op::is_nan, DType::bool_, {DType::i32_}));
  breaks("K6", bind(Op::where, DType::f32_, {DType::i64_, DType::f32_, DType::f32_}));
  breaks("K6", bind(Op::bits, DType::u32_, {DType::f64_}));
  Lawful l;
  bind(Op::where, DType::f16_, {DType::bool_, DType::f16_, DType::f16_})(l);
  bind(Op::cast, DType::f32_, {DType::f8e4m3_})(l);
  EXPECT_NO_THROW(verify(l.k, "some_pass"));
}

TEST(Verifier, K7Constants) {
  breaks("K7", [](Lawful& l) { l.expr<Const>(l.one).f = 0.1; });
  breaks("K7", [](Lawful& l) {
    Builder b = l.builder();
    const ExprId e = b.integer(1, DType::u8_);
    l.expr<Const>(e).i = 256;
    l.k.phases[0].body.push_back(b.statement(Let{b.fresh("w", DType::u8_), e}));
  });
  breaks("K7", [](Lawful& l) {
    const ExprId e = l.builder().boolean(true);
    l.expr<Const>(e).i = 2;
    l.stmt<If>(l.branch).condition = e;
  });
}

TEST(Verifier, K8References) {
  breaks("K8", [](Lawful& l) { l.k.exprs[l.groups.index].dtype = DType::i32_; });
  breaks("K8", [](Lawful& l) { l.k.exprs[l.stmt<Store>(l.store).value.index].dtype = DType::f64_; });
  breaks("K8", [](Lawful& l) { l.k.exprs[l.stmt<Store>(l.store).ref.offset.index].dtype = DType::i32_; });
}

TEST(Verifier, K9ElementTypes) {
  breaks("K9", [](Lawful& l) { l.expr<Load>(l.load).ref.offset = l.builder().integer(0, DType::i32_); });
  breaks("K9", [](Lawful& l) { l.k.buffers[0].dtype = DType::f16_; });
  breaks("K9", [](Lawful& l) { l.k.buffers[1].dtype = DType::f16_; });
}

TEST(Verifier, K10Access) {
  breaks("K10", [](Lawful& l) { l.k.buffers[0].access = Buffer::Access::write; });
  breaks("K10", [](Lawful& l) { l.k.buffers[1].access = Buffer::Access::read; });
}

TEST(Verifier, K11Guards) {
  breaks("K11", [](Lawful& l) { l.expr<Load>(l.load).otherwise.reset(); });
  breaks("K11", [](Lawful& l) { l.expr<Load>(l.load).guard.reset(); });
  breaks("K11", [](Lawful& l) { l.expr<Load>(l.load).otherwise = l.builder().integer(0); });
  breaks("K11", [](Lawful& l) { l.stmt<Store>(l.store).guard = l.builder().integer(1); });
}

TEST(Verifier, K12Loops) {
  breaks("K12", [](Lawful& l) { l.stmt<For>(l.loop).hi = l.builder().integer(3, DType::i32_); });
  breaks("K12", [](Lawful& l) { l.stmt<For>(l.loop).carries[0].init = l.builder().integer(0); });
  breaks("K12", [](Lawful& l) { l.stmt<For>(l.loop).carries[0].next = l.builder().integer(0); });
  breaks("K12", [](Lawful& l) { l.k.vars[l.result.index].dtype = DType::f64_; });
}

TEST(Verifier, K13Conditions) {
  breaks("K13", [](Lawful& l) { l.stmt<If>(l.branch).condition = l.builder().integer(1); });
}

TEST(Verifier, K14Sizes) {
  breaks("K14", [](Lawful& l) { l.k.phases[0].groups = l.builder().group(); });
  breaks("K14", [](Lawful& l) { l.k.phases[0].groups = l.builder().boolean(true); });
  breaks("K14", [](Lawful& l) { l.k.buffers[0].elements = l.builder().integer(4); });
  breaks("K14", [](Lawful& l) {
    Builder b = l.builder();
    l.k.buffers[2].elements = b.cast(DType::i64_, b.param(ParamId{1}));
  });
}

TEST(Verifier, K15Lets) {
  breaks("K15", [](Lawful& l) { l.stmt<Let>(l.let).value = l.builder().constant(DType::f32_, 1); });
}

TEST(Verifier, K16Params) {
  breaks("K16", [](Lawful& l) { l.k.params[1] = {Param::Source::stride, 0, 0, "scale", DType::f32_}; });
}

TEST(Verifier, K17Lanes) {
  for (int lanes : {0, 3, 48, 1056}) breaks("K17", [&](Lawful& l) { l.k.phases[0].lanes = lanes; });
  breaks("K17", [](Lawful& l) {
    l.k.phases[0].lanes = 4;
    l.stmt<Let>(l.let).value = l.builder().swap(l.builder().group(), 4);
  });
}

TEST(Verifier, K18WhatSteersAGroupIsUniform) {
  const auto with_lanes = [](const std::function<void(Lawful&)>& edit) {
    breaks("K18", [&](Lawful& l) {
      l.k.phases[0].lanes = 4;
      edit(l);
    });
  };
  with_lanes([](Lawful& l) { l.stmt<For>(l.loop).hi = l.builder().lane(); });
  with_lanes([](Lawful& l) { l.stmt<For>(l.loop).carries[0].init = l.builder().cast(DType::f32_, l.builder().lane()); });
  with_lanes([](Lawful& l) { l.stmt<Let>(l.let).value = l.builder().lane(); });
}

}  // namespace
}  // namespace cosmati::kernel
