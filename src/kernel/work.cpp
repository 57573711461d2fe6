// The kernel is walked once into a tree of loops that holds what does not depend on params; asking evaluates trips only.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "kernel/live.h"
#include "kernel/packs.h"
#include "kernel/tiles.h"
#include "kernel/varying.h"
#include "support/overloaded.h"

namespace cosmati::kernel {
namespace {

using ops::Op;
using support::overloaded;

constexpr double unknown_trips = 64;  // of a loop whose range depends on memory
constexpr double in_flight = 160;     // cycles of work that a core looks ahead: what waits meanwhile costs nothing
constexpr double foreseen = 0.25;     // of the cycles to enter and leave a loop, where nobody waits for the branch
constexpr double of_one = 4;          // cycles of a division of two numbers
constexpr double spilled = 4;         // others give way with every register that is short
constexpr double not_known = 4096;    // bytes from one access to the next: a page
constexpr std::size_t most_products = 16;
constexpr double never = -1;  // the time of what does not depend on a loop's carried values

// What stands between two loops, and the loops.
struct Region;
struct Loop {
  VarId var;
  ExprId lo, hi;
  bool known = false;  // its range follows from params and variables around it
  double carried = 0;  // latency from a carried value to its next one
  double spill = 0;    // cycles a trip for carried values beyond the registers
  std::unique_ptr<Region> body;
};
struct Product {  // a term of a derivative
  std::int64_t constant;
  std::vector<ExprId> factors;
};
using Slope = std::optional<std::vector<Product>>;  // nothing: not known
struct Access {
  BufferId buffer;
  double element;  // bytes
  bool stored;
  ExprId offset;
  Slope origin, lane;
  std::vector<Slope> loops;  // by the loops around it, the innermost first
};
struct Region {
  double busy = 0, latency = 0;  // of the straight code in it
  std::vector<Access> accesses;
  std::vector<std::pair<VarId, ExprId>> lets;       // integers that trips may depend on, in order
  std::vector<std::pair<std::size_t, Loop>> loops;  // each after so many lets
};

// Of the number of a group: after so many groups, a product, the next digit is another.
using Digits = std::vector<std::vector<ExprId>>;

}  // namespace

struct Work::Impl {
  Kernel k;
  Rates rates;
  Varying varying;
  std::optional<Sums> sums;
  std::vector<std::optional<std::int64_t>> steps;  // per var: from lane to lane, where it is affine
  std::vector<bool> known;                         // per var: follows from params and loop variables
  std::vector<bool> asked;                         // per var: a trip depends on it
  std::vector<double> ready;                       // per var: when it is there, from the start of its region
  std::vector<double> since;                       // per var: when, counted from the carried values of the innermost loop
  std::vector<std::optional<ExprId>> meaning;      // per var: what a let binds, or where a loop starts
  std::vector<Slope> origins;                      // per var
  std::vector<VarId> around;                       // the loops that are open, the outermost first
  std::vector<std::uint64_t> moved;                // per var: by which loops, a bit each; by the group and the lane
  int lanes = 1;                                   // of the phase that is walked
  bool in_tile = false;                            // whether the access of the statement that is walked is
  std::optional<Packs> packs;                      // where lanes go apart
  double at_once = 1;                              // elements of its access; 0: another statement's has it
  std::vector<Region> phases;
  std::vector<Digits> digits;  // per phase
  std::vector<double> live;    // per phase

  Impl(Kernel kernel, const Rates& r)
      : k(std::move(kernel)),
        rates(r),
        varying(kernel::varying(k)),
        steps(k.vars.size(), 0),
        known(k.vars.size(), false),
        asked(k.vars.size(), false),
        ready(k.vars.size(), 0),
        since(k.vars.size(), never),
        meaning(k.vars.size()),
        origins(k.vars.size(), Slope(std::in_place)),
        moved(k.vars.size(), 0) {
    for (const kernel::Phase& phase : k.phases) {
      lanes = phase.lanes;
      if (phase.apart) packs.emplace(k);
      digits.emplace_back();
      phases.push_back(region(phase.body));
      live.push_back(kernel::most_live(k, phase, varying));
    }
    for (const kernel::Phase& phase : k.phases) ask(phase.body);
    for (Region& r : phases) forget(r);
  }

