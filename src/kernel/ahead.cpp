// Offsets are put together again for another group or trip; of two accesses of one line of a cache one is fetched.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/ahead.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kernel/sums.h"
#include "support/overloaded.h"

namespace cosmati::kernel {
namespace {

using ops::Op;
using support::overloaded;

constexpr std::int64_t line_bytes = 64;
constexpr std::size_t most_lines = 16;  // in one trip of a loop

class Ahead {
 public:
  explicit Ahead(const Kernel& k, Kernel* written = nullptr) : k_(k), written_(written), sums_(k) {
    if (written) b_.emplace(*written);
  }

  bool added() const { return added_; }

  void phase(const Phase& p) {
    lanes_ = p.lanes;
    block(p.body);
  }

 private:
  // ---- loops ----
  const For& loop(StmtId s) const { return std::get<For>(k_[s].node); }

  void block(const Block& statements) {
    std::vector<StmtId> nests;
    for (StmtId s : statements) {
      if (!std::holds_alternative<For>(k_[s].node)) continue;
      if (straight(loop(s).body)) {
        nests.push_back(s);
        continue;
      }
      around_.push_back(loop(s).var);
      block(Block(loop(s).body));
      around_.pop_back();
    }
    for (std::size_t first = 0; first < nests.size(); ++first) {
      const std::vector<StmtId> alike = with_range_of(nests, first);
      if (alike.size() < 2) continue;
      // Memory has most time for it where a loop neither waits for its own elements nor stores results.
      const auto time = [&](StmtId s) { return std::pair(s != alike.front() && !stores_results(loop(s)), work(loop(s))); };
      const auto busiest = std::max_element(alike.begin(), alike.end(), [&](StmtId a, StmtId b) { return time(a) < time(b); });
      const std::vector<StmtId> added = fetches(alike, static_cast<std::size_t>(busiest - alike.begin()));
      if (!written_) continue;
      Block& body = std::get<For>(written_->stmts[busiest->index].node).body;
      body.insert(body.begin(), added.begin(), added.end());
    }
  }

  bool straight(const Block& body) {
    for (StmtId s : body) {
      if (std::holds_alternative<For>(k_[s].node) || std::holds_alternative<If>(k_[s].node)) return false;
    }
    return true;
  }

  bool stores_results(const For& loop) const {
    return std::any_of(loop.body.begin(), loop.body.end(), [&](StmtId s) {
      const auto* store = std::get_if<Store>(&k_[s].node);
      return store && k_[store->ref.buffer].kind == Buffer::Kind::argument;
    });
  }

  std::size_t work(const For& loop) const {
    std::size_t sum = 0;
    for (StmtId s : loop.body) {
      if (const auto* let = std::get_if<Let>(&k_[s].node)) sum += work(let->value);
      if (const auto* store = std::get_if<Store>(&k_[s].node)) sum += work(store->value);
    }
    for (const For::Carry& c : loop.carries) sum += work(c.next);
    return sum;
  }
  std::size_t work(ExprId e) const {
    const auto* a = std::get_if<Apply>(&k_[e].node);
    if (!a) return 0;
    std::size_t sum = ops::info(a->op).kind == ops::Kind::expanded && a->op != Op::cast && a->op != Op::bits ? 20 : 1;
    for (ExprId arg : a->args) sum += work(arg);
    return sum;
  }

  // All loops over the range of nests[first], if that is the first of them.
  std::vector<StmtId> with_range_of(const std::vector<StmtId>& nests, std::size_t first) const {
    std::vector<StmtId> alike;
    for (std::size_t i = 0; i < nests.size(); ++i) {
      if (!same(loop(nests[i]).lo, loop(nests[first]).lo) || !same(loop(nests[i]).hi, loop(nests[first]).hi)) continue;
      if (i < first) return {};
      alike.push_back(nests[i]);
    }
    return alike;
  }
  bool same(ExprId a, ExprId b) const {
    const ExprNode &x = k_[sums_.resolved(a)].node, &y = k_[sums_.resolved(b)].node;
    if (x.index() != y.index()) return false;
    return std::visit(overloaded{[&](const Const& c) { return c.i == std::get<Const>(y).i; },
                                 [&](const Id& i) { return i.what == std::get<Id>(y).what; },
                                 [&](const ParamRef& p) { return p.param == std::get<ParamRef>(y).param; },
                                 [&](const VarRef& v) { return v.var == std::get<VarRef>(y).var; },
                                 [&](const Apply& p) {
                                   const auto& q = std::get<Apply>(y);
                                   return p.op == q.op && p.args.size() == q.args.size() &&
                                          std::equal(p.args.begin(), p.args.end(), q.args.begin(),
                                                     [&](ExprId u, ExprId v) { return same(u, v); });
                                 },
                                 [](const auto&) { return false; }},
                      x);
  }
  // The offset in lane 0, with something else for some of its leaves.
  template <class Other>
  ExprId rebuilt(const Sum& sum, const Other& other) {
    ExprId total = b_->integer(0);
    for (const auto& [leaves, coefficient] : sum) {
      ExprId product = b_->integer(coefficient);
      bool counts = true;
      for (const Leaf& leaf : leaves) {
        counts = counts && leaf.what != Leaf::What::lane;
        if (!counts) break;
        product = b_->apply(Op::mul, {product, other(leaf)});
      }
      if (counts) total = b_->apply(Op::add, {total, product});
    }
    return total;
  }
  ExprId itself(const Leaf& leaf) {
    if (leaf.what == Leaf::What::group) return b_->group();
    return leaf.what == Leaf::What::var ? b_->var(VarId{leaf.index}) : b_->param(ParamId{leaf.index});
  }
  ExprId plus(ExprId e, std::int64_t n) { return n ? b_->apply(Op::add, {e, b_->integer(n)}) : e; }

