// Proofs against brute force: random small programs, each run on many small launches by an interpreter that knows nothing of
// polynomials. What is proven must never go wrong; how often a program that never went wrong is refused is printed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "language/source.h"
#include "prove/prove.h"
#include "support/overloaded.h"

namespace cosmati {
namespace {

using ir::AxisId;
using ir::ValueId;
using Point = std::map<AxisId, std::int64_t>;

struct Illegal {};  // the launch breaks a contract or a require
struct Wrong {
  std::string what;
};

// Runs the program once on concrete extents, scalars and integer data.
class Launch {
 public:
  Launch(const ir::Program& p, std::mt19937& random) : p_(p), random_(random) {
    for (const ir::Axis& a : p.axes) {
      (void)a;
      extents_.push_back(pick(0, 6));
    }
    for (const ir::Scalar& s : p.scalars) {
      (void)s;
      scalars_.push_back(pick(-2, 7));
    }
    for (std::uint32_t k = 0; k < p.axes.size(); ++k)
      if (p.axes[k].lo && launch_level(AxisId{k})) {
        const auto [lo, hi] = range(AxisId{k}, {});
        if (p.axes[k].in_dims && hi < lo) throw Illegal{};
        extents_[k] = std::max<std::int64_t>(0, hi - lo);
      }
    for (const ir::Tensor& t : p.tensors)
      for (const ir::Dim& d : t.dims)
        for (const ir::Factor& f : d)
          if (extent(f) < 0) throw Illegal{};
    for (const auto& [condition, where] : p.requires_)
      if (!eval(condition, {})) throw Illegal{};
    for (const ir::Tensor& t : p.tensors) {
      std::int64_t size = 1;
      for (const ir::Dim& d : t.dims) size *= extent(d);
      data_.emplace_back();
      if (is_float(t.dtype)) continue;
      const std::int64_t lo = t.contract.lo ? eval(*t.contract.lo, {}) : -3, hi = t.contract.hi ? eval(*t.contract.hi, {}) : 9;
      if (size > 0 && hi <= lo) throw Illegal{};
      std::vector<std::int64_t>& data = data_.back();
      if (t.contract.distinct) {
        std::vector<std::int64_t> all;
        for (std::int64_t v = lo; v < hi; ++v) all.push_back(v);
        std::shuffle(all.begin(), all.end(), random_);
        if (static_cast<std::int64_t>(all.size()) < size) throw Illegal{};
        data.assign(all.begin(), all.begin() + size);
      } else {
        for (std::int64_t k = 0; k < size; ++k) data.push_back(pick(0, 2) ? pick(lo, hi - 1) : pick(0, 1) ? lo : hi - 1);
      }
      if (t.contract.sorted) std::sort(data.begin(), data.end());  // one dimension only
    }
  }

  void run() {
    for (const ir::Store& s : p_.stores) {
      ir::AxisSet axes = p_[s.value].axes;
      for (AxisId a : p_.program_axes)
        if (!ir::contains(p_[s.value].done, a)) axes = ir::set_union(axes, {a});
      for (const ir::Index& i : s.index)
        for (ValueId v : i) axes = ir::set_union(axes, p_[v].axes);
      each(ordered(axes), {}, [&](const Point& at) {
        instance_ = at;
        eval(s.value, at);
        const std::int64_t e = element(s.tensor, s.index, at);
        if (e < 0) throw Wrong{"store out of bounds"};
        if (!stored_.emplace(std::pair(s.tensor, e), at).second) throw Wrong{"stored twice"};
      });
    }
    for (std::uint32_t k = 0; k < p_.tensors.size(); ++k) {
      const ir::TensorId t{k};
      std::int64_t size = 1;
      for (const ir::Dim& d : p_[t].dims) size *= extent(d);
      if (p_[t].access == ir::Access::out)
        for (std::int64_t e = 0; e < size; ++e)
          if (!stored_.count({t, e})) throw Wrong{"not stored"};
    }
    for (const auto& [what, at] : reads_) {
      auto it = stored_.find(what);
      if (it == stored_.end()) continue;
      for (AxisId a : p_.program_axes)
        if (it->second.count(a) && it->second.at(a) != at.at(a)) throw Wrong{"read by another instance"};
    }
    for (std::uint32_t k = 0; k < p_.axes.size(); ++k) check_hull(AxisId{k});
  }