  // ---- expressions ----
  std::optional<std::int64_t> step(ExprId e) const {
    if (!varying(e)) return 0;
    return std::visit(overloaded{[&](const Id&) -> std::optional<std::int64_t> { return 1; },
                                 [&](const VarRef& v) { return steps[v.var.index]; },
                                 [&](const Apply& a) -> std::optional<std::int64_t> {
                                   if (k[e].dtype != DType::i64_ || a.args.size() != 2) return std::nullopt;
                                   const auto x = step(a.args[0]), y = step(a.args[1]);
                                   if (!x || !y) return std::nullopt;
                                   if (a.op == Op::add) return *x + *y;
                                   if (a.op == Op::sub) return *x - *y;
                                   const auto* c = std::get_if<Const>(&k[a.args[*x == 0 ? 0 : 1]].node);
                                   if (a.op == Op::mul && c) return (*x == 0 ? *y : *x) * c->i;
                                   return std::nullopt;
                                 },
                                 [](const auto&) -> std::optional<std::int64_t> { return std::nullopt; }},
                      k[e].node);
  }

  bool follows(ExprId e) const {
    return std::visit(overloaded{[&](const VarRef& v) { return static_cast<bool>(known[v.var.index]); },
                                 [&](const Apply& a) {
                                   return !is_float(k[e].dtype) &&
                                          std::all_of(a.args.begin(), a.args.end(), [&](ExprId x) { return follows(x); });
                                 },
                                 [](const Const&) { return true; }, [](const ParamRef&) { return true; },
                                 [](const Id& id) { return id.what == Id::What::group; }, [](const auto&) { return false; }},
                      k[e].node);
  }

  double registers(DType t) const { return registers_of(t, 1); }
  double registers_of(DType t, double elements) const {
    return std::ceil(static_cast<double>(lanes) * elements * std::max(1, byte_size(t)) / rates.register_bytes);
  }

  struct Cost {
    double busy = 0, ready = 0, since = never;
    void operands(const Cost& other) {
      busy += other.busy;
      ready = std::max(ready, other.ready);
      since = std::max(since, other.since);
    }
    void takes(double cycles, double latency) {
      busy += cycles;
      ready += latency;
      if (since != never) since += latency;
    }
  };

  Rates::Cost rate(const Apply& a, DType argument, DType result) const {
    if (a.op == Op::div && argument == DType::f32_ && varying(a.args[0]) && !varying(a.args[1])) return rates.quotient;
    switch (a.op) {
      case Op::add:
      case Op::sub:
        return {rates.simple.busy, is_float(argument) ? rates.multiply.latency : rates.simple.latency};
      case Op::ldexp:
      case Op::mul:
      case Op::fma:
        if (!is_float(argument) && byte_size(argument) == 8) return {4 * rates.multiply.busy, 3 * rates.multiply.latency};
        return rates.multiply;
      case Op::div:
      case Op::sqrt:
        if (std::none_of(a.args.begin(), a.args.end(), [&](ExprId arg) { return varying(arg); }))
          return {std::min(rates.divide.busy, of_one), rates.divide.latency};
        return {rates.divide.busy * (byte_size(argument) == 8 ? 1.6 : 1), rates.divide.latency};
      case Op::minimum:
      case Op::maximum:
      case Op::minimum_num:
      case Op::maximum_num:
        if (is_float(argument)) return {5 * rates.simple.busy, 3 * rates.simple.latency};
        return {(byte_size(argument) == 8 ? 2 : 1) * rates.simple.busy, 2 * rates.simple.latency};
      case Op::cast:
        if (is_float(argument) || is_float(result)) return rates.convert;
        return rates.simple;
      case Op::exp:
        return rates.exp;
      case Op::bits:
        return {0, 0};
      default:
        return rates.simple;
    }
  }

  Cost cost(ExprId e) const {
    const Expr& x = k[e];
    Cost c;
    std::visit(overloaded{[&](const VarRef& v) { c = {0, ready[v.var.index], since[v.var.index]}; },
                          [&](const Apply& a) {
                            for (ExprId arg : a.args) c.operands(cost(arg));
                            apply(a, e, c);
                          },
                          [&](const Load& l) {
                            if (at_once == 0) return c.takes(0, rates.load.latency);
                            c.operands(cost(l.ref.offset));
                            if (l.guard) c.operands(cost(*l.guard));
                            if (l.otherwise) c.operands(cost(*l.otherwise));
                            access(l.ref, l.guard && varying(*l.guard), rates.load, rates.masked_load, c);
                          },
                          [&](const Shuffle& s) {
                            c.operands(cost(s.value));
                            const double n = varying(s.value) ? registers(x.dtype) : 0;
                            c.takes(n * rates.shuffle.busy, rates.shuffle.latency);
                          },
                          [](const auto&) {}},
               x.node);
    return c;
  }