  // ---- what is fetched ----
  struct Access {
    BufferId buffer;
    Sum offset;
    bool stored;
    std::optional<Leaf> next;  // what to add one to for where the loops go next
  };

  void loads(ExprId e, VarId own, std::vector<Access>& all) const {
    if (const auto* a = std::get_if<Apply>(&k_[e].node))
      for (ExprId arg : a->args) loads(arg, own, all);
    if (const auto* s = std::get_if<Shuffle>(&k_[e].node)) loads(s->value, own, all);
    if (const auto* l = std::get_if<Load>(&k_[e].node); l && !l->guard) add(l->ref, false, own, all);
  }
  // Whatever else an offset depends on may not be known where it is fetched.
  bool is_open(VarId v, VarId own) const { return v == own || std::find(around_.begin(), around_.end(), v) != around_.end(); }
  void add(const Ref& ref, bool stored, VarId own, std::vector<Access>& all) const {
    if (k_[ref.buffer].kind != Buffer::Kind::argument) return;
    const auto offset = sums_(ref.offset);
    if (!offset) return;
    bool by_lane = false;
    std::optional<Leaf> next;
    for (const auto& [leaves, coefficient] : *offset)
      for (const Leaf& leaf : leaves) {
        if (leaf.what == Leaf::What::var && !is_open(VarId{leaf.index}, own)) return;
        const bool moves = around_.empty() ? leaf.what == Leaf::What::group : leaf == Leaf{Leaf::What::var, around_.back().index};
        if (moves) next = leaf;
        by_lane = by_lane || (leaf.what == Leaf::What::lane && leaves.size() == 1 && coefficient == 1);
      }
    if (by_lane || lanes_ == 1) all.push_back({ref.buffer, *offset, stored, next});
  }
  std::vector<Access> accesses(const For& loop) const {
    const VarId own = loop.var;
    std::vector<Access> all;
    for (StmtId s : loop.body) {
      if (const auto* let = std::get_if<Let>(&k_[s].node)) loads(let->value, own, all);
      if (const auto* store = std::get_if<Store>(&k_[s].node)) {
        loads(store->value, own, all);
        if (!store->past_caches && !store->guard) add(store->ref, true, own, all);
      }
    }
    for (const For::Carry& c : loop.carries) loads(c.next, own, all);
    return all;
  }

  // Calls visit(access, offset) for the lines that accesses touch, once each. Wide vectors of wide elements take several.
  template <class Visit>
  void each_line(const std::vector<Access>& all, std::vector<std::pair<BufferId, Sum>>& lines, const Visit& visit) const {
    for (const Access& a : all) {
      if (lines.size() >= most_lines) return;
      const std::int64_t size = byte_size(k_[a.buffer].dtype);
      const bool has = std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
        return line.first == a.buffer && in_line(line.second, a.offset, size);
      });
      for (std::int64_t byte = 0; !has && byte < lanes_ * size; byte += line_bytes) {
        Sum offset = a.offset;
        offset[{}] += byte / size;
        lines.emplace_back(a.buffer, offset);
        visit(a, offset);
      }
    }
  }

  // Of each buffer what the first loop that touches it touches: the next time, unless this time it comes after the busiest.
  std::vector<StmtId> fetches(const std::vector<StmtId>& alike, std::size_t busiest) {
    std::vector<StmtId> statements;
    std::map<BufferId, std::size_t> first;
    std::vector<std::pair<BufferId, Sum>> lines;
    const VarId to = loop(alike[busiest]).var;
    for (std::size_t nest = 0; nest < alike.size(); ++nest) {
      const VarId from = loop(alike[nest]).var;
      std::vector<Access> all = accesses(loop(alike[nest]));
      std::erase_if(all, [&](const Access& a) {
        if (first.emplace(a.buffer, nest).first->second != nest || !a.next) return true;
        return nest == busiest && a.stored;  // what this time stores is stored at once, and the next much later
      });
      each_line(all, lines, [&](const Access& a, const Sum& offset) {
        added_ = true;
        if (!written_) return;
        const ExprId at = rebuilt(offset, [&](const Leaf& leaf) {
          if (leaf == Leaf{Leaf::What::var, from.index}) return b_->var(to);
          return plus(itself(leaf), leaf == *a.next && nest <= busiest);
        });
        statements.push_back(b_->statement(Prefetch{{a.buffer, at}, a.stored}));
      });
    }
    return statements;
  }

  // Whether `b` begins in the line that `a` begins, as far as that is known.
  static bool in_line(const Sum& a, const Sum& b, std::int64_t size) {
    const auto [x, first] = parted(a);
    const auto [y, second] = parted(b);
    const std::int64_t between = (second - first) * size;
    return x == y && between >= 0 && between < line_bytes;
  }

  const Kernel& k_;
  Kernel* written_;           // the same, where prefetches are added; else it is only asked whether there would be any
  std::optional<Builder> b_;  // of it
  const Sums sums_;
  bool added_ = false;
  std::int64_t lanes_ = 1;
  std::vector<VarId> around_;  // the loops around the block that is looked at
};

}  // namespace

void fetch_ahead(Kernel& k) {
  Ahead ahead(k, &k);
  for (const Phase& p : k.phases) ahead.phase(p);
}

bool fetches_ahead(const Kernel& k) {
  Ahead ahead(k);
  for (const Phase& p : k.phases) ahead.phase(p);
  return ahead.added();
}

}  // namespace cosmati::kernel
