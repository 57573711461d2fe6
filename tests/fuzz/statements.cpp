// Statements of random programs: ranges, lets, streams, stores.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuzz/generator.h"

namespace cosmati::fuzz {

void Generator::statements() {
  const int count = 1 + below(4);
  if (chance(30)) region_axis();
  for (int i = 0; i < count; ++i) {
    Mask program = 0, allowed = 0;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].program) program |= Mask{1} << a;
      if (axes_[a].program ? chance(90) : chance(axes_[a].region ? 30 : 40)) allowed |= Mask{1} << a;
    }
    for (int a : axes_of(allowed))
      if (axes_[static_cast<std::size_t>(a)].depends & ~allowed) allowed &= ~(Mask{1} << a);
    if (chance(18))
      stream();
    else if (chance(12))
      region_axis();
    else
      let(body_, {allowed, chance(10) ? program & ~allowed : 0});
  }
  const int outs = 1 + (chance(40) ? 1 + below(2) : 0);
  for (int i = 0; i < outs; ++i) store(body_, below(100));
}

void Generator::region_axis() {
  std::vector<int> bearers, program;
  for (int axis : axes_of(launch_axes())) {
    const AxisInfo& info = axes_[static_cast<std::size_t>(axis)];
    if (info.pack || info.within != axis) continue;
    bearers.push_back(axis);
    if (info.program) program.push_back(axis);
  }
  if (bearers.empty()) return;
  AxisInfo axis{some_name({"t", "z"})};
  axis.region = true;
  axis.within = pick(bearers);
  const std::string extent = "extent(" + name_of(axis.within) + ")";
  std::string range = "in 0 .. " + extent;
  int kind = below(7);
  if (kind < 4 && !program.empty()) {
    const int s = pick(program);
    const std::string name = name_of(s);
    axis.depends = Mask{1} << s;
    if (kind == 0) range = "in 0 .. minimum(" + name + " + 1, " + extent + ")";
    if (kind == 1) {
      axis.within = s;
      range = "in 0 .. " + name + " + 1";
    }
    if (kind == 2) {
      axis.within = s;
      range = "in maximum(0, " + name + " - 1) .. " + name + " + 1";
    }
    if (kind == 3) {
      TensorInfo bound;
      bound.name = some_name({"len", "off"});
      bound.access = "in";
      bound.klass = Class::integer;
      bound.type = "i32";
      bound.dims = {{DimInfo::Kind::axis, s}};
      bound.contract = Tree::form(" in 0 .. " + extent + " + 1");
      range = chance(70) ? "in 0 .. " + bound.name : "in " + bound.name + "[" + name + "] .. " + extent;
      tensors_.push_back(bound);
    }
  } else {
    range = pick({"in 1 .. ", "in 0 .. ", "= "}) + extent + (chance(40) ? " // 2" : "");
    if (range.starts_with("in 1") && range.ends_with("2")) range = "in 0 .. " + extent + " - 1";
  }
  body_.kids.push_back(Tree::form("axis " + axis.name + " " + range));
  axes_.push_back(axis);
}