  void apply(const Apply& a, ExprId e, Cost& c) const {
    const DType argument = k[a.args.back()].dtype, result = k[e].dtype;
    const bool integer = !is_float(argument) && !is_float(result);
    if (!varying(e) || (integer && step(e))) {
      if (integer) {
        const bool divides = a.op == Op::floordiv || a.op == Op::mod;
        return c.takes(rates.index.busy * (divides ? 8 : 1), rates.index.latency * (divides ? 8 : 1));
      }
    }
    const double n = varying(e) ? std::max(registers(argument), registers(result)) : 1;
    const double all = varying(e) ? lanes : 1;
    if (integer && (a.op == Op::floordiv || a.op == Op::mod)) return c.takes(all * 8 * rates.index.busy, 8 * rates.index.latency);
    const bool has = (a.op == Op::ldexp || a.op == Op::exp) && argument == DType::f32_;  // else it is expanded here
    if (ops::info(a.op).kind == ops::Kind::expanded && a.op != Op::cast && a.op != Op::bits && !has)
      return c.takes(all * rates.call.busy, rates.call.latency);
    if (a.op == Op::cast && is_float(argument) != is_float(result) && (byte_size(argument) == 8 && byte_size(result) == 8))
      return c.takes(all * rates.element.busy, rates.convert.latency);
    const Rates::Cost r = rate(a, argument, result);
    c.takes(n * r.busy, r.latency);
  }

  bool on_chip(const Ref& ref) const { return packs && k[ref.buffer].kind == Buffer::Kind::worker_scratch; }
  void access(const Ref& ref, bool masked, Rates::Cost plain, const Rates::Cost& with_mask, Cost& c) const {
    if (on_chip(ref)) plain = rates.chip, masked = false;
    if (at_once > 1) {
      const double wide = registers_of(k[ref.buffer].dtype, at_once), instructions = registers_of(DType::f32_, 1);
      return c.takes((wide + instructions) / 2 * (masked ? with_mask : plain).busy, plain.latency);
    }
    const auto by = step(ref.offset);
    if (by && *by == 0) return c.takes(plain.busy, plain.latency);
    if (by && *by == 1) {
      const double n = registers(k[ref.buffer].dtype);
      return masked ? c.takes(n * with_mask.busy, with_mask.latency) : c.takes(n * plain.busy, plain.latency);
    }
    if (in_tile)
      return c.takes(plain.busy + std::log2(lanes) * rates.shuffle.busy,
                     plain.latency + std::log2(lanes) * rates.shuffle.latency);
    // Threads that read apart take a turn for each line, of memory.
    const double turns = !by ? lanes : on_chip(ref) ? 1 : static_cast<double>(std::abs(*by));
    if (packs && turns < rates.element.busy * subgroup_lanes)
      return c.takes(registers(k[ref.buffer].dtype) * turns * plain.busy, plain.latency);
    c.takes(lanes * rates.element.busy, plain.latency + rates.element.latency);
  }

  // ---- where accesses go ----
  static constexpr std::uint64_t group_bit = 1, lane_bit = 2, gathered_bit = 4;  // the last: by an index that the group reads
  static std::uint64_t bit_of(VarId loop) { return std::uint64_t{8} << loop.index % 60; }  // two loops may share one
  std::uint64_t moves(ExprId e) const {
    const ExprNode& x = k[e].node;
    if (const auto* v = std::get_if<VarRef>(&x)) return moved[v->var.index];
    if (const auto* id = std::get_if<Id>(&x)) return id->what == Id::What::lane ? lane_bit : group_bit;
    if (const auto* l = std::get_if<Load>(&x)) {
      const std::uint64_t by = moves(l->ref.offset);
      return by & group_bit ? by | gathered_bit : by;
    }
    if (const auto* s = std::get_if<Shuffle>(&x)) return moves(s->value);
    std::uint64_t all = 0;
    if (const auto* a = std::get_if<Apply>(&x))
      for (ExprId arg : a->args) all |= moves(arg);
    return all;
  }

  // Names that use each other many times make sums without end.
  static Slope within_reason(Slope sum) { return sum && sum->size() > most_products ? std::nullopt : std::move(sum); }

