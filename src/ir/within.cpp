// Users before operands: the arena has operands first, and the bodies of streams before what takes their results.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "ir/program.h"

namespace cosmati::ir {
namespace {

class Within {
 public:
  explicit Within(const Program& p) : p_(p), of_value_(p.values.size()), of_stream_(p.streams.size()) {}

  std::vector<AxisSet> run() {
    AxisSet programs = p_.program_axes;
    std::sort(programs.begin(), programs.end());
    for (const Store& store : p_.stores) {
      const AxisSet& done = store.stream ? AxisSet{} : p_[store.value].done;
      const AxisSet instances = set_union(p_[store.value].axes, set_minus(programs, done));
      reach(store.value, instances);
      for (const Index& index : store.index)
        for (ValueId part : index) reach(part, instances);
      ranges(p_[store.value].axes, instances);
      if (store.stream) stream(*store.stream, programs);
    }
    for (const Axis& axis : p_.axes)
      if (axis.program)
        for (const auto& bound : {axis.lo, axis.hi})
          if (bound) reach(*bound, {});
    // A stream that stores stands before what is in it, and one that is nested has what holds it for a user.
    for (std::size_t v = p_.values.size(); v-- > 0;) visit(ValueId{static_cast<std::uint32_t>(v)});
    std::vector<AxisSet> result;
    for (const auto& within : of_value_) result.push_back(within.value_or(AxisSet{}));
    return result;
  }

 private:
  static void narrow(std::optional<AxisSet>& within, const AxisSet& here) {
    within = within ? set_minus(*within, set_minus(*within, here)) : here;
  }
  void reach(ValueId v, const AxisSet& here) { narrow(of_value_[v.index], here); }
  void ranges(const AxisSet& axes, const AxisSet& here) {
    for (AxisId axis : axes)
      for (const auto& bound : {p_[axis].lo, p_[axis].hi})
        if (bound && !p_[axis].program) reach(*bound, here);
  }
  void stream(StreamId s, const AxisSet& here) {
    narrow(of_stream_[s.index], here);
    const AxisSet& within = *of_stream_[s.index];
    ranges({p_[s].axis}, within);
    for (const Carry& c : p_[s].carries) {
      reach(c.init, within);
      reach(c.next, within);
    }
  }
  void visit(ValueId v) {
    if (!of_value_[v.index]) return;
    const AxisSet here = *of_value_[v.index];
    if (const auto* reduce = std::get_if<Reduce>(&p_[v].node)) {
      ranges(reduce->axes, here);
    }
    if (const auto* part = std::get_if<Part>(&p_[v].node))
      if (const auto* s = std::get_if<StreamId>(&part->of)) stream(*s, here);
    for (ValueId operand : operands(p_[v].node)) reach(operand, here);
  }

  const Program& p_;
  std::vector<std::optional<AxisSet>> of_value_, of_stream_;
};

}  // namespace

std::vector<AxisSet> evaluated_within(const Program& program) { return Within(program).run(); }

}  // namespace cosmati::ir
