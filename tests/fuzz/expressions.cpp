// Arithmetic of random programs: every elementwise function and cast, by the class that the result computes in.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuzz/generator.h"

namespace cosmati::fuzz {

Expr Generator::join(const char* text, std::vector<Expr> parts) {
  Expr e;
  std::vector<Tree> kids;
  for (Expr& part : parts) {
    e.axes |= part.axes;
    e.done |= part.done;
    kids.push_back(std::move(part.tree));
  }
  e.tree = Tree::expr(text, std::move(kids));
  return e;
}

Expr Generator::literal(Class klass) {
  switch (klass) {
    case Class::real:
      return {Tree::expr(chance(8) ? pick({"inf", "(-inf)", "nan", "1e30", "1e-40", "65504"})
                                   : pick({"0", "1", "2", "0.5", "(-1)", "1e-3", "3", "0.1", "(-0.75)", "127"}))};
    case Class::integer:
      return {Tree::expr(pick({"0", "1", "2", "3", "(-1)", "5", "7", "255", "(-128)"}))};
    case Class::word:
      return {Tree::expr(pick({"u32(1)", "u32(7)", "u32(255)", "u32(-1)"}))};
    case Class::boolean:
      return {Tree::expr(pick({"true", "false"}))};
  }
  return {};
}

Expr Generator::coordinate(Class klass, int axis) {
  const Mask mask = Mask{1} << axis;
  const char* text = klass == Class::real      ? "f32($)"
                     : klass == Class::integer ? "$"
                     : klass == Class::word    ? "u32($)"
                                               : "($ < 2)";
  return {Tree::expr(text, {Tree::expr(name_of(axis))}), mask, 0};
}

Expr Generator::with_axes(Class klass, Expr value, Mask axes) {
  for (int axis : axes_of(axes & ~value.axes)) {
    if (axes_[static_cast<std::size_t>(axis)].pack) continue;
    const char* text = klass == Class::boolean ? "($ or $)" : klass == Class::word ? "($ ^ $)" : "($ + $)";
    value = join(text, {std::move(value), coordinate(klass, axis)});
  }
  return value;
}

Expr Generator::atom(Class klass, Scope scope) {
  if (chance(45)) {
    std::vector<const ValueInfo*> usable;
    for (const ValueInfo& v : values_)
      if (v.klass == klass && !(v.axes & ~scope.allowed) && !(v.done & ~scope.finished)) usable.push_back(&v);
    if (!usable.empty()) {
      const ValueInfo& v = *pick(usable);
      return {Tree::expr(v.name), v.axes, v.done};
    }
  }
  if (quiet_ || chance(8)) return literal(klass);
  if (chance(6)) {
    std::vector<int> axes;
    for (int axis : axes_of(scope.allowed))
      if (!axes_[static_cast<std::size_t>(axis)].pack) axes.push_back(axis);
    if (!axes.empty()) return coordinate(klass, pick(axes));
  }
  std::vector<int> usable;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const TensorInfo& tensor = tensors_[t];
    bool packs = std::all_of(tensor.dims.begin(), tensor.dims.end(),
                             [&](const DimInfo& d) { return d.kind != DimInfo::Kind::pack || (scope.allowed >> d.axis & 1); });
    if (tensor.access == "in" && tensor.klass == klass && packs) usable.push_back(static_cast<int>(t));
  }
  if (usable.empty() || (inputs_ < 5 && chance(40))) usable = {input(klass, scope.allowed)};
  const TensorInfo tensor = tensors_[static_cast<std::size_t>(pick(usable))];
  return access(tensor, scope);
}

Expr Generator::gen(Class klass, Scope scope, int depth) {
  if (depth <= 0 || chance(12)) return atom(klass, scope);
  if (!quiet_) {
    if (chance(14)) return reduction(klass, scope, depth - 1);
    if (chance(7)) return replacement(klass, scope, depth - 1);
    if (klass == Class::real && chance(6) && !defs_.empty()) return defined(scope, depth - 1);
    if (klass == Class::real && chance(5) && !reducers_.empty()) return user_reduction(scope, depth - 1);
  }
  if (chance(7))
    return join("where($, $, $)",
                {gen(Class::boolean, scope, depth - 1), gen(klass, scope, depth - 1), gen(klass, scope, depth - 1)});
  switch (klass) {
    case Class::real:
      return real(scope, depth - 1);
    case Class::integer:
      return integer(scope, depth - 1);
    case Class::word:
      return word(scope, depth - 1);
    case Class::boolean:
      return boolean(scope, depth - 1);
  }
  return atom(klass, scope);
}