  // How fast an index grows with a loop variable, or the lane where `var` is invalid.
  Slope slope(ExprId e, VarId var) const {
    const std::vector<Product> none;
    if (!(moves(e) & (var.valid() ? bit_of(var) : lane_bit))) return none;
    return std::visit(overloaded{[&](const Const&) { return Slope(none); }, [&](const ParamRef&) { return Slope(none); },
                                 [&](const Id& id) {
                                   return !var.valid() && id.what == Id::What::lane ? Slope(std::vector<Product>{{1, {}}})
                                                                                    : Slope(none);
                                 },
                                 [&](const VarRef& v) {
                                   if (var.valid() && v.var == var) return Slope(std::vector<Product>{{1, {}}});
                                   const auto& bound = meaning[v.var.index];
                                   return bound ? slope(*bound, var) : Slope(none);
                                 },
                                 [&](const Apply& a) { return slope(a, var); },
                                 [&](const Load& l) { return constant(slope(l.ref.offset, var)); },
                                 [&](const Shuffle& s) { return constant(slope(s.value, var)); }},
                      k[e].node);
  }
  // Of something that is not affine: nothing is known unless its argument does not move.
  static Slope constant(const Slope& argument) { return argument && argument->empty() ? argument : std::nullopt; }
  Slope slope(const Apply& a, VarId var) const {
    std::vector<Slope> parts;
    for (ExprId arg : a.args)
      if (parts.push_back(slope(arg, var)); !parts.back()) return std::nullopt;
    const auto still = [](const Slope& s) { return s && s->empty(); };
    if (std::all_of(parts.begin(), parts.end(), still)) return parts[0];
    if (a.op == Op::cast) return parts[0];
    if (a.args.size() != 2 || !parts[0] || !parts[1]) return std::nullopt;
    if (a.op == Op::add || a.op == Op::sub) {
      std::vector<Product> sum = *parts[0];
      for (Product p : *parts[1]) {
        if (a.op == Op::sub) p.constant = -p.constant;
        sum.push_back(std::move(p));
      }
      return within_reason(std::move(sum));
    }
    if (a.op == Op::mul && (still(parts[0]) || still(parts[1]))) {
      const std::size_t moving = still(parts[0]) ? 1 : 0;
      std::vector<Product> scaled = *parts[moving];
      const ExprId by = a.args[1 - moving];
      for (Product& p : scaled) {
        if (const auto* c = std::get_if<Const>(&k[by].node))
          p.constant *= c->i;
        else if (follows(by))
          p.factors.push_back(by);
        else
          return std::nullopt;
      }
      return scaled;
    }
    return std::nullopt;
  }

  // An index where the lane, the group and every loop variable are 0.
  Slope origin(ExprId e) const {
    if (const auto* c = std::get_if<Const>(&k[e].node)) return std::vector<Product>{{c->i, {}}};
    if (const auto* v = std::get_if<VarRef>(&k[e].node)) return origins[v->var.index];
    if (std::holds_alternative<Id>(k[e].node)) return std::vector<Product>{};
    const auto* a = std::get_if<Apply>(&k[e].node);
    if (a && a->args.size() == 2 && (a->op == Op::add || a->op == Op::sub || a->op == Op::mul)) {
      Slope x = origin(a->args[0]);
      if (!x) return std::nullopt;
      const Slope y = origin(a->args[1]);
      if (!y) return std::nullopt;
      if (a->op != Op::mul) {
        for (Product p : *y) {
          if (a->op == Op::sub) p.constant = -p.constant;
          x->push_back(std::move(p));
        }
        return within_reason(std::move(x));
      }
      std::vector<Product> all;
      for (const Product& p : *x)
        for (const Product& q : *y) {
          all.push_back({p.constant * q.constant, p.factors});
          all.back().factors.insert(all.back().factors.end(), q.factors.begin(), q.factors.end());
        }
      return within_reason(std::move(all));
    }
    if (follows(e)) return std::vector<Product>{{1, {e}}};
    return std::nullopt;
  }

  void touch(const Ref& ref, bool stored, Region& r) const {
    Access a{ref.buffer, static_cast<double>(byte_size(k[ref.buffer].dtype)), stored, ref.offset, origin(ref.offset), {}, {}};
    a.lane = slope(ref.offset, {});
    for (auto loop = around.rbegin(); loop != around.rend(); ++loop) a.loops.push_back(slope(ref.offset, *loop));
    r.accesses.push_back(std::move(a));
  }
  void touch_loads(ExprId e, Region& r) const {
    if (const auto* l = std::get_if<Load>(&k[e].node)) {
      touch_loads(l->ref.offset, r);
      if (l->guard) touch_loads(*l->guard, r);
      if (l->otherwise) touch_loads(*l->otherwise, r);
      touch(l->ref, false, r);
    } else if (const auto* a = std::get_if<Apply>(&k[e].node)) {
      for (ExprId arg : a->args) touch_loads(arg, r);
    } else if (const auto* s = std::get_if<Shuffle>(&k[e].node)) {
      touch_loads(s->value, r);
    }
  }