 private:
  std::int64_t pick(std::int64_t lo, std::int64_t hi) { return std::uniform_int_distribution<std::int64_t>(lo, hi)(random_); }
  bool launch_level(AxisId a) const { return ir::range_axes(p_, a).empty(); }
  std::int64_t extent(const ir::Factor& f) const { return f.offset + (f.axis ? extents_[f.axis.index] : 0); }
  std::int64_t extent(const ir::Dim& d) const {
    std::int64_t e = 1;
    for (const ir::Factor& f : d) e *= extent(f);
    return e;
  }
  std::pair<std::int64_t, std::int64_t> range(AxisId a, const Point& at) {
    const ir::Axis& axis = p_[a];
    if (!axis.hi) return {0, extents_[a.index]};
    return {axis.lo ? eval(*axis.lo, at) : 0, eval(*axis.hi, at)};
  }

  // Axes after those that their ranges depend on, which are added.
  std::vector<AxisId> ordered(const ir::AxisSet& axes) {
    std::vector<AxisId> result;
    std::function<void(AxisId)> add = [&](AxisId a) {
      for (AxisId b : ir::range_axes(p_, a)) add(b);
      if (std::find(result.begin(), result.end(), a) == result.end()) result.push_back(a);
    };
    for (AxisId a : p_.program_axes)
      if (ir::contains(axes, a)) add(a);
    for (AxisId a : axes) add(a);
    return result;
  }
  void each(const std::vector<AxisId>& axes, Point at, const std::function<void(const Point&)>& f, std::size_t k = 0) {
    if (k == axes.size()) return f(at);
    const auto [lo, hi] = range(axes[k], at);
    for (std::int64_t c = lo; c < hi; ++c) {
      at[axes[k]] = c;
      each(axes, at, f, k + 1);
    }
  }

  std::int64_t element(ir::TensorId tensor, const std::vector<ir::Index>& index, const Point& at) {
    const ir::Tensor& t = p_[tensor];
    std::int64_t linear = 0;
    bool inside = true;
    for (std::size_t d = 0; d < index.size(); ++d) {
      std::int64_t in_dim = 0;
      for (std::size_t f = 0; f < index[d].size(); ++f) {
        const std::int64_t size = index[d].size() == 1 ? extent(t.dims[d]) : extent(t.dims[d][f]);
        const std::int64_t c = eval(index[d][f], at);
        inside = inside && 0 <= c && c < size;
        in_dim = in_dim * size + c;
      }
      linear = linear * extent(t.dims[d]) + in_dim;
    }
    return inside ? linear : -1;
  }

  std::int64_t eval(ValueId value, const Point& at) {
    const ir::Value& v = p_[value];
    return std::visit(support::overloaded{
                          [&](const ir::Const& n) { return is_float(v.dtype) ? 0 : n.i; },
                          [&](const ir::Coord& n) { return at.at(n.axis); },
                          [&](const ir::Extent& n) { return extents_[n.axis.index]; },
                          [&](const ir::ScalarRef& n) { return scalars_[n.scalar.index]; },
                          [&](const ir::Load& n) -> std::int64_t {
                            const std::int64_t e = element(n.tensor, n.index, at);
                            if (e < 0) {
                              if (!n.otherwise) throw Wrong{"load out of bounds"};
                              return eval(*n.otherwise, at);
                            }
                            if (p_[n.tensor].access == ir::Access::inout) reads_.emplace_back(std::pair(n.tensor, e), instance_);
                            return is_float(v.dtype) ? 0 : data_[n.tensor.index].at(static_cast<std::size_t>(e));
                          },
                          [&](const ir::Elementwise& n) -> std::int64_t {
                            ops::Scalar args[3];
                            DType type = p_[n.args.back()].dtype;
                            for (std::size_t k = 0; k < n.args.size(); ++k) args[k].i = eval(n.args[k], at);
                            if (is_float(v.dtype) || is_float(type)) return 0;
                            if (n.op == ops::Op::cast) return ops::cast(type, v.dtype, args[0]).i;
                            return ops::reference(n.op, type, v.dtype, args).i;
                          },
                          [&](const ir::Reduce& n) -> std::int64_t {
                            each(ordered_inner(n.axes, at), at, [&](const Point& q) {
                              for (ValueId a : n.args) eval(a, q);
                            });
                            return 0;
                          },
                          [&](const ir::Replace& n) -> std::int64_t {
                            Point q = at;
                            for (const auto& [axis, by] : n.binds) q[axis] = eval(by, at);
                            bool inside = true;
                            for (AxisId a : p_[n.of].axes) {
                              const auto [lo, hi] = range(a, q);
                              inside = inside && lo <= q.at(a) && q.at(a) < hi;
                            }
                            if (!inside && !n.otherwise) throw Wrong{"replacement out of range"};
                            return inside ? eval(n.of, q) : eval(*n.otherwise, at);
                          },
                          [&](const auto&) -> std::int64_t { throw Illegal{}; },
                      },
                      v.node);
  }
  std::vector<AxisId> ordered_inner(const ir::AxisSet& axes, const Point&) { return {axes.begin(), axes.end()}; }

