// An operand agrees with the result if it stays with its worker; what it holds on the segments that no axis uses decides whether
// the result is whole there.
// SPDX-License-Identifier: Apache-2.0
#include "place/join.h"

#include <fmt/format.h>

#include <algorithm>

namespace cosmati::place {
namespace {

using ops::Op;

enum class Types { any, floats };
struct Row {
  Op fold, op;
  std::string_view arguments;
  Types types;
};
constexpr Row rows[] = {
#define PASSES(fold, op, arguments, types) {Op::fold, Op::op, arguments, Types::types},
#include "place/passes.def"
#undef PASSES
};

bool selects(Op op, std::string_view arguments) { return op == Op::where && arguments == "spp"; }

// The state of a one-state reducer is what the user sees, so that an operation on its result is one on its parts.
bool shows_its_state(const ir::Program& program, const ir::Reducer& r) {
  if (r.state_types.size() != 1 || r.finish.results.size() != 1) return false;
  const auto* state = std::get_if<ir::Arg>(&program[r.finish.results[0]].node);
  return state && state->slot == 0;
}

std::string text(const Segment& s) { return fmt::format("({}, {}, {})", name(s.res), s.pos, s.size); }

}  // namespace

bool passes(Op fold, Op op, std::string_view arguments, DType type) {
  if (selects(op, arguments)) return true;
  return std::any_of(std::begin(rows), std::end(rows), [&](const Row& row) {
    return row.fold == fold && row.op == op && row.arguments == arguments && (row.types == Types::any || is_float(type));
  });
}

bool passes(const ir::Program& program, ir::ReducerId reducer, Op op, std::string_view arguments, DType type) {
  const ir::Reducer& r = program[reducer];
  return shows_its_state(program, r) && (selects(op, arguments) || (r.fold && passes(*r.fold, op, arguments, type)));
}

Verdict settles_after(const ir::Program& program, ir::ReducerId reducer, const std::vector<PassingUse>& uses) {
  for (const PassingUse& use : uses)
    if (!passes(program, reducer, use.op, use.arguments, use.type))
      return Refused{Reason::does_not_pass, program[reducer].name, fmt::format("{}({})", ops::name(use.op), use.arguments)};
  return Legal{};
}

Result<Joined> join(const ir::Program& program, Op op, DType type, const std::vector<Placement>& operands,
                    const Extents& extents) {
  Joined joined;
  for (const Placement& p : operands)
    for (const AxisMap& map : p.axes)
      if (!joined.result.find(map.axis)) joined.result.axes.push_back(map);

  Result<std::vector<Segment>> finest = segments(operands);
  if (!finest) return finest.refused();
  for (const Segment& s : *finest) {
    Result<Use> result = use_of({joined.result.axes, {}}, s);
    if (!result) return result.refused();
    std::string arguments;
    Use held;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      Result<Use> use = use_of(operands[k], s);
      if (!use) return use.refused();
      const bool part = !use->digit && use->held == Held::part, first = !use->digit && use->held == Held::first;
      const std::string where = fmt::format("operand {}", k);
      if (result->digit && part) return Refused{Reason::unsettled, where, text(s)};
      if (result->digit && first) return Refused{Reason::not_first, where, text(s)};
      arguments += part ? 'p' : 's';
      if (!part && !first) continue;
      if (held.held != Held::same && *use != held) return Refused{Reason::unsettled, where, text(s)};
      held = *use;
    }
    if (result->digit) continue;
    if (held.held == Held::part && !passes(program, held.reducer, op, arguments, type))
      return Refused{Reason::does_not_pass, text(s),
                     fmt::format("{}({}) of {}", ops::name(op), arguments, program[held.reducer].name)};
    joined.result.rest.push_back(free_segment(s.res, s.pos, s.size, held.held, held.reducer));
  }
  joined.result = normal_form(std::move(joined.result));

  // What is held on free segments is settled above: the axes are left.
  for (const Placement& p : operands) {
    Result<Travel> t = stays({p.axes, {}}, {joined.result.axes, {}}, extents);
    if (!t) return t.refused();
    joined.renamed.push_back(t->registers || t->steps);
  }
  return joined;
}

}  // namespace cosmati::place
