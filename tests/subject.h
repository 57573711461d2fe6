// Subject: a program at small arguments that leave a tail everywhere, what is right for them, and a run that is judged by it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/cosmati.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "library/judge.h"
#include "library/proofs.h"
#include "library/random_inputs.h"
#include "plan/facts.h"
#include "runtime/bind.h"
#include "runtime/kernel.h"

namespace cosmati {

struct Subject {
  Program program;
  std::shared_ptr<const runtime::Instance> instance;
  library::OwnedInputs before;
  plan::Facts facts;
  kernel::Shape shape;
  library::Reference reference;

  // `whole`: extents over the axes of dimensions are multiples of it, as those are that neighbours are moved at once along.
  explicit Subject(Program of, std::int64_t whole = 1) : program(std::move(of)) {
    const runtime::Instances instances(program, library::proofs());
    instance = instances.get(language::sample_bindings(program.source().signature()).at(0));
    const ir::Program& p = instance->program;
    for (std::uint64_t attempt = 0; attempt < 20000; ++attempt) {
      auto drawn = library::random_inputs(p, 400'000 + attempt, 21);
      if (!drawn || !ragged(drawn->inputs, whole)) continue;
      before = std::move(*drawn);
      break;
    }
    if (before.storage.empty()) throw std::runtime_error(p.name + " has no arguments with ragged tails");
    facts = runtime::relied_on(runtime::facts_of(before.inputs.tensors, {}), before.inputs.tensors);
    shape = runtime::shape_of(instance->program, before.inputs);
    reference = library::reference(p, before.inputs);
  }

  // At least three instances, and over every axis of dimensions beside them, where the caller chooses its extent, more elements
  // than one vector of eight and no multiple of it.
  bool ragged(const oracle::Inputs& inputs, std::int64_t whole) const {
    const ir::Program& p = instance->program;
    std::int64_t instances = 1, points = 1;
    bool tails = true, any = false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      const std::int64_t extent = inputs.extents[a];
      points *= std::max<std::int64_t>(1, extent);
      if (p.axes[a].program) instances *= extent;
      if (p.axes[a].hi || p.axes[a].piece || !p.axes[a].in_dims) continue;
      any = any || extent > 8;
      tails = tails && extent > 0 && extent % 8 != 0 && extent % whole == 0;
    }
    for (const TensorView& view : inputs.tensors) tails = tails && view.elements() > 0;
    return instances >= 3 && tails && (any || p.axes.size() < 2) && points <= 60'000;
  }

  Arguments arguments(library::OwnedInputs& own) const {
    const ir::Program& p = instance->program;
    Arguments list;
    for (std::size_t t = 0; t < p.tensors.size(); ++t) {
      own.inputs.tensors[t].data = own.storage[t].data();
      list.emplace_back(p.tensors[t].name, own.inputs.tensors[t]);
    }
    for (std::size_t s = 0; s < p.scalars.size(); ++s) {
      if (p.scalars[s].fallback) continue;
      if (is_float(p.scalars[s].dtype))
        list.emplace_back(p.scalars[s].name, own.inputs.scalars[s].f);
      else
        list.emplace_back(p.scalars[s].name, own.inputs.scalars[s].i);
    }
    return list;
  }

  // The bytes of the outputs after f, which are poison before; judged. `what` is for messages.
  std::vector<std::vector<char>> run(const std::function<void(const Arguments&)>& f, const std::string& what) const {
    library::OwnedInputs own = before;
    const ir::Program& p = instance->program;
    for (std::size_t t = 0; t < p.tensors.size(); ++t)
      if (p.tensors[t].access == ir::Access::out) std::memset(own.storage[t].data(), 0xff, own.storage[t].size());
    f(arguments(own));
    std::vector<TensorView> got;
    std::vector<std::vector<char>> bytes;
    for (std::size_t t = 0; t < p.tensors.size(); ++t)
      if (p.tensors[t].access != ir::Access::in) {
        got.push_back(own.inputs.tensors[t]);
        bytes.push_back(own.storage[t]);
      }
    for (const Judgement& j : library::judge(p, reference, got))
      EXPECT_TRUE(j.ok) << p.name << " " << what << ": " << j.output << " is " << j.got << ", not " << j.expected;
    return bytes;
  }
};

// Every program of the language page and every shipped one.
inline const std::vector<Subject>& subjects() {
  static const std::vector<Subject> made = [] {
    std::vector<Subject> all;
    for (const Program& program : load_all("tests/programs/language_page.tile")) all.emplace_back(program);
    for (const std::string& name : shipped_programs()) all.emplace_back(load(name));
    return all;
  }();
  return made;
}

}  // namespace cosmati
