// Runs of one access after the other are cut into the longest packs that begin at a multiple of their size.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/packs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace cosmati::kernel {

using ops::Op;

namespace {

struct Member {
  StmtId statement;
  Ref ref;
  std::optional<ExprId> guard;
  bool stored;
};

std::optional<Member> member(const Kernel& k, StmtId s) {
  const auto is_argument = [&](const Ref& ref) { return k[ref.buffer].kind == Buffer::Kind::argument; };
  if (const auto* let = std::get_if<Let>(&k[s].node)) {
    const auto* load = std::get_if<Load>(&k[let->value].node);
    const auto* otherwise = load && load->otherwise ? std::get_if<Const>(&k[*load->otherwise].node) : nullptr;
    const bool zero =
        load && (!load->otherwise || (otherwise && otherwise->i == 0 && otherwise->f == 0 && !std::signbit(otherwise->f)));
    if (zero && k[load->ref.buffer].access == Buffer::Access::read && is_argument(load->ref))
      return Member{s, load->ref, load->guard, false};
  }
  if (const auto* store = std::get_if<Store>(&k[s].node); store && is_argument(store->ref))
    return Member{s, store->ref, store->guard, true};
  return std::nullopt;
}

bool loads(const Kernel& k, ExprId e) {
  const ExprNode& x = k[e].node;
  if (std::holds_alternative<Load>(x)) return true;
  if (const auto* s = std::get_if<Shuffle>(&x)) return loads(k, s->value);
  const auto* a = std::get_if<Apply>(&x);
  return a && std::any_of(a->args.begin(), a->args.end(), [&](ExprId arg) { return loads(k, arg); });
}

// Whether two guards are the same: leaves are values.
bool same(const Kernel& k, const std::optional<ExprId>& a, const std::optional<ExprId>& b) {
  if (!a || !b) return !a && !b;
  const auto *x = std::get_if<VarRef>(&k[*a].node), *y = std::get_if<VarRef>(&k[*b].node);
  return x && y && x->var == y->var;
}

}  // namespace

Packs::Packs(const Kernel& k) : k_(k), sums_(k, true), aligned_(k.buffers.size(), false) {
  for (const ExprId condition : k.conditions) {
    const auto* equal = std::get_if<Apply>(&k[condition].node);
    if (!equal || equal->op != Op::eq) continue;
    const auto* zero = std::get_if<Const>(&k[equal->args[1]].node);
    if (!zero || zero->i != 0) continue;
    if (const auto* p = std::get_if<ParamRef>(&k[equal->args[0]].node); p && k[p->param].source == Param::Source::unaligned)
      for (std::size_t b = 0; b < k.buffers.size(); ++b)
        if (k.buffers[b].kind == Buffer::Kind::argument && k.buffers[b].tensor == k[p->param].a) aligned_[b] = true;
    const auto* mod = std::get_if<Apply>(&k[equal->args[0]].node);
    if (!mod || mod->op != Op::mod) continue;
    const auto* param = std::get_if<ParamRef>(&k[mod->args[0]].node);
    const auto* of = std::get_if<Const>(&k[mod->args[1]].node);
    if (param && of && of->i > 0) {
      std::int64_t& multiple = multiples_.try_emplace(param->param.index, 1).first->second;
      multiple = std::lcm(multiple, of->i);
    }
  }
}

bool Packs::at_multiple(const Sum& offset, std::int64_t of) const {
  return std::all_of(offset.begin(), offset.end(), [&](const auto& term) {
    const auto& [leaves, coefficient] = term;
    std::int64_t divides = std::gcd(coefficient, of);
    for (const Leaf& leaf : leaves)
      if (const auto known = multiples_.find(leaf.index); leaf.what == Leaf::What::param && known != multiples_.end())
        divides = std::gcd(divides * std::gcd(known->second, of), of);
    return divides == of;
  });
}

std::vector<Pack> Packs::operator()(const Block& statements) const {
  if (std::find(aligned_.begin(), aligned_.end(), true) == aligned_.end()) return {};
  struct Run {  // elements one after the other
    std::vector<StmtId> members;
    Ref ref;
    std::optional<ExprId> guard;
    Sum rest;
    std::int64_t first;
    bool stored;
  };
  std::vector<Pack> all;
  std::vector<Run> open;
  const auto close = [&](const Run& run) {
    const std::int64_t most = aligned_bytes / byte_size(k_[run.ref.buffer].dtype);
    const auto count = static_cast<std::int64_t>(run.members.size());
    for (std::int64_t at = 0; at < count;) {
      std::int64_t n = most;
      Sum offset = run.rest;
      offset[{}] = run.first + at;
      while (n > 1 && (at + n > count || !at_multiple(offset, n))) n /= 2;
      if (n > 1) all.push_back({{run.members.begin() + at, run.members.begin() + at + n}, run.ref.buffer});
      at += n;
    }
  };
  const auto close_if = [&](const auto& holds) {
    for (const Run& run : open)
      if (holds(run)) close(run);
    std::erase_if(open, holds);
  };
  for (const StmtId s : statements) {
    const auto found = member(k_, s);
    if (!found) {
      const auto* let = std::get_if<Let>(&k_[s].node);
      if (!let || loads(k_, let->value)) close_if([&](const Run& run) { return !let || run.stored; });
      continue;
    }
    // What is stored may be what is loaded, and the other way round.
    close_if([&](const Run& run) {
      return run.stored != found->stored || (run.stored && run.ref.buffer != found->ref.buffer && k_[run.ref.buffer].aliased);
    });
    const auto offset = aligned_[found->ref.buffer.index] ? sums_(found->ref.offset) : std::nullopt;
    if (!offset) continue;
    auto [rest, constant] = parted(*offset);
    const auto before = std::find_if(open.begin(), open.end(), [&](const Run& run) {
      return run.ref.buffer == found->ref.buffer && run.rest == rest && same(k_, run.guard, found->guard);
    });
    if (before != open.end() && constant == before->first + static_cast<std::int64_t>(before->members.size())) {
      before->members.push_back(s);
      continue;
    }
    if (before != open.end()) {
      close(*before);
      open.erase(before);
    }
    open.push_back({{s}, found->ref, found->guard, std::move(rest), constant, found->stored});
  }
  close_if([](const Run&) { return true; });
  return all;
}

}  // namespace cosmati::kernel