  void check_hull(AxisId axis) {
    const ir::AxisSet depends = ir::range_axes(p_, axis);
    if (depends.empty()) return;
    const std::optional<prove::Hull> h = prove::hull(p_, axis);
    if (!h) return;
    auto value = [&](const prove::Bound& b) {
      std::int64_t sum = 0;
      for (const prove::LinearTerm& t : b) {
        std::int64_t product = t.coefficient;
        for (ValueId f : t.factors) product *= eval(f, {});
        sum += product;
      }
      return sum;
    };
    const std::int64_t lo = value(h->lo), hi = value(h->hi);
    each(ordered(depends), {}, [&](const Point& at) {
      const auto [l, u] = range(axis, at);
      if (l < u && (l < lo || u > hi)) throw Wrong{"hull"};
    });
  }

  const ir::Program& p_;
  std::mt19937& random_;
  std::vector<std::int64_t> extents_, scalars_;
  std::vector<std::vector<std::int64_t>> data_;
  std::map<std::pair<ir::TensorId, std::int64_t>, Point> stored_;
  std::vector<std::pair<std::pair<ir::TensorId, std::int64_t>, Point>> reads_;
  Point instance_;
};

// Programs as text. Extents and bounds are made to fit often enough that both answers occur.
class Generator {
 public:
  explicit Generator(std::mt19937& random) : random_(random) {}

  std::string program() {
    const char* contract[] = {"",
                              "in 0 .. extent(n)",
                              "in 0 .. extent(n) distinct",
                              "in -1 .. extent(n)",
                              "in 0 .. extent(n) + 1 sorted",
                              "in 0 .. extent(n) * extent(m)",
                              "in 0 .. 4"};
    const char* x_dims[] = {"n", "n, m", "n, (m, q)", "n + 2, m", "(n, q), m", "n, 4", "n, m + 1"};
    const char* y_dims[] = {"i", "i, j",     "j, i", "(i, j)", "i, (j, two)", "i + 1, j",
                            "n", "(i, two)", "i, 3", "j, n",   "i, j + 1"};
    const char* ranges[] = {"0 .. i + 1",
                            "0 .. at",
                            "0 .. minimum(i + 1, extent(n))",
                            "maximum(0, i - w) .. i + 1",
                            "0 .. i + 1 + extent(n) - extent(i)",
                            "at .. extent(n)",
                            "0 .. at + 1",
                            "i // 2 .. extent(n)"};
    std::string x = x_dims[pick(7)], y = y_dims[pick(11)];
    const bool two_axes = y.find('j') != std::string::npos;
    const bool inout = pick(4) == 0, ranged = pick(2) == 0, more_i = pick(3) == 0;
    std::string out =
        fmt::format("program p(in x: f32[{}], in at: i32[i] {}, {} y: f32[{}], in z: f32[i, j, n, m, q], w: i32) {{\n", x,
                    contract[pick(7)], inout ? "inout" : "out", y);
    out += "  axis two = 2\n";
    if (pick(2)) out += fmt::format("  require w {} {}\n", pick(2) ? ">=" : "<", pick(2) ? "0" : "extent(n)");
    if (more_i) out += fmt::format("  require extent(i) {} extent(n)\n", pick(2) ? "<=" : "==");
    out += two_axes ? "  parallel i, j {\n" : "  parallel i {\n";
    axes_ = two_axes ? std::vector<std::string>{"i", "j"} : std::vector<std::string>{"i"};
    const std::vector<std::string> program_axes = axes_;
    if (ranged) {
      out += fmt::format("    axis t in {}\n", ranges[pick(8)]);
      axes_.push_back("t");
    }
    std::string access = fmt::format("x[{}]{}", index(x), pick(6) == 0 ? " else 0" : "");
    if (inout && pick(2)) access += fmt::format(" + (y[{}] else 0)", index(y));
    if (ranged) access = fmt::format("sum(({}) * f32(t), t)", access);
    axes_ = program_axes;
    const int form = pick(4);
    if (form == 0)
      out += fmt::format("    v = ({}) * f32(i)\n    u = v[i := {}]{}\n", access, expression(1), pick(2) ? " else 0" : "");
    else
      out += fmt::format("    u = {}\n", access);
    const int stores = 1 + (pick(3) == 0);
    for (int k = 0; k < stores; ++k) out += fmt::format("    y[{}] = u\n", store(y, k));
    return out + "  }\n}\n";
  }