void Generator::let(Tree& into, Scope scope) {
  Class klass =
      pick(std::vector<Class>{Class::real, Class::real, Class::real, Class::real, Class::integer, Class::boolean, Class::word});
  Mask candidates = reducible(scope);
  if (candidates && chance(14)) {
    const int axis = pick_axis(candidates);
    const Mask over = Mask{1} << axis;
    Scope inner{scope.allowed | over, scope.finished & ~over};
    std::string first = some_name({"mu", "hit"}), second = some_name({"var_", "at"});
    const FunctionInfo* best = nullptr;
    for (const FunctionInfo& f : reducers_)
      if (f.results == 2) best = &f;
    const FunctionInfo* def = nullptr;
    for (const FunctionInfo& f : defs_)
      if (f.results == 2) def = &f;
    Expr x = with_axes(Class::real, gen(Class::real, inner, 2), over), y;
    Tree call;
    Class second_class = Class::real;
    if (best && chance(60)) {
      call = Tree::form("best($, " + name_of(axis) + ", " + name_of(axis) + ")", {x.tree});
      second_class = Class::integer;
    } else if (def && chance(60)) {
      y = with_axes(Class::real, gen(Class::real, inner, 1), over);
      call = Tree::form(def->axes ? "blend($, $, " + name_of(axis) + ")" : "blend($, $)", {x.tree, y.tree});
      if (!def->axes) return;
    } else {
      call = Tree::form("mean_var($, " + name_of(axis) + ")", {x.tree});
    }
    const Mask axes = ((x.axes | y.axes) & ~over) | axes_[static_cast<std::size_t>(axis)].depends;
    const Mask done = x.done | y.done | (axes_[static_cast<std::size_t>(axis)].program ? over : 0);
    into.kids.push_back(Tree::form(first + ", " + second + " = $", {call}));
    // Either result may lack an axis of the arguments; only mean_var and best are sure to keep them.
    if (call.text.starts_with("blend")) return;
    values_.push_back({first, Class::real, axes, done, false});
    values_.push_back({second, second_class, axes, done, false});
    return;
  }
  Expr e = gen(klass, scope, 3);
  std::string name = some_name({"v", "e", "g", "h", "group", "out", "tile", "order", "u", "next1"});
  into.kids.push_back(Tree::form(name + " = $", {e.tree}));
  values_.push_back({name, klass, e.axes, e.done, false});
}

std::vector<Tree> Generator::tile_body(Tree& body, int axis, Scope scope, std::vector<std::string>& states,
                                       std::vector<Tree>& merges) {
  const Mask t = Mask{1} << axis;
  Scope inside{scope.allowed | t, 0};
  const std::string name = name_of(axis);
  std::vector<Tree> nexts;
  const Mask full = scope.allowed;
  if (chance(35)) {
    states = {"m = -inf", "l = 0"};
    Expr x = with_axes(Class::real, gen(Class::real, inside, 2), full | t);
    body.kids.push_back(Tree::form("score = $", {x.tree}));
    body.kids.push_back(Tree::form("top = maximum(m, max(score, " + name + "))"));
    nexts = {Tree::form("m = top"), Tree::form("l = l * exp_diff(m, top) + sum(exp_diff(score, top), " + name + ")")};
    merges = {Tree::form("m = maximum(a.m, b.m)"), Tree::form("l = a.l * exp_diff(a.m, m) + b.l * exp_diff(b.m, m)")};
    return nexts;
  }
  const int count = 1 + below(2);
  for (int i = 0; i < count; ++i) {
    Expr x = with_axes(Class::real, gen(Class::real, inside, 2), full | t);
    const std::string state = i ? "g" : "m";
    if (chance(60)) {
      states.push_back(state + " = 0");
      nexts.push_back(Tree::form(state + " = " + state + " + sum($, " + name + ")", {x.tree}));
      merges.push_back(Tree::form(state + " = a." + state + " + b." + state));
    } else {
      const bool max = chance(50);
      states.push_back(state + (max ? " = -inf" : " = inf"));
      nexts.push_back(Tree::form(
          state + (max ? " = maximum(" : " = minimum(") + state + (max ? ", max($, " : ", min($, ") + name + "))", {x.tree}));
      merges.push_back(Tree::form(state + (max ? " = maximum(a." : " = minimum(a.") + state + ", b." + state + ")"));
    }
  }
  return nexts;
}