  // After how many groups an index that is made of the number of the group changes, which is noted where another digit begins.
  std::optional<std::vector<ExprId>> divide(ExprId e) {
    if (std::holds_alternative<Id>(k[e].node)) return std::vector<ExprId>{};
    const auto* a = std::get_if<Apply>(&k[e].node);
    if (!a) return std::nullopt;
    if (a->op != Op::floordiv && a->op != Op::mod) {
      for (ExprId arg : a->args) divide(arg);
      return std::nullopt;
    }
    std::optional<std::vector<ExprId>> span = divide(a->args[0]);
    if (!span || !follows(a->args[1])) return std::nullopt;
    const std::vector<ExprId> inside = *span;
    span->push_back(a->args[1]);
    digits.back().push_back(*span);
    return a->op == Op::mod ? inside : span;
  }

  // ---- statements ----
  Region region(const Block& block) {
    Region r;
    add(block, r);
    return r;
  }

  void add(const Block& block, Region& r) {
    const auto counts = [&](const Cost& c) {
      r.busy += c.busy;
      r.latency = std::max(r.latency, c.ready);
    };
    std::set<StmtId> turned;
    if (!packs && lanes > 1 && block.size() >= static_cast<std::size_t>(lanes)) {
      if (!sums) sums.emplace(k);
      for (const Tile& tile : tiles(k, *sums, block, static_cast<unsigned>(lanes)))
        turned.insert(tile.members.begin(), tile.members.end());
    }
    std::map<StmtId, double> packed;
    if (packs) {
      for (const Pack& pack : (*packs)(block)) {
        for (const StmtId s : pack.members) packed[s] = 0;
        packed[pack.members.front()] = static_cast<double>(pack.members.size());
      }
    }
    for (StmtId s : block) {
      in_tile = turned.contains(s);
      at_once = packed.contains(s) ? packed.at(s) : 1;
      std::visit(overloaded{[&](const Let& let) {
                              const Cost c = cost(let.value);
                              touch_loads(let.value, r);
                              meaning[let.var.index] = let.value;
                              if (!is_float(k[let.var].dtype)) origins[let.var.index] = origin(let.value);
                              if (around.empty()) divide(let.value);
                              moved[let.var.index] = moves(let.value);
                              steps[let.var.index] = step(let.value);
                              known[let.var.index] = follows(let.value);
                              ready[let.var.index] = c.ready;
                              since[let.var.index] = c.since;
                              if (known[let.var.index]) r.lets.emplace_back(let.var, let.value);
                              counts(c);
                            },
                            [&](const If& i) {
                              counts(cost(i.condition));
                              add(i.then, r);
                              add(i.otherwise, r);
                            },
                            [&](const Store& st) {
                              Cost c = cost(st.value);
                              touch_loads(st.value, r);
                              touch_loads(st.ref.offset, r);
                              if (st.guard) touch_loads(*st.guard, r);
                              touch(st.ref, true, r);
                              if (at_once == 0) return counts(c);
                              c.operands(cost(st.ref.offset));
                              if (st.guard) c.operands(cost(*st.guard));
                              access(st.ref, st.guard && varying(*st.guard), rates.store, rates.masked_store, c);
                              counts(c);
                            },
                            [&](const Fence&) {
                              r.latency += rates.fence.latency;
                              r.busy += registers(DType::f32_) * rates.fence.busy;
                            },
                            [&](const Prefetch&) { counts({rates.load.busy, 0}); },
                            [&](const For& f) {
                              counts(cost(f.lo));
                              counts(cost(f.hi));
                              r.loops.emplace_back(r.lets.size(), loop(f));
                              // Straight code after a loop that uses its results starts when all before it is done.
                              for (const For::Carry& c : f.carries) ready[c.result.index] = r.latency;
                            }},
                 k[s].node);
    }
    in_tile = false;
    at_once = 1;
  }

  Loop loop(const For& f) {
    Loop l{f.var, f.lo, f.hi, follows(f.lo) && follows(f.hi), 0, 0, std::make_unique<Region>()};
    known[f.var.index] = l.known;
    // What is bound around a loop is there when it starts.
    std::vector<double> outside(k.vars.size(), 0);
    std::swap(ready, outside);
    double held = 0;
    for (const For::Carry& c : f.carries) {
      ready[c.inner.index] = since[c.inner.index] = 0;
      steps[c.inner.index] = varying(c.inner) ? std::nullopt : std::optional<std::int64_t>(0);
      held += varying(c.inner) ? registers(k[c.inner].dtype) : 0.25;
    }
    around.push_back(f.var);
    meaning[f.var.index] = f.lo;
    origins[f.var.index] = origin(f.lo);
    moved[f.var.index] = bit_of(f.var) | moves(f.lo);
    add(f.body, *l.body);
    for (const For::Carry& c : f.carries) {
      const Cost next = cost(c.next);
      touch_loads(c.next, *l.body);
      l.body->busy += next.busy;
      l.carried = std::max(l.carried, next.since);
      steps[c.result.index] = varying(c.result) ? std::nullopt : std::optional<std::int64_t>(0);
    }
    around.pop_back();
    for (const For::Carry& c : f.carries) since[c.inner.index] = since[c.result.index] = never;
    ready = std::move(outside);
    const double beyond = held - (rates.registers - 4);  // some hold what the body needs
    l.spill = std::max(0.0, beyond) * spilled * (rates.load.busy + rates.store.busy);
    return l;
  }