 private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string atom() {
    switch (pick(9)) {
      case 0:
        return fmt::format("{}", pick(4));
      case 1:
        return pick(2) ? "w" : "at";
      case 2:
        return std::vector<std::string>{"extent(n)", "extent(i)", "extent(m)", "extent(j)"}[static_cast<std::size_t>(pick(4))];
      default:
        return axes_[static_cast<std::size_t>(pick(static_cast<int>(axes_.size())))];
    }
  }
  std::string expression(int depth) {
    if (depth == 0 || pick(4) == 0) return atom();
    const std::string a = expression(depth - 1), b = expression(depth - 1);
    switch (pick(17)) {
      case 14:
        return fmt::format("({} ^ {})", a, pick(2) ? "1" : b);
      case 15:
        return fmt::format("({} | {})", a, pick(2) ? "1" : b);
      case 16:
        return fmt::format("(at[{}] else {})", b, a);
      case 0:
        return fmt::format("({} + {})", a, b);
      case 1:
        return fmt::format("({} - {})", a, b);
      case 2:
        return fmt::format("({} * {})", a, pick(2) ? atom() : "2");
      case 3:
        return fmt::format("({} // {})", a, 1 + pick(4));
      case 4:
        return fmt::format("({} % {})", a, 1 + pick(4));
      case 5:
        return fmt::format("({} // extent(m))", a);
      case 6:
        return fmt::format("({} % extent({}))", a, pick(2) ? "m" : "n");
      case 7:
        return fmt::format("minimum({}, {})", a, pick(2) ? b : "extent(n) - 1");
      case 8:
        return fmt::format("maximum({}, {})", a, pick(2) ? b : "0");
      case 9:
        return fmt::format("where({} < {}, {}, {})", a, atom(), a, b);
      case 10:
        return fmt::format("({} & 3)", a);
      case 11:
        return fmt::format("({} >> 1)", a);
      case 12:
        return fmt::format("clamp({}, 0, extent({}) - 1)", a, pick(2) ? "n" : "m");
      default:
        return fmt::format("({} + {})", a, pick(3));
    }
  }
  // Something that is often inside the named extent.
  std::string component(const std::string& dim) {
    switch (pick(5)) {
      case 0:
        return expression(2);
      case 1:
        return fmt::format("({} % extent({}))", expression(1), dim);
      case 2:
        return fmt::format("clamp({}, 0, extent({}) - 1)", expression(1), dim);
      case 3:
        return pick(2) ? "at" : axes_.back();
      default:
        return dim == "i" || dim == "j" ? dim : axes_.back();
    }
  }
  std::string index(const std::string& dims) {
    std::string out, name;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == ' ' && k + 1 < dims.size() && dims[k + 1] == '+') {
        out += pick(2) ? fmt::format(" + {}", pick(3)) : "";
        k += 3;
      } else if (dims.compare(k, 3, "two") == 0) {
        out += fmt::format("{}", pick(2));
        k += 2;
      } else if (std::isdigit(static_cast<unsigned char>(dims[k]))) {
        out += pick(2) ? fmt::format("{}", pick(4)) : fmt::format("({} % {})", expression(1), dims[k]);
      } else if (std::isalpha(static_cast<unsigned char>(dims[k]))) {
        out += component(std::string(1, dims[k]));
      } else {
        out += dims[k];
      }
    }
    return out;
  }
  std::string store(const std::string& dims, int k) {
    if (dims == "(i, two)") return fmt::format("({}, {})", pick(4) ? "i" : expression(1), k);
    if (dims == "i, (j, two)") return fmt::format("i, (j, {})", pick(3) ? k : pick(2));
    switch (pick(6)) {
      case 0:
        return index(dims);
      case 1:
        return dims == "(i, j)" ? "i * extent(j) + j"
               : dims == "n"    ? "at"
               : dims == "j, n" ? "j, at"
               : dims == "i, j" ? "extent(i) - 1 - i, j"
                                : index(dims);
      case 2:
        return dims == "i + 1, j" ? (k ? "0, j" : "i + 1, j")
               : dims == "i, 3"   ? fmt::format("i, {}", k)
               : dims == "j, i"   ? "j, i"
                                  : "i, j";
      default:
        return dims == "i + 1, j"   ? "i + 1, j"
               : dims == "i, 3"     ? fmt::format("i, {}", k)
               : dims == "j, n"     ? "j, (at + i)"
               : dims == "n"        ? "i"
               : dims == "i, j + 1" ? fmt::format("i, j + {}", k)
                                    : dims;
    }
  }