void Generator::stream() {
  Mask carried = 0, streamed = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (axes_[a].program) carried |= Mask{1} << a;
    if (!axes_[a].program && !axes_[a].pack && (!axes_[a].region || !chance(40))) streamed |= Mask{1} << a;
  }
  if (!streamed) return;
  const int axis = pick_axis(streamed);
  const Mask t = Mask{1} << axis;
  if (axes_[static_cast<std::size_t>(axis)].depends & ~carried) return;
  for (int other : axes_of(launch_axes() & ~t))
    if (chance(25)) carried |= Mask{1} << other;
  const std::vector<ValueInfo> outside = values_;
  Tree inside = Tree::list("\n");
  std::vector<std::string> states;
  std::vector<Tree> nexts, merges;
  std::vector<ValueInfo> results;
  const bool tile = chance(45);
  streamed_ = t;
  if (tile) {
    for (const char* name : {"m", "g", "l", "score", "top"})
      if (names_.count(name)) return void(streamed_ = 0);
    nexts = tile_body(inside, axis, {carried, 0}, states, merges);
    if (!chance(60)) merges.clear();
    for (const std::string& state : states) {
      std::string name = fresh(state.substr(0, state.find(' ')));
      results.push_back({name, Class::real, carried, 0, false});
    }
    fresh("score");
    fresh("top");
  } else {
    const int count = 1 + below(2);
    Scope scope{carried | t, 0};
    for (int i = 0; i < count; ++i) {
      const Class klass = chance(80) ? Class::real : Class::integer;
      ValueInfo state{some_name({"h", "acc", "state"}), klass, carried, 0, false};
      Expr init = chance(60) ? literal(klass) : gen(klass, {carried, 0}, 1);
      states.push_back(state.name + " = " + print(init.tree));
      results.push_back(state);
    }
    values_.insert(values_.end(), results.begin(), results.end());
    if (chance(50)) let(inside, scope);
    for (const ValueInfo& state : results) {
      Expr e = gen(state.klass, scope, 2);
      e.axes = 0;  // what it takes from carried values is not sure yet
      e = with_axes(state.klass, std::move(e), carried);
      const char* text = state.klass == Class::integer ? "($ + $)" : chance(60) ? "($ * 0.5 + $)" : "maximum($, $)";
      nexts.push_back(Tree::form(state.name + " = $", {Tree::expr(text, {Tree::expr(state.name), e.tree})}));
    }
    if (!axes_[static_cast<std::size_t>(axis)].region && chance(55)) {
      TensorInfo out;
      out.name = some_name({"y", "z_", "trace"});
      out.access = "out";
      out.klass = chance(80) ? Class::real : Class::integer;
      out.type = out.klass == Class::real ? type_of(out.klass) : pick({"i32", "i64", "i8"});
      std::vector<int> dims = axes_of(carried | t);
      std::shuffle(dims.begin(), dims.end(), random_);
      std::string index;
      for (int d : dims) {
        const bool pack = axes_[static_cast<std::size_t>(d)].pack;
        out.dims.push_back({pack ? DimInfo::Kind::pack : DimInfo::Kind::axis, d});
        index += (index.empty() ? "" : ", ") + name_of(d) + (pack ? "..." : "");
      }
      inside.kids.push_back(
          Tree::form(out.name + "[" + index + "] = $", {cast_to_store(out.klass, out.type, gen(out.klass, scope, 2))}));
      tensors_.push_back(out);
    }
  }
  streamed_ = 0;
  std::string carry;
  for (const std::string& state : states) carry += (carry.empty() ? "" : ", ") + state;
  Tree next = Tree::list(", ", nexts);
  Tree merge = Tree::list("");
  if (!merges.empty()) merge.kids.push_back(Tree::form("merge $\n", {Tree::list(", ", merges)}));
  body_.kids.push_back(
      Tree::form("stream " + std::string(tile ? "tile " : "") + name_of(axis) + " carry " + carry + " {\n$\nnext $\n$}",
                 {inside, next, merge}));
  values_ = outside;
  values_.insert(values_.end(), results.begin(), results.end());
}

Tree Generator::cast_to_store(Class klass, const std::string& type, Expr value) {
  if (klass == Class::integer || klass == Class::word) return Tree::expr(type + "($)", {value.tree});
  if (klass == Class::boolean) return Tree::expr("bool($)", {value.tree});
  return value.tree;
}

// A value in which every program axis of scope.finished has been reduced away.
Expr Generator::finished_value(Class klass, Scope scope, int depth) {
  if (!scope.finished) return gen(klass, scope, depth);
  std::string axes;
  for (int axis : axes_of(scope.finished)) axes += ", " + name_of(axis);
  Scope inner{scope.allowed | scope.finished, 0};
  Expr x = with_axes(klass, gen(klass, inner, depth), scope.finished);
  const char* f = klass == Class::boolean ? "any" : chance(60) ? "sum" : "max";
  Expr e = join((std::string(f) + "($" + axes + ")").c_str(), {x});
  e.axes &= ~scope.finished;
  e.done |= scope.finished;
  if (!chance(40)) return e;
  return join(klass == Class::boolean ? "($ or $)" : klass == Class::word ? "($ ^ $)" : "($ + $)", {e, gen(klass, scope, 1)});
}

