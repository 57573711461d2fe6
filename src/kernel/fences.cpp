// Goes through a phase with what was touched since the last fence. Where two accesses of one memory are seen to be by the same
// lane they need none; what is not seen is kept apart.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/fences.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kernel/sums.h"
#include "support/overloaded.h"

namespace cosmati::kernel {
namespace {

using support::overloaded;

struct Access {
  std::uint32_t memory;
  bool write;
  std::optional<Sum> of_lane;  // equal: the lanes touch the same elements each; nothing: any lane may touch any element
  auto operator<=>(const Access&) const = default;
};
using Accesses = std::set<Access>;

bool conflict(const Access& a, const Access& b) {
  return a.memory == b.memory && a.write != b.write && !(a.of_lane && a.of_lane == b.of_lane);
}

class Fencer {
 public:
  Fencer(Kernel& k, const SameMemory& same) : k_(k), b_(k), sums_(k) {
    for (std::uint32_t i = 0; i < k.buffers.size(); ++i) memory_.push_back(i);
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t i = 0; i < k.buffers.size(); ++i)
        for (std::uint32_t j = 0; j < i; ++j)
          if (memory_[i] != memory_[j] && shared(k.buffers[i], k.buffers[j], same))
            memory_[i] = memory_[j] = std::min(memory_[i], memory_[j]), again = true;
    }
  }

  void run() {
    for (Phase& p : k_.phases) {
      if (!p.apart || p.lanes == 1) continue;
      lanes_ = p.lanes;
      p.body = block(Block(p.body), {}, true).first;
    }
  }

 private:
  static bool shared(const Buffer& a, const Buffer& b, const SameMemory& same) {
    if (a.kind != Buffer::Kind::argument || b.kind != Buffer::Kind::argument) return false;
    return a.tensor == b.tensor || same.contains({a.tensor, b.tensor}) || same.contains({b.tensor, a.tensor});
  }

  // Which lane touches an offset: what is left of it where whole rounds of the lanes are taken away.
  std::optional<Sum> of_lane(ExprId offset) const {
    const auto sum = sums_(offset);
    if (!sum) return std::nullopt;
    const auto lane = sum->find({Leaf{Leaf::What::lane}});
    const std::int64_t round = lane == sum->end() ? 0 : lane->second * lanes_;
    Sum left;
    for (const auto& [leaves, count] : *sum) {
      const auto is = [&](Leaf::What what) {
        return std::any_of(leaves.begin(), leaves.end(), [&](const Leaf& l) { return l.what == what; });
      };
      if (is(Leaf::What::lane)) {
        if (leaves.size() > 1) return std::nullopt;
        left[leaves] = count;
      } else if (const std::int64_t rest = round == 0 ? count : count % round; rest != 0) {
        if (is(Leaf::What::var)) return std::nullopt;
        left[leaves] = rest;
      }
    }
    return round == 0 ? std::nullopt : std::optional(left);
  }

  // ---- what statements touch ----
  void reads(ExprId e, Accesses& out) const {
    const ExprNode& x = k_[e].node;
    if (const auto* a = std::get_if<Apply>(&x)) {
      for (ExprId arg : a->args) reads(arg, out);
    } else if (const auto* s = std::get_if<Shuffle>(&x)) {
      reads(s->value, out);
    } else if (const auto* l = std::get_if<Load>(&x)) {
      for (const auto& part : {std::optional(l->ref.offset), l->guard, l->otherwise})
        if (part) reads(*part, out);
      touch(l->ref, false, out);
    }
  }
  void touch(const Ref& ref, bool write, Accesses& out) const {
    out.insert({memory_[ref.buffer.index], write, of_lane(ref.offset)});
  }

  // ---- the walk ----
  static bool meet(const Accesses& before, const Accesses& now) {
    return std::any_of(now.begin(), now.end(), [&](const Access& a) {
      return std::any_of(before.begin(), before.end(), [&](const Access& b) { return conflict(a, b); });
    });
  }
  void then(Accesses& since, const Accesses& now, Block& out, bool insert) {
    if (meet(since, now)) {
      if (insert) out.push_back(b_.statement(Fence{}));
      since.clear();
    }
    since.insert(now.begin(), now.end());
  }

  // The block with its fences, and what is touched after the last of them; without `insert` the statements stay as they are.
  std::pair<Block, Accesses> block(const Block& statements, Accesses since, bool insert) {
    Block out;
    for (StmtId s : statements) {
      const StmtNode node = k_[s].node;
      Accesses now;
      std::visit(overloaded{
                     [&](const Let& x) {
                       reads(x.value, now);
                       then(since, now, out, insert);
                     },
                     [&](const For& x) {
                       for (ExprId e : {x.lo, x.hi}) reads(e, now);
                       for (const For::Carry& c : x.carries) reads(c.init, now);
                       then(since, now, out, insert);
                       // A turn begins with what the one before it has left.
                       Accesses first = turn(x, since, false).second;
                       first.insert(since.begin(), since.end());
                       auto [body, left] = turn(x, std::move(first), insert);
                       if (insert) std::get<For>(k_.stmts[s.index].node).body = std::move(body);
                       since.insert(left.begin(), left.end());
                     },
                     [&](const If& x) {
                       reads(x.condition, now);
                       then(since, now, out, insert);
                       auto [one, left] = block(x.then, since, insert);
                       auto [other, right] = block(x.otherwise, since, insert);
                       if (insert) {
                         auto& own = std::get<If>(k_.stmts[s.index].node);
                         own.then = std::move(one), own.otherwise = std::move(other);
                       }
                       since = std::move(left);
                       since.insert(right.begin(), right.end());
                     },
                     [&](const Store& x) {
                       for (const auto& part : {std::optional(x.ref.offset), x.guard})
                         if (part) reads(*part, now);
                       reads(x.value, now);
                       Accesses written;
                       touch(x.ref, true, written);
                       if (insert && meet(now, written)) {  // all have read before the first writes
                         const ExprId value = b_.let(out, "value", x.value);
                         std::get<Store>(k_.stmts[s.index].node).value = value;
                       }
                       then(since, now, out, insert);
                       then(since, written, out, insert);
                     },
                     [](const Prefetch&) {},
                     [&](const Fence&) { since.clear(); },
                 },
                 node);
      out.push_back(s);
    }
    return {std::move(out), std::move(since)};
  }

  std::pair<Block, Accesses> turn(const For& x, Accesses since, bool insert) {
    auto [body, left] = block(x.body, std::move(since), insert);
    Accesses now;
    for (const For::Carry& c : x.carries) reads(c.next, now);
    then(left, now, body, insert);
    return {std::move(body), std::move(left)};
  }

  Kernel& k_;
  Builder b_;
  Sums sums_;
  std::vector<std::uint32_t> memory_;  // of each buffer
  std::int64_t lanes_ = 1;
};

}  // namespace

void add_fences(Kernel& k, const SameMemory& same) { Fencer(k, same).run(); }

}  // namespace cosmati::kernel