  // ---- which variables trips depend on ----
  void ask(ExprId e) {
    if (const auto* v = std::get_if<VarRef>(&k[e].node)) asked[v->var.index] = true;
    if (const auto* a = std::get_if<Apply>(&k[e].node))
      for (ExprId arg : a->args) ask(arg);
  }
  void ask(const Block& block) {
    for (auto s = block.rbegin(); s != block.rend(); ++s) {
      if (const auto* f = std::get_if<For>(&k[*s].node)) ask(f->body), ask(f->lo), ask(f->hi);
      if (const auto* i = std::get_if<If>(&k[*s].node)) ask(i->then), ask(i->otherwise);
      if (const auto* let = std::get_if<Let>(&k[*s].node); let && asked[let->var.index]) ask(let->value);
    }
  }
  void forget(Region& r) {
    std::vector<std::pair<VarId, ExprId>> kept;
    std::size_t next = 0;
    for (std::size_t i = 0; i <= r.lets.size(); ++i) {
      for (; next < r.loops.size() && r.loops[next].first == i; ++next) r.loops[next].first = kept.size();
      if (i < r.lets.size() && asked[r.lets[i].first.index]) kept.push_back(r.lets[i]);
    }
    r.lets = std::move(kept);
    for (auto& [at, l] : r.loops) forget(*l.body);
  }

  // ---- at given params ----
  std::int64_t evaluate(ExprId e, const std::vector<std::int64_t>& params, const std::vector<std::int64_t>& vars) const {
    return evaluate(e, params, vars.back(), [&](VarId v) { return vars[v.index]; });
  }
  // What is bound in the first lane of a group, where the loops start, as far as it was asked for.
  struct Start {
    std::int64_t group;
    std::vector<std::optional<std::int64_t>> bound;  // per var
  };
  std::int64_t evaluate(ExprId e, const std::vector<std::int64_t>& params, Start& start) const {
    return evaluate(e, params, start.group, [&](VarId v) {
      std::optional<std::int64_t>& bound = start.bound[v.index];
      if (!bound) bound = meaning[v.index] ? evaluate(*meaning[v.index], params, start) : 0;
      return *bound;
    });
  }
  template <class Vars>
  std::int64_t evaluate(ExprId e, const std::vector<std::int64_t>& params, std::int64_t group, const Vars& vars) const {
    const Expr& x = k[e];
    if (const auto* c = std::get_if<Const>(&x.node)) return c->i;
    if (const auto* p = std::get_if<ParamRef>(&x.node)) return params[p->param.index];
    if (const auto* v = std::get_if<VarRef>(&x.node)) return vars(v->var);
    if (const auto* id = std::get_if<Id>(&x.node)) return id->what == Id::What::group ? group : 0;
    const Apply* known = std::get_if<Apply>(&x.node);
    if (!known || is_float(x.dtype)) return 0;
    const Apply& a = *known;
    const auto arg = [&](std::size_t i) { return evaluate(a.args[i], params, group, vars); };
    std::int64_t wide = 0;
    switch (a.op) {  // the common ones at once
      case Op::add:
        return __builtin_add_overflow(arg(0), arg(1), &wide) ? 0 : wide;
      case Op::sub:
        return __builtin_sub_overflow(arg(0), arg(1), &wide) ? 0 : wide;
      case Op::mul:
        return __builtin_mul_overflow(arg(0), arg(1), &wide) ? 0 : wide;
      case Op::maximum:
        return std::max(arg(0), arg(1));
      case Op::minimum:
        return std::min(arg(0), arg(1));
      default:
        break;
    }
    ops::Scalar args[3];
    for (std::size_t i = 0; i < a.args.size(); ++i) args[i].i = arg(i);
    const DType argument = k[a.args.back()].dtype;
    if (a.op == Op::cast) return ops::cast(argument, x.dtype, args[0]).i;
    if (a.op == Op::bits) return ops::reinterpret(argument, x.dtype, args[0]).i;
    return ops::reference(a.op, argument, x.dtype, args).i;
  }

  struct Asked {
    const std::vector<std::int64_t>& params;
    std::vector<std::int64_t> vars;  // the last is the group: one stands for all
    const Bytes& caches;
    int lanes = 1;
    double turn = std::numeric_limits<double>::infinity();
  };

