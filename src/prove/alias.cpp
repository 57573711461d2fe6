// An `out` in the memory of an `in`. What is read must not have been overwritten: each instance reads only what it stores itself,
// no store reads what an earlier one wrote, and what is read while a store runs is read at the very point that stores it, or was
// reduced before the store can begin.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "ir/describe.h"
#include "prove/stores.h"

namespace cosmati::prove {

Proof prove_exact_alias(const ir::Program& program, ir::TensorId in, ir::TensorId out) try {
  const ir::Tensor &source = program[in], &target = program[out];
  auto refuse = [&](const Where& where, const std::string& why) {
    return Proof{Refusal{ErrorCode::overlap, where,
                         fmt::format("{} may not be stored over {}: {}", target.name, source.name, why),
                         fmt::format("pass separate memory for {}", target.name), ""}};
  };
  if (source.dtype != target.dtype || source.dims.size() != target.dims.size())
    return refuse(target.where, "their types or numbers of dimensions differ");

  Terms terms(program);
  Env separate;
  separate.separate = true;
  ir::AxisSet programs = program.program_axes;
  std::sort(programs.begin(), programs.end());

  // Everything evaluated, with the first store (in text order) that may run at the same time or later.
  struct Group {
    std::vector<Root> roots;
    std::size_t store;
    bool before;  // complete before any store begins, as far as an instance goes
  };
  std::vector<Group> groups;
  for (std::size_t k = 0; k < program.stores.size(); ++k) {
    std::vector<Root> roots{program.stores[k].value};
    for (const ir::Index& i : program.stores[k].index) roots.insert(roots.end(), i.begin(), i.end());
    groups.push_back({roots, k, false});
  }
  for (std::size_t s = 0; s < program.streams.size(); ++s) {
    std::optional<std::size_t> inside;
    for (std::size_t k = 0; k < program.stores.size() && !inside; ++k)
      for (std::optional<ir::StreamId> i = program.stores[k].stream; i; i = program[*i].parent)
        if (i->index == s && program.stores[k].tensor == out) inside = k;
    Group g{{}, inside.value_or(0), !inside};
    for (const ir::Carry& c : program.streams[s].carries) {
      g.roots.emplace_back(c.init);
      g.roots.emplace_back(c.next);
    }
    groups.push_back(std::move(g));
  }
  Group ranges{{}, 0, true};
  for (const ir::Axis& a : program.axes) {
    if (a.lo) ranges.roots.emplace_back(*a.lo);
    if (a.hi) ranges.roots.emplace_back(*a.hi);
  }
  groups.push_back(std::move(ranges));

  for (const Group& g : groups) {
    for (const LoadSite& site : sites_of(terms, g.roots, separate).loads) {
      const auto& load = std::get<ir::Load>(program[site.value].node);
      if (load.tensor != in) continue;
      const std::string access = ir::describe(program, load.tensor, load.index);
      for (std::size_t k = 0; k < program.stores.size(); ++k) {
        const ir::Store& s = program.stores[k];
        if (s.tensor != out || reads_other(terms, site, s)) continue;
        const Where& where = program[site.value].where;
        const std::string stored = ir::describe(program, s.tensor, s.index);
        if (k < g.store && !g.before) return refuse(where, fmt::format("{} is read after {} is stored", access, stored));
        ir::AxisSet axes = ir::set_minus(programs, program[s.value].done);
        if (!reads_own(terms, site, s, axes))
          return refuse(where, fmt::format("another instance than the one that reads {} may store it with {}", access, stored));
        if (g.before || site.settled) continue;
        if (!reads_own(terms, site, s, instance_axes(program, s)))
          return refuse(where, fmt::format("{} may be read after {} has stored that element", access, stored));
      }
    }
  }
  return {};
} catch (const TooLarge&) {
  return {Refusal{ErrorCode::overlap, program[out].where,
                  fmt::format("{} may not be stored over {}: their indices are too large to be compared", program[out].name,
                              program[in].name),
                  "pass separate memory", ""}};
}

}  // namespace cosmati::prove