Expr Generator::real(Scope scope, int depth) {
  auto one = [&] { return gen(Class::real, scope, depth); };
  switch (below(16)) {
    case 0:
    case 1:
      return join("($ + $)", {one(), one()});
    case 2:
      return join("($ - $)", {one(), one()});
    case 3:
    case 4:
      return join("($ * $)", {one(), one()});
    case 5:
      return join("($ / $)", {one(), one()});
    case 6:
      return join("(-$)", {one()});
    case 7:
    case 8: {
      std::string f = pick({"abs", "sign", "floor", "ceil", "trunc", "round", "sqrt", "rsqrt",   "exp",  "exp2", "expm1",
                            "log", "log2", "log1p", "sin",  "cos",   "tanh",  "erf",  "sigmoid", "gelu", "silu"});
      return join((f + "($)").c_str(), {one()});
    }
    case 9: {
      std::string f = pick({"maximum", "minimum", "maximum_num", "minimum_num", "exp_diff", "pow"});
      return join((f + "($, $)").c_str(), {one(), one()});
    }
    case 10:
      return join(chance(50) ? "clamp($, $, $)" : "fma($, $, $)", {one(), one(), one()});
    case 11:
      return join((pick({"f32", "bf16", "f16", "f64", "f8e4m3", "f8e5m2"}) + "($)").c_str(), {one()});
    case 12:
      return join(chance(80) ? "f32($)" : "f64($)", {gen(Class::integer, scope, depth)});
    case 13:
      return join("f32($)", {gen(chance(50) ? Class::boolean : Class::word, scope, depth)});
    case 14:
      return join("(2 * $)", {one()});
    default:
      return chance(25) ? join("bits_f32($)", {gen(Class::word, scope, depth)}) : join("($ * $)", {one(), literal(Class::real)});
  }
}

Expr Generator::integer(Scope scope, int depth) {
  auto one = [&] { return gen(Class::integer, scope, depth); };
  switch (below(11)) {
    case 0:
      return join("($ + $)", {one(), one()});
    case 1:
      return join("($ - $)", {one(), one()});
    case 2:
      return join("($ * $)", {one(), one()});
    case 3:
      return join(chance(50) ? "($ // $)" : "($ % $)", {one(), one()});
    case 4:
      return join(("($ " + pick({"&", "|", "^"}) + " $)").c_str(), {one(), one()});
    case 5:
      return join(chance(50) ? "($ << $)" : "($ >> $)", {one(), one()});
    case 6:
      return join((pick({"maximum", "minimum", "maximum_num", "minimum_num"}) + "($, $)").c_str(), {one(), one()});
    case 7:
      return join((pick({"abs($)", "sign($)", "(-$)"})).c_str(), {one()});
    case 8:
      return join("clamp($, $, $)", {one(), one(), one()});
    case 9:
      return join((pick({"i32", "i8", "i64", "i16", "u8", "u16"}) + "($)").c_str(),
                  {gen(pick(std::vector<Class>{Class::real, Class::integer, Class::boolean, Class::word}), scope, depth)});
    default: {
      Mask plain = 0;
      for (int axis : axes_of(launch_axes()))
        if (!axes_[static_cast<std::size_t>(axis)].pack) plain |= Mask{1} << axis;
      if (!plain || quiet_) return literal(Class::integer);
      return {Tree::expr("extent(" + name_of(pick_axis(plain)) + ")")};
    }
  }
}

Expr Generator::word(Scope scope, int depth) {
  auto one = [&] { return gen(Class::word, scope, depth); };
  switch (below(7)) {
    case 0:
      return join(("($ " + pick({"+", "-", "*"}) + " $)").c_str(), {one(), one()});
    case 1:
      return join(("($ " + pick({"&", "|", "^"}) + " $)").c_str(), {one(), one()});
    case 2:
      return join(("($ " + pick({"<<", ">>"}) + " $)").c_str(), {one(), one()});
    case 3:
      return join(("($ " + pick({"//", "%"}) + " $)").c_str(), {one(), one()});
    case 4: {
      // The bits of a NaN are nobody's promise.
      Expr x = gen(Class::real, scope, std::min(depth, 1));
      return join("bits_u32(f32(maximum_num($, (-1e30))))", {std::move(x)});
    }
    case 5:
      return join("u32($)", {gen(pick(std::vector<Class>{Class::real, Class::integer, Class::boolean}), scope, depth)});
    default:
      return join((pick({"minimum", "maximum"}) + "($, $)").c_str(), {one(), one()});
  }
}

Expr Generator::boolean(Scope scope, int depth) {
  auto one = [&] { return gen(Class::boolean, scope, depth); };
  switch (below(7)) {
    case 0:
    case 1:
    case 2: {
      Class klass = pick(std::vector<Class>{Class::real, Class::real, Class::integer, Class::integer, Class::word});
      return join(("($ " + pick({"==", "!=", "<", "<=", ">", ">="}) + " $)").c_str(),
                  {gen(klass, scope, depth), gen(klass, scope, depth)});
    }
    case 3:
      return join(chance(50) ? "($ and $)" : "($ or $)", {one(), one()});
    case 4:
      return join("(not $)", {one()});
    case 5:
      return join(chance(50) ? "is_nan($)" : "is_inf($)", {gen(Class::real, scope, depth)});
    default:
      return join("bool($)", {gen(Class::integer, scope, depth)});
  }
}

}  // namespace cosmati::fuzz