  // After how many groups each digit of their number changes, and how many there are.
  std::vector<std::int64_t> spans(std::size_t phase, std::int64_t groups, const Asked& at) const {
    std::set<std::int64_t> all;
    for (const std::vector<ExprId>& factors : digits[phase]) {
      std::int64_t span = 1;
      for (ExprId factor : factors)
        if (__builtin_mul_overflow(span, evaluate(factor, at.params, at.vars), &span)) span = groups;
      if (span > 1 && span < groups) all.insert(span);
    }
    std::vector<std::int64_t> list = {1};
    for (const std::int64_t span : all)
      if (span % list.back() == 0) list.push_back(span);
    list.push_back(groups);
    return list;
  }
  // Bytes from the elements of one group to those of another.
  double between(const Access& a, Start& from, Start& to, const std::vector<std::int64_t>& params) const {
    const std::uint64_t by = moves(a.offset);
    if (!(by & group_bit)) return 0;
    if (by & gathered_bit) return not_known;
    const auto elements =
        static_cast<double>(evaluate(a.offset, params, to)) - static_cast<double>(evaluate(a.offset, params, from));
    return std::abs(elements) * a.element;
  }

  double bytes(const Slope& slope, double element, const Asked& at) const {
    if (!slope) return not_known;
    double sum = 0;
    for (const Product& p : *slope) {
      double product = static_cast<double>(p.constant);
      for (ExprId factor : p.factors) product *= static_cast<double>(evaluate(factor, at.params, at.vars));
      sum += product;
    }
    return sum * element;
  }

  // Cycles of accesses that find no place beside each other in the nearest cache: lines whose addresses are alike in the bits
  // that choose among its sets.
  static double conflicts(const Footprint& accesses) {
    constexpr std::int64_t line = 64, sets = 64, ways = 8;
    constexpr double from_the_next_cache = 2;
    std::set<std::pair<std::uint32_t, std::int64_t>> lines;
    for (const Touched& t : accesses) lines.emplace(t.buffer, static_cast<std::int64_t>(t.at) / line);
    std::map<std::pair<std::uint32_t, std::int64_t>, int> in_set;  // buffers begin anywhere
    for (const auto& [buffer, number] : lines) ++in_set[{buffer, number % sets}];
    double sum = 0;
    for (const auto& [where, count] : in_set)
      if (count > ways) sum += count * from_the_next_cache;
    return sum;
  }

  // Cycles of vectors that wait for a store before them, since both are at one place of a page and only that is compared at
  // first. Where arrays begin in their pages is not known; large ones begin alike. by: bytes from lane to lane.
  static double mistaken(const Footprint& accesses, const std::vector<double>& by, int lanes) {
    constexpr double page = 4096, waits = 12;
    const auto meets = [&](std::size_t load, std::size_t store) {
      const Touched &x = accesses[load], &y = accesses[store];
      return y.stored && x.buffer != y.buffer && x.run == y.run && by[load] == x.run && by[store] == y.run &&
             std::abs(std::remainder(x.at - y.at, page)) < x.run * lanes;
    };
    double sum = 0;
    for (std::size_t load = 0; load < accesses.size(); ++load)
      for (std::size_t store = 0; !accesses[load].stored && store < load; ++store)
        if (meets(load, store)) {
          sum += waits;
          break;
        }
    return sum;
  }

  // Lines of several rows that are filled in turns leave before they are whole.
  static void filled_in_turns(Footprint& accesses) {
    constexpr double line = 64;
    for (Touched& t : accesses) {
      const auto beside = [&](const Touched& other) { return other.stored && other.run < line && other.buffer == t.buffer; };
      t.ragged = t.ragged || (beside(t) && std::count_if(accesses.begin(), accesses.end(), beside) > 1);
    }
  }

  // What is done again and again takes as long as its work, unless that fills the view of the core before its end is known.
  static double again(double once, double busy) { return std::max(busy, once * std::min(1.0, busy / in_flight)); }

