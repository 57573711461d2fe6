// A program under construction, with short spellings, for tests of the builder.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/describe.h"

namespace cosmati::ir {

class Building : public testing::Test {
 protected:
  Builder b{"p"};
  int line = 1;

  Where at() { return {"t.tile", line, 1}; }
  AxisId axis(const std::string& name) { return b.axis(name, at()); }
  TensorId tensor(const std::string& name, Access access, DType t, const std::vector<AxisId>& axes) {
    std::vector<Dim> dims;
    for (AxisId a : axes) dims.push_back({{a, 0}});
    return b.tensor(name, access, t, dims, at());
  }
  TensorId in(const std::string& name, DType t, const std::vector<AxisId>& axes) { return tensor(name, Access::in, t, axes); }
  TensorId out(const std::string& name, DType t, const std::vector<AxisId>& axes) { return tensor(name, Access::out, t, axes); }
  ValueId bare(TensorId t) { return b.bare(t, at()); }
  ValueId i(std::int64_t n) { return b.literal(n); }
  ValueId f(double x) { return b.literal(x); }
  ValueId op(ops::Op op, std::vector<ValueId> args) { return b.elementwise(op, std::move(args), at()); }
  ValueId reduce(const std::string& name, ValueId x, std::vector<AxisId> axes) {
    return b.reduce(*b.builtin(name, {x}, at()), {x}, std::move(axes), {}, at())[0];
  }
  ValueId coord(AxisId a) { return b.coordinate(a, at()); }
  std::vector<Index> index(const std::vector<AxisId>& axes) {
    std::vector<Index> list;
    for (AxisId a : axes) list.push_back({coord(a)});
    return list;
  }
  void store(TensorId t, const std::vector<AxisId>& axes, ValueId v) { b.store(t, index(axes), v, at()); }
  DType type(ValueId v) { return b[v].dtype; }

  // The error that `action` throws must have this code and contain each text.
  void refused(ErrorCode code, const std::function<void()>& action, const std::vector<std::string>& texts = {}) {
    try {
      action();
    } catch (const Error& e) {
      EXPECT_EQ(name(e.code), name(code)) << e.what();
      for (const std::string& text : texts)
        EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what() << "\nlacks: " << text;
      return;
    }
    ADD_FAILURE() << "nothing was refused; expected " << name(code);
  }
};

}  // namespace cosmati::ir
