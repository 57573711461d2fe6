// Statements are numbered; what a loop uses of what is bound before it lives to the end of the loop.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/live.h"

#include <algorithm>
#include <map>

#include "support/overloaded.h"

namespace cosmati::kernel {
namespace {

class Lives {
 public:
  Lives(const Kernel& k, const Varying& varying) : k_(k), varying_(varying) {}

  double most(const Block& body) {
    block(body);
    std::map<std::size_t, double> changes;
    for (const auto& [var, life] : lives_) {
      const double registers = std::max(1, byte_size(k_[var].dtype) / 4);
      changes[life.first] += registers;
      changes[life.second + 1] -= registers;
    }
    double now = 0, most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, now += change);
    return most;
  }

 private:
  void bind(VarId v) {
    if (varying_(v) && is_float(k_[v].dtype)) lives_[v] = {at_, at_};
  }
  void use(ExprId e) {
    const ExprNode& x = k_[e].node;
    if (const auto* v = std::get_if<VarRef>(&x)) {
      const auto life = lives_.find(v->var);
      if (life == lives_.end()) return;
      life->second.second = std::max(life->second.second, at_);
      if (!loops_.empty() && life->second.first < loops_.front()) carried_over_.push_back(v->var);
    } else if (const auto* a = std::get_if<Apply>(&x)) {
      for (ExprId arg : a->args) use(arg);
    } else if (const auto* s = std::get_if<Shuffle>(&x)) {
      use(s->value);
    } else if (const auto* l = std::get_if<Load>(&x)) {
      for (const auto& part : {std::optional(l->ref.offset), l->guard, l->otherwise})
        if (part) use(*part);
    }
  }
  void block(const Block& b) {
    for (StmtId s : b) {
      ++at_;
      std::visit(support::overloaded{[&](const Let& x) {
                                       use(x.value);
                                       bind(x.var);
                                     },
                                     [&](const For& x) { loop(x); },
                                     [&](const If& x) {
                                       use(x.condition);
                                       block(x.then);
                                       block(x.otherwise);
                                     },
                                     [&](const Store& x) {
                                       for (const auto& part : {std::optional(x.ref.offset), std::optional(x.value), x.guard})
                                         if (part) use(*part);
                                     },
                                     [](const auto&) {}},
                 k_[s].node);
    }
  }
  void loop(const For& x) {
    for (const For::Carry& c : x.carries) use(c.init);
    loops_.push_back(at_);
    for (const For::Carry& c : x.carries) bind(c.inner);
    block(x.body);
    ++at_;
    for (const For::Carry& c : x.carries) use(c.next);
    loops_.pop_back();
    if (loops_.empty()) {
      for (VarId v : carried_over_) lives_[v].second = std::max(lives_[v].second, at_);
      carried_over_.clear();
    }
    for (const For::Carry& c : x.carries) bind(c.result);
  }

  const Kernel& k_;
  const Varying& varying_;
  std::size_t at_ = 0;
  std::map<VarId, std::pair<std::size_t, std::size_t>> lives_;
  std::vector<std::size_t> loops_;   // where those begin that are open
  std::vector<VarId> carried_over_;  // bound before the outermost of them, and used in it
};

}  // namespace

double most_live(const Kernel& k, const Phase& phase, const Varying& varying) { return Lives(k, varying).most(phase.body); }

}  // namespace cosmati::kernel