  struct Time {
    double cycles, busy, latency;  // in all; those in which it does not wait; those until its results are there
  };
  // What a region touches, each with the access it stems from.
  Time run(const Region& r, Asked& at, std::size_t depth, Footprint& touched, std::vector<const Access*>& from) const {
    double sum = std::max(r.busy, r.latency), busy = r.busy, latency = r.latency;
    std::vector<Footprint> parts;
    std::vector<std::vector<const Access*>> sources;
    Footprint own;
    for (const Access& a : r.accesses)
      own.push_back({a.buffer.index, bytes(a.origin, a.element, at), 1, a.element, {}, a.stored});
    std::vector<double> by;
    for (const Access& a : r.accesses) by.push_back(std::abs(bytes(a.lane, a.element, at)));
    if (depth > 0) {
      const double stalls = conflicts(own) + mistaken(own, by, at.lanes);
      sum += stalls;
      busy += stalls;
    }
    if (at.lanes > 1) own = repeated(std::move(own), at.lanes, by, at.caches);
    std::vector<std::size_t> joined;
    parts.push_back(adjoined(own, joined));
    filled_in_turns(parts.back());
    sources.emplace_back();
    for (const std::size_t i : joined) sources.back().push_back(&r.accesses[i]);
    std::size_t done = 0;
    const auto bind = [&](std::size_t to) {
      for (; done < to; ++done) at.vars[r.lets[done].first.index] = evaluate(r.lets[done].second, at.params, at.vars);
    };
    for (const auto& [before, l] : r.loops) {
      bind(before);
      double trips = unknown_trips;
      if (l.known) {
        const std::int64_t lo = evaluate(l.lo, at.params, at.vars), hi = evaluate(l.hi, at.params, at.vars);
        trips = hi > lo ? static_cast<double>(hi) - static_cast<double>(lo) : 0;
        at.vars[l.var.index] = lo + (hi > lo ? (hi - lo) / 2 : 0);  // stands in the middle
      }
      sum += rates.unroll;
      if (trips == 0) continue;
      const Region& body = *l.body;
      Footprint inner;
      std::vector<const Access*> inner_from;
      const Time turn = run(body, at, depth + 1, inner, inner_from);
      const double works = turn.busy;
      double once = turn.cycles, last = 0;
      latency += turn.latency + (trips - 1) * std::max(l.carried, rates.in_order * turn.latency);
      if (body.loops.empty()) {
        last = std::max(0.0, once - std::max(works, l.carried));
        once = works;
      } else if (trips > 1) {
        once = again(once, works);
      }
      sum += rates.loop + last + trips * (std::max(once, l.carried) + l.spill + rates.unroll);
      busy += rates.loop * foreseen + trips * (works + l.spill + rates.unroll);
      std::vector<double> advance;
      for (const Access* a : inner_from)
        advance.push_back(std::abs(bytes(a->loops[a->loops.size() - 1 - depth], a->element, at)));
      parts.push_back(repeated(std::move(inner), trips, advance, at.caches));
      sources.push_back(std::move(inner_from));
    }
    bind(r.lets.size());
    std::vector<std::size_t> kept;
    touched = together(parts, at.caches, kept);
    if (parts.size() > 2) at.turn = std::min(at.turn, kernel::bytes(touched));
    std::vector<const Access*> all;
    for (const auto& s : sources) all.insert(all.end(), s.begin(), s.end());
    for (const std::size_t i : kept) from.push_back(all[i]);
    return {sum, busy, latency};
  }
};

Work::Work(Kernel kernel, const Rates& rates) : impl_(std::make_unique<Impl>(std::move(kernel), rates)) {}
Work::~Work() = default;
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
const Kernel& Work::kernel() const { return impl_->k; }

std::vector<Work::Phase> Work::operator()(const std::vector<std::int64_t>& params, const Bytes& caches) const {
  const Kernel& k = impl_->k;
  Impl::Asked at{params, std::vector<std::int64_t>(k.vars.size() + 1, 0), caches, 1};
  std::vector<Phase> result;
  for (std::size_t i = 0; i < impl_->phases.size(); ++i) {
    const std::int64_t groups = std::max<std::int64_t>(0, evaluate(k, k.phases[i].groups, params));
    at.vars.back() = groups / 2;
    Footprint touched;
    std::vector<const Access*> from;
    at.lanes = k.phases[i].lanes;
    at.turn = std::numeric_limits<double>::infinity();
    const Impl::Time time = impl_->run(impl_->phases[i], at, 0, touched, from);
    const double cycles = groups > 1 ? Impl::again(time.cycles, time.busy) : time.cycles;
    const std::vector<std::int64_t> spans = impl_->spans(i, groups, at);
    Impl::Start first{0, std::vector<std::optional<std::int64_t>>(k.vars.size())};
    for (std::size_t digit = 0; digit + 1 < spans.size(); ++digit) {
      Impl::Start next{spans[digit], std::vector<std::optional<std::int64_t>>(k.vars.size())};
      std::vector<double> advance;
      for (const Access* a : from) advance.push_back(impl_->between(*a, first, next, params));
      const double trips = static_cast<double>(spans[digit + 1]) / static_cast<double>(spans[digit]);
      touched = repeated(std::move(touched), trips, advance, caches);
    }
    result.push_back({static_cast<double>(groups), cycles, time.busy, time.latency, impl_->live[i], std::move(touched), at.turn});
  }
  return result;
}

}  // namespace cosmati::kernel
