// Reductions, replacements, accesses and calls of random programs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuzz/generator.h"

namespace cosmati::fuzz {

// Axes that a reduction in this scope may take away: no pack, program axes only where the scope wants them gone, ranges only
// where what they depend on may appear in the result.
Mask Generator::reducible(Scope scope) const {
  Mask mask = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const AxisInfo& axis = axes_[a];
    if ((streamed_ >> a & 1) || axis.pack || (axis.program && !(scope.finished >> a & 1)) || (axis.depends & ~scope.allowed))
      continue;
    mask |= Mask{1} << a;
  }
  return mask;
}

Expr Generator::reduction(Class klass, Scope scope, int depth) {
  Mask candidates = reducible(scope);
  if (!candidates) return gen(klass, scope, depth);
  Mask over = Mask{1} << pick_axis(candidates);
  if (chance(25)) over |= Mask{1} << pick_axis(candidates);
  Scope inner{scope.allowed | over, scope.finished & ~over};
  std::string axes;
  Mask depends = 0, program = 0;
  for (int axis : axes_of(over)) {
    axes += ", " + name_of(axis);
    depends |= axes_[static_cast<std::size_t>(axis)].depends;
    if (axes_[static_cast<std::size_t>(axis)].program) program |= Mask{1} << axis;
  }
  std::string option = chance(8) ? ", order: left" : chance(4) ? ", order: tree" : "";
  Expr e;
  Class from = klass;
  auto value = [&](Class c) { return with_axes(c, gen(c, inner, depth), over); };
  std::string f;
  switch (klass) {
    case Class::real:
      if (chance(25)) {
        Expr first = gen(Class::real, inner, depth), second = gen(Class::real, inner, depth);
        if (std::string relax = chance(6) ? ", relax: narrow" : ""; !relax.empty()) option = relax;
        first = with_axes(Class::real, std::move(first), over & ~second.axes);
        e = join(("contract($, $" + axes + option + ")").c_str(), {std::move(first), std::move(second)});
        e.axes = (e.axes & ~over) | depends;
        e.done |= program;
        return e;
      }
      if (chance(8)) from = Class::integer;
      f = from == Class::integer
              ? "mean"
              : pick({"sum", "sum", "sum", "product", "min", "max", "max", "min_num", "max_num", "mean", "logsumexp"});
      break;
    case Class::integer:
      if (chance(25)) {
        over = Mask{1} << pick_axis(over);
        inner = {scope.allowed | over, scope.finished & ~over};
        const AxisInfo& axis = axes_[static_cast<std::size_t>(pick_axis(over))];
        axes = ", " + axis.name;
        depends = axis.depends;
        program = axis.program ? over : 0;
        option = "";
        from = chance(80) ? Class::real : Class::integer;
        f = pick({"argmax", "argmin"});
      } else {
        f = pick({"sum", "product", "min", "max"});
      }
      break;
    case Class::word:
      f = pick({"min", "max", "sum"});
      break;
    case Class::boolean:
      f = pick({"any", "all"});
      break;
  }
  e = join((f + "($" + axes + option + ")").c_str(), {value(from)});
  e.axes = (e.axes & ~over) | depends;
  e.done |= program;
  return e;
}

Expr Generator::user_reduction(Scope scope, int depth) {
  std::vector<const FunctionInfo*> single;
  for (const FunctionInfo& f : reducers_)
    if (f.results == 1) single.push_back(&f);
  Mask candidates = reducible(scope);
  if (!candidates || single.empty()) return gen(Class::real, scope, depth);
  const FunctionInfo& f = *pick(single);
  const int axis = pick_axis(candidates);
  const Mask over = Mask{1} << axis;
  Scope inner{scope.allowed | over, scope.finished & ~over};
  std::vector<Expr> args;
  std::string text = f.name + "(";
  for (int i = 0; i < f.values; ++i) {
    args.push_back(with_axes(Class::real, gen(Class::real, inner, depth), over));
    text += "$, ";
  }
  Expr e = join((text + name_of(axis) + (f.left ? ", order: left)" : ")")).c_str(), std::move(args));
  e.axes = (e.axes & ~over) | axes_[static_cast<std::size_t>(axis)].depends;
  if (axes_[static_cast<std::size_t>(axis)].program) e.done |= over;
  return e;
}

