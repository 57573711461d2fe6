// Walks integer arguments in row-major order, so the element named is the first one in the order people read.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/contracts.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/describe.h"
#include "support/check.h"

namespace cosmati::oracle {

namespace {

// ` (extent of col in x)` for a bound that is an extent, with the first tensor that has the axis.
std::string origin_of(const ir::Program& p, ir::ValueId bound) {
  ir::ValueId v = bound;
  while (const auto* e = std::get_if<ir::Elementwise>(&p[v].node)) {
    if (e->op != ops::Op::cast) return {};
    v = e->args[0];
  }
  const auto* extent = std::get_if<ir::Extent>(&p[v].node);
  if (!extent) return {};
  for (const ir::Tensor& t : p.tensors)
    for (const ir::Dim& dim : t.dims)
      for (const ir::Factor& f : dim)
        if (f.axis == extent->axis) return fmt::format(" (extent of {} in {})", p[f.axis].name, t.name);
  return fmt::format(" (extent of {})", p[extent->axis].name);
}

// "w is -1, extent(n) is 5": the scalars and extents that a condition speaks of, in the order of its text.
std::string values_behind(Interpreter& interpreter, ir::ValueId condition) {
  const ir::Program& p = interpreter.program();
  std::vector<ir::ValueId> left{condition};
  std::unordered_set<ir::ValueId> seen;
  std::string text;
  while (!left.empty()) {
    const ir::ValueId v = left.back();
    left.pop_back();
    if (!seen.insert(v).second) continue;
    const std::vector<ir::ValueId> operands = ir::operands(p[v].node);
    left.insert(left.end(), operands.rbegin(), operands.rend());
    if (!std::holds_alternative<ir::ScalarRef>(p[v].node) && !std::holds_alternative<ir::Extent>(p[v].node)) continue;
    const Num value = interpreter.eval(v)->at(0);
    const std::string number = is_float(p[v].dtype)  ? fmt::format("{}", value.f)
                               : is_bool(p[v].dtype) ? (value.i ? "true" : "false")
                                                     : fmt::format("{}", value.i);
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", ir::describe_expression(p, v), number);
  }
  return text;
}

struct Limits {
  std::int64_t lo, hi;
};

void check_tensor(Interpreter& interpreter, const ir::Tensor& tensor, const TensorView& view) {
  const ir::Program& p = interpreter.program();
  const ir::Contract& contract = tensor.contract;
  const auto bound = [&](const std::optional<ir::ValueId>& v, std::int64_t none) {
    return v ? interpreter.eval(*v)->at(0).i : none;
  };
  const Limits limits{bound(contract.lo, std::numeric_limits<std::int64_t>::min()),
                      bound(contract.hi, std::numeric_limits<std::int64_t>::max())};
  const std::size_t rank = view.shape.size();
  std::vector<std::int64_t> strides = view.strides, at(rank, 0);
  if (strides.empty()) {
    strides.assign(rank, 1);
    for (std::size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * view.shape[d];
  }
  for (const std::int64_t n : view.shape)
    if (n <= 0) return;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> seen;
  std::int64_t previous = 0;
  const auto broken = [&](std::string what) { throw Error(ErrorCode::contract_broken, tensor.where, std::move(what)); };
  while (true) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < rank; ++d) offset += at[d] * strides[d];
    const std::int64_t v = ops::load(view.dtype, static_cast<const char*>(view.data) + offset * byte_size(view.dtype)).i;
    const std::string element =
        v < limits.lo || v >= limits.hi || contract.sorted || contract.distinct ? element_text(tensor.name, at) : "";
    if (v < limits.lo || v >= limits.hi) {
      const std::string lo = contract.lo ? std::to_string(limits.lo) : "", hi = contract.hi ? std::to_string(limits.hi) : "";
      broken(fmt::format("{} = {} is outside {} .. {}{}", element, v, lo, hi, contract.hi ? origin_of(p, *contract.hi) : ""));
    }
    if (contract.sorted && rank > 0 && at.back() > 0 && v < previous) {
      auto before = at;
      --before.back();
      broken(fmt::format("{} = {} is less than {} = {}, but {} is sorted", element, v, element_text(tensor.name, before),
                         previous, tensor.name));
    }
    if (contract.distinct) {
      const auto [first, fresh] = seen.emplace(v, at);
      if (!fresh)
        broken(fmt::format("{} = {} is also {}, but {} is distinct", element, v, element_text(tensor.name, first->second),
                           tensor.name));
    }
    previous = v;
    std::size_t d = rank;
    while (d > 0 && ++at[d - 1] == view.shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

void check_contracts(Interpreter& interpreter, const Inputs& inputs) {
  const ir::Program& p = interpreter.program();
  for (const auto& [condition, where] : p.requires_) {
    const Ref holds = interpreter.eval(condition);
    COSMATI_CHECK(holds->dims.empty(), "a require has axes");
    if (!holds->i[0]) {
      const std::string text = ir::describe_expression(p, condition), values = values_behind(interpreter, condition);
      throw Error(ErrorCode::contract_broken, where,
                  values.empty() ? fmt::format("require {} does not hold", text)
                                 : fmt::format("require {} does not hold: {}", text, values),
                  fmt::format("pass arguments with {}", text));
    }
  }
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    const ir::Contract& c = p.tensors[t].contract;
    if (p.tensors[t].access == ir::Access::out || !(c.lo || c.hi || c.sorted || c.distinct)) continue;
    check_tensor(interpreter, p.tensors[t], inputs.tensors.at(t));
  }
}

void check_contracts(const ir::Program& program, const Inputs& inputs) {
  const Options options;
  Interpreter interpreter(program, inputs, options);
  check_contracts(interpreter, inputs);
}

}  // namespace cosmati::oracle