  std::mt19937& random_;
  std::vector<std::string> axes_;
};

TEST(ProveRandom, NeverYesWrongly) {
  const char* set = std::getenv("COSMATI_PROVE_CASES");
  const int cases = set ? std::atoi(set) : 1500;
  std::mt19937 random(set ? static_cast<unsigned>(cases) : 1);
  int proven = 0, refused = 0, harmless = 0, rejected = 0, examples = 0;
  for (int k = 0; k < cases; ++k) {
    const std::string text = Generator(random).program();
    std::optional<ir::Program> program;
    try {
      program = language::parse(text, "t")[0]->instantiate({});
    } catch (const Error&) {
      ++rejected;
      continue;
    }
    const prove::Proof proof = prove::prove_program(*program);
    std::string wrong;
    int legal = 0;
    // What has a counterexample goes wrong somewhere; it may need extents or data that are rare among random ones.
    const bool shown = !proof && (proof.refusal->message.find("for example") != std::string::npos ||
                                  proof.refusal->message.find("is never stored") != std::string::npos);
    const int launches = shown ? 40000 : 60;
    for (int launch = 0; launch < 2 * launches && legal < launches && wrong.empty(); ++launch) {
      try {
        Launch l(*program, random);
        ++legal;
        l.run();
      } catch (const Illegal&) {
      } catch (const Wrong& w) {
        if (w.what == "hull")
          ADD_FAILURE() << "hull of\n" << text;
        else
          wrong = w.what;
      }
    }
    if (proof) {
      ++proven;
      ASSERT_EQ(wrong, "") << text;
    } else {
      ++refused;
      if (shown) {
        ++examples;
        EXPECT_NE(wrong, "") << legal << " launches went well, but: " << proof.refusal->message << "\n" << text;
      }
      if (wrong.empty() && legal > 20) {
        ++harmless;
        if (std::getenv("COSMATI_PROVE_SHOW")) fmt::print("harmless: {}\n{}\n", proof.refusal->message, text);
      }
    }
  }
  fmt::print("{} proven, {} refused of which {} went wrong nowhere, {} with an example; {} not programs\n", proven, refused,
             harmless, examples, rejected);
  EXPECT_GT(examples, cases / 10);
  EXPECT_GT(proven, cases / 50);
}

}  // namespace
}  // namespace cosmati
