// Declarations of random programs: axes, parameters, defs, reducers.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/generator.h"

#include <algorithm>

namespace cosmati::fuzz {

std::vector<int> Generator::axes_of(Mask mask) const {
  std::vector<int> axes;
  for (int a = 0; a < static_cast<int>(axes_.size()); ++a)
    if (mask >> a & 1) axes.push_back(a);
  return axes;
}

int Generator::pick_axis(Mask mask) { return pick(axes_of(mask)); }

std::string Generator::fresh(const std::string& wish) {
  int& uses = names_[wish];
  ++uses;
  if (uses == 1) return wish;
  return fresh(wish + "_" + std::to_string(uses));
}

Mask Generator::launch_axes() const {
  Mask mask = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a)
    if (!axes_[a].region) mask |= Mask{1} << a;
  return mask;
}

Mask Generator::mask_of(const std::vector<DimInfo>& dims) const {
  Mask mask = 0;
  for (const DimInfo& dim : dims) {
    if (dim.axis >= 0) mask |= Mask{1} << dim.axis;
    if (dim.fast >= 0) mask |= Mask{1} << dim.fast;
  }
  return mask;
}

std::string Generator::dim_text(const DimInfo& dim) const {
  switch (dim.kind) {
    case DimInfo::Kind::axis:
      return name_of(dim.axis);
    case DimInfo::Kind::offset:
      return name_of(dim.axis) + (dim.number < 0 ? " - " : " + ") + std::to_string(std::abs(dim.number));
    case DimInfo::Kind::composite:
      return "(" + name_of(dim.axis) + ", " + name_of(dim.fast) + ")";
    case DimInfo::Kind::constant:
      return std::to_string(dim.number);
    case DimInfo::Kind::pack:
      return name_of(dim.axis) + "...";
  }
  return {};
}

Tree Generator::parameter(const TensorInfo& tensor) {
  std::string dims;
  for (const DimInfo& dim : tensor.dims) dims += (dims.empty() ? "" : ", ") + dim_text(dim);
  return Tree::form(tensor.access + " " + tensor.name + ": " + tensor.type + "[" + dims + "]$",
                    {Tree::list("", {tensor.contract})});
}

std::string Generator::type_of(Class klass) {
  switch (klass) {
    case Class::real:
      if (has_float_variable_ && chance(45)) return "T";
      return pick({"f32", "f32", "f32", "f32", "bf16", "f16", "f64", "f32", "bf16", "f16", "f8e4m3", "f8e5m2"});
    case Class::integer:
      if (has_int_variable_ && chance(40)) return "K";
      return pick({"i32", "i32", "i32", "i8", "i64", "u8", "i16", "u16"});
    case Class::word:
      return "u32";
    case Class::boolean:
      return "bool";
  }
  return {};
}

void Generator::make_axes() {
  if (chance(12)) axes_.push_back({some_name({"rows", "lead"}), true});
  const int plain = 2 + below(3);
  for (int i = 0; i < plain; ++i) {
    AxisInfo axis{some_name({"row", "col", "b",    "s",     "c",    "d",  "k",      "n",   "m",     "i",
                             "j",   "tok", "head", "group", "tile", "in", "sorted", "let", "phase", "worker"})};
    axis.within = static_cast<int>(axes_.size());
    axes_.push_back(axis);
  }
  if (chance(35)) {
    AxisInfo axis{some_name({"two", "half", "di", "w"})};
    axis.constant = 1 + below(3);
    axis.within = static_cast<int>(axes_.size());
    head_.kids.push_back(Tree::form("axis " + axis.name + " = " + std::to_string(axis.constant)));
    axes_.push_back(axis);
  }
  if (chance(30)) {
    int of = below(static_cast<int>(axes_.size()));
    if (!axes_[static_cast<std::size_t>(of)].pack) {
      AxisInfo axis{some_name({"other", "j", "u"})};
      axis.within = of;
      axis.constant = axes_[static_cast<std::size_t>(of)].constant;
      std::string text = chance(70) ? "axis $ = extent(@)" : "axis $ in 0 .. extent(@)";
      text.replace(text.find('@'), 1, name_of(of));
      text.replace(text.find('$'), 1, axis.name);
      head_.kids.push_back(Tree::form(text));
      axes_.push_back(axis);
    }
  }
  int program = 0;
  for (AxisInfo& axis : axes_)
    if (program < 3 && chance(axis.pack ? 80 : 45)) {
      axis.program = true;
      ++program;
    }
}

