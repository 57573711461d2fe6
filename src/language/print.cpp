// The printed program: head, reducers, then lets, stores and streams in the order in which they are needed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "language/printer.h"
#include "language/source.h"
#include "support/check.h"
#include "support/deep_stack.h"
#include "support/overloaded.h"

namespace cosmati::language {

using ir::AxisId;
using ir::StreamId;
using ir::ValueId;

namespace {

std::string join(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

std::string binding(const std::string& name, const std::string& value) { return fmt::format("{} = {}", name, value); }

// A literal alone takes f32 or i64, so only those need no cast where nothing else gives the type.
Context alone(DType dtype) { return dtype == DType::f32_ || dtype == DType::i64_ ? Context::pinned : Context::free; }

bool is_zero(const ir::Program& p, ValueId v) {
  const auto* c = std::get_if<ir::Const>(&p[v].node);
  return c && is_int(p[v].dtype) && c->i == 0;
}

}  // namespace

// ---- the head ----

std::string Printer::dim(const ir::Dim& dim) const {
  std::vector<std::string> factors;
  for (const ir::Factor& f : dim) {
    if (!f.axis)
      factors.push_back(std::to_string(f.offset));
    else if (f.offset == 0)
      factors.push_back(name_of(f.axis));
    else
      factors.push_back(fmt::format("{} {} {}", name_of(f.axis), f.offset < 0 ? '-' : '+', f.offset < 0 ? -f.offset : f.offset));
  }
  return factors.size() == 1 ? factors[0] : fmt::format("({})", join(factors));
}

std::string Printer::contract_of(const ir::Tensor& tensor) {
  std::string text;
  const ir::Contract& c = tensor.contract;
  if (c.lo && c.hi) text += fmt::format(" in {} .. {}", expr(*c.lo, Context::index), expr(*c.hi, Context::index));
  if (c.sorted) text += " sorted";
  if (c.distinct) text += " distinct";
  return text;
}

std::string Printer::parameters() {
  constexpr const char* access_names[] = {"in", "out", "inout"};
  std::vector<std::string> list;
  for (const auto& [is_tensor, at] : p_.parameters) {
    if (is_tensor) {
      const ir::Tensor& t = p_.tensors[at];
      std::vector<std::string> dims;
      for (const ir::Dim& d : t.dims) dims.push_back(dim(d));
      list.push_back(fmt::format("{} {}: {}[{}]{}", access_names[static_cast<int>(t.access)], t.name, name(t.dtype), join(dims),
                                 contract_of(t)));
    } else {
      const ir::Scalar& s = p_.scalars[at];
      list.push_back(fmt::format("{}: {}{}", s.name, name(s.dtype), s.fallback ? " = " + expr(*s.fallback, Context::store) : ""));
    }
  }
  return join(list);
}

std::string Printer::axis_range(AxisId id) {
  const ir::Axis& axis = p_[id];
  const std::string hi = expr(*axis.hi, Context::index);
  if (is_zero(p_, *axis.lo)) return fmt::format("axis {} = {}", name_of(id), hi);
  return fmt::format("axis {} in {} .. {}", name_of(id), expr(*axis.lo, Context::index), hi);
}

// ---- reducers ----

std::string Printer::merge_binds(const ir::Lambda& merge, const std::vector<std::string>& states) {
  LambdaNames names;
  for (const char* side : {"a", "b"})
    for (const std::string& state : states) names.args.push_back(fmt::format("{}.{}", side, state));
  lambda_ = &names;
  std::vector<std::string> binds;
  std::vector<bool> done(states.size(), false);
  auto add = [&](const std::string& name, ValueId value) {
    binds.push_back(binding(name, expr(value, Context::free)));
    names.bound.emplace_back(value, name);
  };
  NamePool pool;
  for (const std::string& state : states) pool.reserve(state);
  for (const auto& [name, value] : merge.lets) {
    const auto at = std::find(states.begin(), states.end(), name) - states.begin();
    const auto state = static_cast<std::size_t>(at);
    if (state == states.size()) {
      add(pool.claim(name), value);
    } else if (!done[state]) {
      done[state] = true;
      add(name, merge.results[state]);
    }
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    if (!done[i]) add(states[i], merge.results[i]);
  lambda_ = nullptr;
  return join(binds);
}

std::string Printer::reducer(ir::ReducerId id) {
  const ir::Reducer& r = p_[id];
  NamePool pool, state_pool;
  std::vector<std::string> args, states;
  for (const std::string& name : r.arg_names) args.push_back(pool.claim(name));
  for (const std::string& name : r.state_names) states.push_back(state_pool.claim(name));
  auto binds = [&](const ir::Lambda& lambda, const std::vector<std::string>& names, bool typed_elsewhere) {
    LambdaNames scope{names, {}};
    lambda_ = &scope;
    std::vector<std::string> list;
    for (std::size_t i = 0; i < states.size(); ++i)
      list.push_back(binding(states[i], expr(lambda.results[i], typed_elsewhere ? Context::pinned : alone(r.state_types[i]))));
    lambda_ = nullptr;
    return join(list);
  };
  std::string text = fmt::format("reducer {}({}) {{\n", reducer_names_[id.index], join(args));
  text += fmt::format("  identity {}\n", binds(r.identity, {}, true));
  text += fmt::format("  lift {}\n", binds(r.lift, args, false));
  text += fmt::format("  merge {}\n", merge_binds(r.merge, states));
  LambdaNames scope{states, {}};
  lambda_ = &scope;
  std::vector<std::string> results;
  for (ValueId v : r.finish.results) results.push_back(expr(v, alone(p_[v].dtype)));
  lambda_ = nullptr;
  return text + fmt::format("  finish {}\n}}\n", results.size() == 1 ? results[0] : fmt::format("({})", join(results)));
}

// ---- the region ----

void Printer::line(StreamId home, std::string text) {
  for (Block& block : blocks_)
    if (block.stream == home) {
      block.lines.push_back(std::move(text));
      return;
    }
  COSMATI_CHECK(false, "a value is printed outside the stream that it belongs to");
}

void Printer::need_axis(AxisId id) {
  id = outside(id);
  if (axis_ready_[id.index]) return;
  axis_ready_[id.index] = true;
  if (range_axes(p_, id).empty()) return;  // in the head
  const ir::Axis& axis = p_[id];
  need(*axis.lo);
  need(*axis.hi);
  line(inner(homes_[axis.lo->index], homes_[axis.hi->index]), axis_range(id));
}

// Prints the lets that v is made of, then v's own if it is one.
void Printer::need(ValueId v) {
  if (ready_[v.index]) return;
  ready_[v.index] = true;
  if (const auto* coord = std::get_if<ir::Coord>(&p_[v].node)) need_axis(coord->axis);
  if (const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node))
    for (AxisId axis : reduce->axes) need_axis(axis);
  const auto* part = std::get_if<ir::Part>(&p_[v].node);
  if (const auto* stream = part ? std::get_if<StreamId>(&part->of) : nullptr) return need_stream(*stream);
  if (const auto* replace = std::get_if<ir::Replace>(&p_[v].node))
    for (const auto& [axis, to] : replace->binds) need_axis(axis);
  for (ValueId operand : ir::operands(p_[v].node)) need(operand);

  auto claim = [&](ValueId value) {
    const auto at = user_names_.find(value);
    bound_[value.index] = at == user_names_.end() ? pool_.fresh() : pool_.claim(at->second);
    return bound_[value.index];
  };
  if (const auto* reduce = std::get_if<ir::Reduce>(&p_[v].node); reduce && ir::result_count(p_, *reduce) > 1) {
    const std::string value = reduction(*reduce);
    std::vector<std::string> names(ir::result_count(p_, *reduce));
    for (std::size_t i = 0; i < p_.values.size(); ++i) {
      const auto* of = std::get_if<ir::Part>(&p_.values[i].node);
      if (!of || of->of != std::variant<ValueId, StreamId>(v)) continue;
      names[of->slot] = claim(ValueId{static_cast<std::uint32_t>(i)});
    }
    for (std::string& name : names)
      if (name.empty()) name = pool_.fresh();
    line(homes_[v.index], binding(join(names), value));
  } else if (!part && is_let(v)) {
    const std::string value = expr(v, Context::free);
    line(homes_[v.index], binding(claim(v), value));
  }
}

void Printer::print_store(const ir::Store& store) {
  for (const ir::Index& dim : store.index)
    for (ValueId v : dim) need(v);
  need(store.value);
  line(store.stream ? *store.stream : StreamId{},
       fmt::format("{}[{}] = {}", tensor_names_[store.tensor.index], index(store.index), expr(store.value, Context::store)));
}

void Printer::need_stream(StreamId id) {
  if (stream_ready_[id.index]) return;
  stream_ready_[id.index] = true;
  const ir::Stream& s = p_[id];
  const std::vector<std::string>& names = carry_names_[id.index];
  need_axis(s.axis);
  std::vector<std::string> init, next;
  for (const ir::Carry& c : s.carries) need(c.init);
  for (std::size_t i = 0; i < s.carries.size(); ++i)
    init.push_back(binding(names[i], expr(s.carries[i].init, alone(s.carries[i].dtype))));
  blocks_.push_back({id, {}});
  for (const ir::Store& store : p_.stores) {
    std::optional<StreamId> at = store.stream, below;
    while (at && *at != id) {
      below = at;
      at = p_[*at].parent;
    }
    if (at) below ? need_stream(*below) : print_store(store);
  }
  for (const ir::Carry& c : s.carries) need(c.next);
  for (std::size_t i = 0; i < s.carries.size(); ++i)
    next.push_back(binding(names[i], expr(s.carries[i].next, alone(s.carries[i].dtype))));
  std::vector<std::string> body = std::move(blocks_.back().lines);
  blocks_.pop_back();
  const StreamId home = s.parent ? *s.parent : StreamId{};
  line(home, fmt::format("stream {}{} carry {} {{", s.tile ? "tile " : "", name_of(s.axis), join(init)));
  for (const std::string& text : body) line(home, "  " + text);
  line(home, "  next " + join(next));
  if (s.merge) line(home, "  merge " + merge_binds(*s.merge, names));
  line(home, "}");
}

std::string Printer::run() {
  std::string head;
  const std::string params = parameters();
  for (std::size_t i = 0; i < p_.axes.size(); ++i) {
    const AxisId id{static_cast<std::uint32_t>(i)};
    const ir::Axis& axis = p_.axes[i];
    if (axis.lo && !axis.piece && ir::range_axes(p_, id).empty()) head += fmt::format("  {}\n", axis_range(id));
  }
  for (const auto& [condition, where] : p_.requires_) head += fmt::format("  require {}\n", expr(condition, Context::free));
  in_head_ = false;

  blocks_.push_back({{}, {}});
  for (const ir::Store& store : p_.stores) {
    std::optional<StreamId> outermost = store.stream;
    while (outermost && p_[*outermost].parent) outermost = p_[*outermost].parent;
    outermost ? need_stream(*outermost) : print_store(store);
  }

  std::string text;
  for (ir::ReducerId id : reducers_) text += reducer(id);
  std::vector<std::string> program_axes;
  for (AxisId axis : p_.program_axes) program_axes.push_back(name_of(axis));
  text += fmt::format("program {}({}) {{\n{}  parallel{}{} {{\n", p_.name, params, head, program_axes.empty() ? "" : " ",
                      join(program_axes));
  for (const std::string& l : blocks_[0].lines) text += fmt::format("    {}\n", l);
  return text + "  }\n}\n";
}

std::string print(const ir::Program& p) {
  return support::on_deep_stack([&] { return Printer(p).run(); });
}

}  // namespace cosmati::language