void Generator::store(Tree& into, int kind) {
  TensorInfo out;
  out.klass = pick(std::vector<Class>{Class::real, Class::real, Class::real, Class::real, Class::integer, Class::integer,
                                      Class::boolean, Class::word});
  out.type = out.klass == Class::integer ? pick({"i32", "i64", "i8", "i16", "u8"}) : type_of(out.klass);
  out.name = some_name({"y", "o", "out", "res", "buffer", "inout"});
  out.access = kind < 12 ? "inout" : "out";
  Mask index = 0, program = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (axes_[a].program) program |= Mask{1} << a;
    if (axes_[a].region) continue;
    if (axes_[a].program ? axes_[a].pack || kind < 70 || chance(60) : chance(35)) index |= Mask{1} << a;
  }
  Scope scope{index, program & ~index};
  std::vector<int> dims = axes_of(index);
  std::shuffle(dims.begin(), dims.end(), random_);
  std::vector<Tree> places;
  std::string text = out.name + "[";
  int split = -1;  // the constant axis of a composite dimension that is stored slice by slice
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const AxisInfo& axis = axes_[static_cast<std::size_t>(dims[i])];
    if (i) text += ", ";
    if (axis.pack) {
      out.dims.push_back({DimInfo::Kind::pack, dims[i]});
      text += axis.name + "...";
    } else if (i + 1 < dims.size() && !axes_[static_cast<std::size_t>(dims[i + 1])].pack &&
               (axis.constant || axes_[static_cast<std::size_t>(dims[i + 1])].constant) && chance(60)) {
      out.dims.push_back({DimInfo::Kind::composite, dims[i], dims[i + 1]});
      if (split < 0 && axis.constant && !axis.program && chance(40)) {
        split = dims[i];
        text += "(@, " + name_of(dims[i + 1]) + ")";
      } else {
        text += "(" + axis.name + ", " + name_of(dims[i + 1]) + ")";
      }
      ++i;
    } else if (kind % 25 == 3 && axis.within == dims[i]) {
      out.dims.push_back({DimInfo::Kind::axis, dims[i]});
      text += "extent(" + axis.name + ") - 1 - " + axis.name;
    } else if (kind % 25 == 4 && axis.within == dims[i] && inputs_ < 6) {
      out.dims.push_back({DimInfo::Kind::axis, dims[i]});
      TensorInfo order;
      order.name = some_name({"perm"});
      order.access = "in";
      order.klass = Class::integer;
      order.type = "i32";
      order.dims = {{DimInfo::Kind::axis, dims[i]}};
      order.contract = Tree::form(" in 0 .. extent(" + axis.name + ") distinct");
      text += order.name;
      tensors_.push_back(order);
      ++inputs_;
    } else {
      out.dims.push_back({DimInfo::Kind::axis, dims[i]});
      text += axis.name;
    }
  }
  text += "] = $";
  if (dims.empty() && chance(70)) out.dims.push_back({DimInfo::Kind::constant, -1, -1, 1}), text = out.name + "[0] = $";
  auto value = [&](Scope s) {
    Expr e = finished_value(out.klass, s, 3);
    if (out.access == "inout" && chance(80) && kind % 25 != 3 && kind % 25 != 4 && split < 0 && out.dims.size() == dims.size() &&
        !scope.finished) {
      const char* join_text = out.klass == Class::boolean ? "($ or $)" : out.klass == Class::word ? "($ ^ $)" : "($ + $)";
      e = join(join_text, {Expr{Tree::expr(out.name), index, 0}, e});
    }
    return cast_to_store(out.klass, out.type, e);
  };
  if (split >= 0) {
    for (int slice = 0; slice < axes_[static_cast<std::size_t>(split)].constant; ++slice) {
      std::string one = text;
      one.replace(one.find('@'), 1, std::to_string(slice));
      into.kids.push_back(Tree::form(one, {value({index & ~(Mask{1} << split), scope.finished})}));
    }
  } else {
    into.kids.push_back(Tree::form(text, {value(scope)}));
  }
  if (out.dims.empty()) into.kids.back().text = out.name + "[] = $";
  tensors_.push_back(out);
}

}  // namespace cosmati::fuzz