void Generator::make_scalars() {
  std::vector<int> plain;
  for (int axis : axes_of(launch_axes()))
    if (!axes_[static_cast<std::size_t>(axis)].pack) plain.push_back(axis);
  auto scalar = [&](const char* wish, Class klass, const std::string& declaration) {
    std::string name = fresh(wish);
    params_.kids.push_back(Tree::form(name + ": " + declaration));
    values_.push_back({name, klass, 0, 0, true});
  };
  if (chance(40)) scalar("scale", Class::real, "f32" + pick({"", " = 0.25", " = 1e-5"}));
  if (chance(15)) scalar("root", Class::real, "f32 = 1 / sqrt(f32(extent(" + name_of(pick(plain)) + ")))");
  if (chance(10)) scalar("wide", Class::real, pick({"f64", "bf16", "f16 = 0.1"}));
  if (chance(20)) scalar("width", Class::integer, "i32" + pick({"", " = 2"}));
  if (chance(8)) scalar("flag", Class::boolean, "bool" + pick({"", " = true"}));
  if (chance(10)) {
    std::string name = fresh("mid");
    head_.kids.push_back(Tree::form(name + " = extent(" + name_of(pick(plain)) + ") // 2"));
    values_.push_back({name, Class::integer, 0, 0, true});
  }
  if (chance(8))
    head_.kids.push_back(Tree::form("require extent(" + name_of(pick(plain)) + ") " + pick({"> 0", ">= 2", "!= 3"})));
}

// Bodies see their own parameters only.
void Generator::make_functions() {
  quiet_ = true;
  if (chance(30)) {
    FunctionInfo f{"blend", 2, chance(50) ? 1 : 0, chance(70) ? 1 : 2};
    values_ = {{"x", Class::real, 0, 0, false}, {"y", Class::real, 0, 0, false}};
    Tree inner = gen(Class::real, {0, 0}, 2).tree, outer = gen(Class::real, {0, 0}, 2).tree;
    std::string head = std::string("def blend(x, y") + (f.axes ? ", t)" : ")");
    Tree first = f.axes ? Tree::form(pick({"sum", "max", "mean"}) + "(x * 0.5 + $, t)", {inner}) : inner;
    Tree second = f.axes ? Tree::form("max(x, t)") : outer;
    if (f.results == 1 && chance(50))
      files_.kids.push_back(Tree::form(head + " = $", {first}));
    else if (f.results == 1)
      files_.kids.push_back(Tree::form(head + " {\n  p = $\n  return p * 2 + $\n}", {first, second}));
    else
      files_.kids.push_back(Tree::form(head + " {\n  p = $\n  return (p, $)\n}", {first, second}));
    defs_.push_back(f);
  }
  if (chance(30)) {
    switch (below(5)) {
      case 0:
        files_.kids.push_back(Tree::form(
            "reducer lse(x) {\n  identity m = -inf, s = 0\n  lift m = x, s = 1\n"
            "  merge m = maximum(a.m, b.m), s = a.s * exp_diff(a.m, m) + b.s * exp_diff(b.m, m)\n  finish m + log(s)\n}"));
        reducers_.push_back({"lse", 1, 1, 1});
        break;
      case 1:
        files_.kids.push_back(
            Tree::form("reducer spread(x) {\n  identity lo = inf, hi = -inf\n  lift lo = x, hi = x\n"
                       "  merge lo = minimum(a.lo, b.lo), hi = maximum(a.hi, b.hi)\n  finish hi - lo\n}"));
        reducers_.push_back({"spread", 1, 1, 1});
        break;
      case 2:
        files_.kids.push_back(Tree::form(
            "reducer weighted(x, w) {\n  identity s = 0, n = 0\n  lift s = x * w, n = w\n  merge s = a.s + b.s, n = a.n + b.n\n"
            "  finish where(n == 0, 0, s / n)\n}"));
        reducers_.push_back({"weighted", 2, 1, 1});
        break;
      case 3:
        files_.kids.push_back(Tree::form(
            "reducer affine(m, c) {\n  identity p = 1, q = 0\n  lift p = m, q = c\n  merge p = a.p * b.p, q = a.q * b.p + b.q\n"
            "  finish q\n}"));
        reducers_.push_back({"affine", 2, 1, 1, true});
        break;
      default:
        files_.kids.push_back(
            Tree::form("reducer best(x, i) {\n  identity v = -inf, i = -1\n  lift v = x, i = i\n"
                       "  merge v = maximum(a.v, b.v), i = where(a.v > b.v or (a.v == b.v and a.i < b.i and a.i >= 0) or b.i < "
                       "0, a.i, b.i)\n"
                       "  finish (v, i)\n}"));
        reducers_.push_back({"best", 2, 1, 2, false, true});
        break;
    }
  }
  values_.clear();
  quiet_ = false;
}