Expr Generator::defined(Scope scope, int depth) {
  std::vector<const FunctionInfo*> single;
  for (const FunctionInfo& f : defs_)
    if (f.results == 1) single.push_back(&f);
  Mask candidates = reducible(scope);
  if (single.empty()) return gen(Class::real, scope, depth);
  const FunctionInfo& f = *pick(single);
  if (f.axes && !candidates) return gen(Class::real, scope, depth);
  const int axis = f.axes ? pick_axis(candidates) : -1;
  const Mask over = f.axes ? Mask{1} << axis : 0;
  Scope inner{scope.allowed | over, scope.finished & ~over};
  std::vector<Expr> args;
  std::string text = f.name + "(";
  for (int i = 0; i < f.values; ++i) {
    args.push_back(with_axes(Class::real, gen(Class::real, inner, depth), over));
    text += i ? ", $" : "$";
  }
  Expr e = join((text + (f.axes ? ", " + name_of(axis) : "") + ")").c_str(), std::move(args));
  if (f.axes) {
    e.axes = (e.axes & ~over) | axes_[static_cast<std::size_t>(axis)].depends;
    if (axes_[static_cast<std::size_t>(axis)].program) e.done |= over;
  }
  return e;
}

Expr Generator::replacement(Class klass, Scope scope, int depth) {
  std::vector<int> candidates;
  for (int axis : axes_of(launch_axes() & ~scope.finished & ~(chance(15) ? 0 : streamed_)))
    if (!axes_[static_cast<std::size_t>(axis)].pack) candidates.push_back(axis);
  if (candidates.empty()) return gen(klass, scope, depth);
  const int axis = pick(candidates);
  const Mask over = Mask{1} << axis;
  Expr base = with_axes(klass, gen(klass, {scope.allowed | over, scope.finished}, depth), over);
  std::string binds = name_of(axis) + " := $";
  Place at = place_in(axis, scope);
  bool safe = at.safe;
  Mask axes = at.axes, gone = over;
  std::vector<Tree> kids{base.tree, at.tree};
  std::vector<int> others;
  for (int other : candidates)
    if (other != axis && (base.axes >> other & 1)) others.push_back(other);
  if (!others.empty() && chance(30)) {
    const int other = pick(others);
    Place second = place_in(other, scope);
    binds += ", " + name_of(other) + " := $";
    safe = safe && second.safe;
    axes |= second.axes;
    gone |= Mask{1} << other;
    kids.push_back(second.tree);
  }
  // A replaced axis that the scope does not allow must not come from the base's other axes.
  Expr e;
  std::string text = "($)[" + binds + "]";
  if (!safe || chance(15)) {
    Expr other = chance(70) ? literal(klass) : atom(klass, scope);
    e.axes |= other.axes;
    e.done |= other.done;
    kids.push_back(other.tree);
    text = "(" + text + " else $)";
  }
  e.axes |= (base.axes & ~gone) | axes;
  e.done |= base.done;
  e.tree = Tree::expr(text, std::move(kids));
  return e;
}

Generator::Place Generator::place_in(int axis, Scope scope) {
  const AxisInfo& info = axes_[static_cast<std::size_t>(axis)];
  std::vector<int> inside, any;  // axes of the scope whose coordinates lie in this one, and those with a coordinate
  for (int a : axes_of(scope.allowed)) {
    const AxisInfo& other = axes_[static_cast<std::size_t>(a)];
    if (other.pack) continue;
    any.push_back(a);
    if (other.within == axis) inside.push_back(a);
    if (info.constant && other.constant && other.constant <= info.constant) inside.push_back(a);
  }
  const std::string name = info.name;
  auto of = [&](const char* text, int a, bool safe) {
    return Place{Tree::expr(text, {Tree::expr(name_of(a))}), Mask{1} << a, safe};
  };
  if (!inside.empty() && chance(72)) return of("$", pick(inside), true);
  switch (below(8)) {
    case 0:
      if (!inside.empty()) return of(("(extent(" + name + ") - 1 - $)").c_str(), pick(inside), true);
      break;
    case 1:
      if (!inside.empty()) return of(chance(50) ? "($ + 1)" : "($ - 1)", pick(inside), false);
      break;
    case 2:
      if (!inside.empty())
        return chance(50) ? of(("minimum($ + 1, extent(" + name + ") - 1)").c_str(), pick(inside), true)
                          : of("maximum($ - 1, 0)", pick(inside), true);
      break;
    case 3:
      if (!inside.empty()) return of(pick({"($ // 2)", "($ >> 1)", "($ & 3)"}).c_str(), pick(inside), true);
      break;
    case 4:
      if (info.constant) return {Tree::expr(std::to_string(below(info.constant))), 0, true};
      if (!any.empty()) return of("($ * 2)", pick(any), false);
      break;
    case 5:
      if (info.constant && !any.empty()) return of(("($ % " + std::to_string(info.constant) + ")").c_str(), pick(any), true);
      break;
    case 6: {
      Expr e = gen(Class::integer, scope, 1);
      if (!e.done) return {e.tree, e.axes, false};
      break;
    }
    default:
      break;
  }
  if (inputs_ < 6 && chance(75)) {
    const TensorInfo index = tensors_[static_cast<std::size_t>(gather(axis, scope.allowed))];
    Expr e = access(index, scope);
    return {e.tree, e.axes, true};
  }
  if (!inside.empty()) return of("$", pick(inside), true);
  return {Tree::expr(std::to_string(below(3))), 0, false};
}

