// A program's text with arguments, run by the oracle. Extents come from the shapes of plain dimensions or are given by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "language/source.h"
#include "oracle/oracle.h"
#include "tests/file_text.h"

namespace cosmati::oracle {

using Values = std::vector<double>;
using Shape = std::vector<std::int64_t>;

inline std::int64_t count(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n *= s;
  return n;
}

// Values that float32, and mostly float16, hold exactly enough: rounded to float32.
inline Values normal(const Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  Values out(count(shape));
  for (double& v : out) v = draw(random);
  return out;
}

class Case {
 public:
  explicit Case(const std::string& text, const std::string& name = "", DType t = DType::f32_, int pack = 1) {
    for (const auto& source : language::parse(text, "test.tile")) {
      if (!name.empty() && source->signature().name != name) continue;
      language::Binding binding;
      for (const auto& variable : source->signature().type_variables) binding.types[variable.first] = t;
      for (const auto& parameter : source->signature().parameters)
        if (!parameter.pack.empty()) binding.packs[parameter.pack] = pack;
      program = source->instantiate(binding);
      break;
    }
    inputs.tensors.resize(program.tensors.size());
    inputs.scalars.resize(program.scalars.size());
    inputs.extents.assign(program.axes.size(), 0);
  }

  Case& tensor(const std::string& name, Shape shape, const Values& values = {}) {
    for (std::size_t t = 0; t < program.tensors.size(); ++t) {
      if (program.tensors[t].name != name) continue;
      const DType type = program.tensors[t].dtype;
      storage_.emplace_back(static_cast<std::size_t>(count(shape) * byte_size(type)) + 8);
      char* data = storage_.back().data();
      for (std::size_t k = 0; k < values.size(); ++k) {
        ops::Scalar s{values[k], static_cast<std::int64_t>(std::isfinite(values[k]) ? values[k] : 0)};
        if (is_float(type)) s.f = ops::round_to(type, s.f);
        ops::store(type, data + static_cast<std::ptrdiff_t>(k) * byte_size(type), s);
      }
      for (std::size_t d = 0; d < shape.size(); ++d)
        if (const ir::Dim& dim = program.tensors[t].dims[d]; dim.size() == 1 && dim[0].axis)
          inputs.extents[dim[0].axis.index] = shape[d] - dim[0].offset;
      inputs.tensors[t] = TensorView{};
      inputs.tensors[t].data = data;
      inputs.tensors[t].dtype = type;
      inputs.tensors[t].shape = std::move(shape);
      return *this;
    }
    ADD_FAILURE() << "no tensor " << name;
    return *this;
  }
  Case& scalar(const std::string& name, double value) {
    for (std::size_t s = 0; s < program.scalars.size(); ++s)
      if (program.scalars[s].name == name) {
        const DType t = program.scalars[s].dtype;
        inputs.scalars[s] = {is_float(t) ? ops::round_to(t, value) : 0, is_float(t) ? 0 : static_cast<std::int64_t>(value)};
        return *this;
      }
    ADD_FAILURE() << "no scalar " << name;
    return *this;
  }
  Case& extent(const std::string& name, std::int64_t n) {
    for (std::size_t a = 0; a < program.axes.size(); ++a)
      if (program.axes[a].name == name) inputs.extents[a] = n;
    return *this;
  }

  Result run(Mode mode = Mode::wide) {
    Options options;
    options.mode = mode;
    return run(options);
  }
  Result run(const Options& options) { return oracle::run(program, inputs, options); }
  ir::ValueId named(const std::string& name) const {
    for (const auto& [n, v] : program.names)
      if (n == name) return v;
    ADD_FAILURE() << "no value " << name;
    return {};
  }

  ir::Program program;
  Inputs inputs;

 private:
  std::deque<std::vector<char>> storage_;
};

// Output `k` is `expected` to 1e-9 * max(1, |expected|), stored everywhere, and its bound is finite and not above `bound`.
inline void expect_values(const Result& result, std::size_t k, const Values& expected, double bound = 1e-3) {
  const Array& a = result.outputs.at(k);
  ASSERT_EQ(a.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(a.stored[i]) << "output " << k << " element " << i;
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(a.values[i].f)) << "output " << k << " element " << i;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(a.values[i].f, expected[i]) << "output " << k << " element " << i;
    else
      ASSERT_NEAR(a.values[i].f, expected[i], 1e-9 * std::max(1.0, std::fabs(expected[i]))) << "output " << k << " element " << i;
    ASSERT_LE(a.error[i], bound) << "output " << k << " element " << i;
  }
}

inline void expect_integers(const Result& result, std::size_t k, const std::vector<std::int64_t>& expected) {
  const Array& a = result.outputs.at(k);
  ASSERT_EQ(a.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(a.values[i].i, expected[i]) << "output " << k << " element " << i;
    EXPECT_TRUE(a.stored[i]);
  }
}

// The typed result lies within the bounds of the wide one.
inline void expect_typed_within(const Result& wide, const Result& typed) {
  for (std::size_t k = 0; k < wide.outputs.size(); ++k)
    for (std::size_t i = 0; i < wide.outputs[k].values.size(); ++i) {
      const double w = wide.outputs[k].values[i].f, t = typed.outputs[k].values[i].f;
      if (std::isinf(wide.outputs[k].error[i]) || (std::isnan(w) && std::isnan(t)) || w == t) continue;
      ASSERT_LE(std::fabs(w - t), wide.outputs[k].error[i])
          << "output " << k << " element " << i << " wide " << w << " typed " << t;
    }
}

inline Error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::bad_argument, {}, "none");
}

}  // namespace cosmati::oracle