// A new input over some of the axes that a value may have here.
int Generator::input(Class klass, Mask allowed) {
  TensorInfo tensor;
  tensor.name = some_name({"x", "w", "q", "v", "bias", "gamma", "next_", "group", "out_"});
  tensor.access = "in";
  tensor.klass = klass;
  tensor.type = type_of(klass);
  std::vector<int> axes;
  for (int axis : axes_of(allowed)) {
    const AxisInfo& info = axes_[static_cast<std::size_t>(axis)];
    int bearer = info.region ? info.within : axis;
    if (bearer >= 0 && chance(65) && std::find(axes.begin(), axes.end(), bearer) == axes.end()) axes.push_back(bearer);
  }
  std::shuffle(axes.begin(), axes.end(), random_);
  if (axes.size() > 4) axes.resize(4);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const AxisInfo& info = axes_[static_cast<std::size_t>(axes[i])];
    if (info.pack) {
      tensor.dims.push_back({DimInfo::Kind::pack, axes[i]});
    } else if (i + 1 < axes.size() && !axes_[static_cast<std::size_t>(axes[i + 1])].pack &&
               (info.constant || axes_[static_cast<std::size_t>(axes[i + 1])].constant ? chance(50) : chance(6))) {
      tensor.dims.push_back({DimInfo::Kind::composite, axes[i], axes[i + 1]});
      ++i;
    } else if (chance(8)) {
      tensor.dims.push_back({DimInfo::Kind::offset, axes[i], -1, chance(90) ? 1 + below(2) : -1});
    } else {
      tensor.dims.push_back({DimInfo::Kind::axis, axes[i]});
    }
  }
  if (chance(6)) tensor.dims.push_back({DimInfo::Kind::constant, -1, -1, 1 + below(3)});
  if (klass == Class::integer && chance(30))
    tensor.contract = Tree::form(pick({" in 0 .. 5", " in -3 .. 4 sorted", " sorted", " in 0 .. 100 distinct"}));
  tensors_.push_back(tensor);
  ++inputs_;
  return static_cast<int>(tensors_.size()) - 1;
}

// A new input of indices into the extent of an axis.
int Generator::gather(int axis, Mask allowed) {
  TensorInfo tensor;
  tensor.name = some_name({"label", "index", "pos", "seq"});
  tensor.access = "in";
  tensor.klass = Class::integer;
  tensor.type = pick({"i32", "i32", "i64", "i16", "u8"});
  for (int a : axes_of(allowed & launch_axes()))
    if (chance(40) && tensor.dims.size() < 2)
      tensor.dims.push_back({axes_[static_cast<std::size_t>(a)].pack ? DimInfo::Kind::pack : DimInfo::Kind::axis, a});
  tensor.contract = Tree::form(" in 0 .. extent(" + name_of(axis) + ")" + (chance(10) ? " sorted" : ""));
  tensor.gathers = axis;
  tensors_.push_back(tensor);
  ++inputs_;
  return static_cast<int>(tensors_.size()) - 1;
}

// An axis of no dimension has no extent.
void Generator::bind_axes() {
  Mask bound = 0;
  for (const TensorInfo& tensor : tensors_)  // a factor beside an empty one is not bound by their product
    for (const DimInfo& dim : tensor.dims)
      if (dim.kind != DimInfo::Kind::composite) bound |= mask_of({dim});
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if ((bound >> a & 1) || axes_[a].region || (axes_[a].within == static_cast<int>(a) && axes_[a].constant)) continue;
    if (axes_[a].within != static_cast<int>(a) && !axes_[a].pack) continue;
    tensors_.push_back({some_name({"shape"}),
                        "in",
                        type_of(Class::real),
                        Class::real,
                        {{axes_[a].pack ? DimInfo::Kind::pack : DimInfo::Kind::axis, static_cast<int>(a)}}});
  }
}

Generated Generator::run() {
  Generated g;
  has_float_variable_ = chance(35);
  has_int_variable_ = chance(12);
  make_functions();
  make_axes();
  make_scalars();
  statements();
  bind_axes();
  for (const TensorInfo& tensor : tensors_) params_.kids.push_back(parameter(tensor));
  std::shuffle(params_.kids.begin(), params_.kids.end(), random_);
  auto used = [&](const char* variable) {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const TensorInfo& t) { return t.type == variable; });
  };
  std::string variables;
  if (used("T")) {
    variables = "T: float";
    g.types["T"] = pick(std::vector<DType>{f32, f32, bf16, f16, f64});
  }
  if (used("K")) {
    variables += variables.empty() ? "K: int" : ", K: int";
    g.types["K"] = pick(std::vector<DType>{i32, i8, i64, i16});
  }
  std::string program;
  for (const AxisInfo& axis : axes_) {
    if (axis.pack) g.packs[axis.name] = below(3);
    if (axis.program) program += (program.empty() ? "" : ", ") + axis.name + (axis.pack ? "..." : "");
  }
  files_.kids.push_back(Tree::form(
      "program fuzz" + (variables.empty() ? "" : "<" + variables + ">") + "($) {\n$\nparallel " + program + " {\n$\n}\n}",
      {std::move(params_), std::move(head_), std::move(body_)}));
  g.tree = Tree::form("$\n", {std::move(files_)});
  return g;
}

Generated generate(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace cosmati::fuzz