Generator::Place Generator::place_in(const DimInfo& dim, Scope scope) {
  switch (dim.kind) {
    case DimInfo::Kind::axis:
      return place_in(dim.axis, scope);
    case DimInfo::Kind::offset: {
      Place at = place_in(dim.axis, scope);
      if (dim.number < 0) return {at.tree, at.axes, false};
      if (chance(40))
        for (int a : axes_of(scope.allowed))
          if (const int n = axes_[static_cast<std::size_t>(a)].constant; n && n <= dim.number + 1)
            return {Tree::expr("($ + $)", {at.tree, Tree::expr(name_of(a))}), at.axes | Mask{1} << a, at.safe};
      return {Tree::expr("($ + " + std::to_string(below(dim.number + 1)) + ")", {at.tree}), at.axes, at.safe};
    }
    case DimInfo::Kind::composite: {
      if (chance(6)) {
        Expr e = gen(Class::integer, {scope.allowed, 0}, 1);
        return {e.tree, e.axes, false};
      }
      Place slow = place_in(dim.axis, scope), fast = place_in(dim.fast, scope);
      return {Tree::form("($, $)", {slow.tree, fast.tree}), slow.axes | fast.axes, slow.safe && fast.safe};
    }
    case DimInfo::Kind::constant: {
      for (int a : axes_of(scope.allowed))
        if (const int n = axes_[static_cast<std::size_t>(a)].constant; n && n <= dim.number && chance(60))
          return {Tree::expr(name_of(a)), Mask{1} << a, true};
      return {Tree::expr(std::to_string(below(dim.number))), 0, true};
    }
    case DimInfo::Kind::pack:
      return {Tree::form(name_of(dim.axis) + "..."), Mask{1} << dim.axis, true};
  }
  return {};
}

Expr Generator::access(const TensorInfo& tensor, Scope scope) {
  const Mask declared = mask_of(tensor.dims);
  bool plain = std::all_of(tensor.dims.begin(), tensor.dims.end(), [](const DimInfo& d) {
    return d.kind == DimInfo::Kind::axis || d.kind == DimInfo::Kind::composite || d.kind == DimInfo::Kind::pack;
  });
  if (plain && !(declared & ~scope.allowed) && (tensor.dims.empty() || chance(60))) return {Tree::expr(tensor.name), declared, 0};
  Expr e;
  bool safe = true;
  std::string text = "$[";
  std::vector<Tree> kids{Tree::form(tensor.name)};
  for (const DimInfo& dim : tensor.dims) {
    Place at = place_in(dim, scope);
    e.axes |= at.axes;
    safe = safe && at.safe;
    text += kids.size() > 1 ? ", $" : "$";
    kids.push_back(at.tree);
  }
  text += "]";
  if (tensor.dims.empty()) {
    text = "$";
  } else if (!safe || chance(8)) {
    Expr other = chance(70) || quiet_ ? literal(tensor.klass) : atom(tensor.klass, {scope.allowed, 0});
    e.axes |= other.axes;
    e.done |= other.done;
    text = "(" + text + " else $)";
    kids.push_back(other.tree);
  }
  e.tree = Tree::expr(text, std::move(kids));
  return e;
}

}  // namespace cosmati::fuzz
