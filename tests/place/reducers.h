// A program that is nothing but reducers, for the rules that ask about them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/program.h"

namespace cosmati::place::test {

// `pairs` has two states; `words` merges in order only, as joining texts does.
constexpr ir::ReducerId sum{0}, max{1}, mean{2}, pairs{3}, words{4};

inline ir::Program reducers() {
  ir::Program p;
  p.values.push_back({ir::Arg{0}, DType::f32_});
  p.values.push_back({ir::Elementwise{ops::Op::div, {ir::ValueId{0}, ir::ValueId{0}}}, DType::f32_});
  const auto add = [&](const char* name, std::optional<ops::Op> fold, std::size_t states, std::uint32_t shown, bool commutative) {
    ir::Reducer r;
    r.name = name;
    r.state_types.assign(states, DType::f32_);
    r.finish.results = {ir::ValueId{shown}};
    r.fold = fold;
    r.commutative = commutative;
    p.reducers.push_back(r);
  };
  add("sum", ops::Op::add, 1, 0, true);
  add("max", ops::Op::maximum, 1, 0, true);
  add("mean", ops::Op::add, 1, 1, true);
  add("pairs", std::nullopt, 2, 0, true);
  add("words", std::nullopt, 1, 0, false);
  return p;
}

}  // namespace cosmati::place::test
