// How far an expansion is from the reference: the largest error in units of the last place, and what must be exact (NaN,
// infinities, zeros and their signs). References are the C library in double.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/ulp/lanes.h"

namespace cosmati::ulp {

struct Function {
  Op op;
  double below = std::numeric_limits<double>::infinity();  // the bound is for |x| < below; beyond, results are in -1 .. 1
  double reference(double x, double y) const {
    if (op == Op::exp_diff)
      y = static_cast<double>(static_cast<float>(x) - static_cast<float>(y)), x = std::isinf(x) && x < 0 ? x : y, y = 0;
    const double args[] = {x, y};
    return ops::reference_wide(op, args);
  }
};

// Every expanded row of ops.def that rounds.
inline const std::vector<Function>& functions() {
  static const std::vector<Function> rows = [] {
    std::vector<Function> found;
    for (int i = 0; i < ops::op_count; ++i) {
      const Op op = static_cast<Op>(i);
      const ops::OpInfo& row = ops::info(op);
      if (row.kind != ops::Kind::expanded || row.ulp == 0) continue;
      found.push_back({op});
      if (op == Op::sin || op == Op::cos) found.back().below = 65536;
    }
    return found;
  }();
  return rows;
}

struct Accuracy {
  double normal = 0, subnormal = 0;  // largest errors: in ulp of normal results, in 2^-149 for subnormal ones
  float worst_x = 0, worst_y = 0;    // of `normal`
  std::uint64_t wrong = 0;           // results that must be exact and are not
  std::string first_wrong;

  void add(const Function& f, float x, float y, float got) {
    if (!(std::fabs(x) < f.below) && std::isfinite(x)) {
      if (!(std::fabs(got) <= 1)) fail(x, y, got, 1);
      return;
    }
    const double want = f.reference(x, y);
    if (std::isnan(want) || std::isinf(want) || want == 0) {
      const bool same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
      if (!same) fail(x, y, got, want);
      return;
    }
    const float nearest = static_cast<float>(want);
    if (got == nearest && std::isinf(got)) return;
    if (!(std::signbit(got) == std::signbit(want)) || std::isnan(got)) return fail(x, y, got, want);
    const double value = std::isinf(got) ? std::copysign(0x1p128, want) : static_cast<double>(got);
    const std::int64_t exponent = static_cast<std::int64_t>((std::bit_cast<std::uint64_t>(want) >> 52) & 0x7ff) - 1023;
    if (exponent < -126) {
      subnormal = std::max(subnormal, std::fabs(value - want) * 0x1p149);
      return;
    }
    const double error = std::fabs(value - want) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 23 - exponent) << 52);
    if (error > normal) normal = error, worst_x = x, worst_y = y;
  }

  void merge(const Accuracy& o) {
    if (o.normal > normal) normal = o.normal, worst_x = o.worst_x, worst_y = o.worst_y;
    subnormal = std::max(subnormal, o.subnormal);
    if (wrong == 0) first_wrong = o.first_wrong;
    wrong += o.wrong;
  }

 private:
  void fail(float x, float y, float got, double want) {
    if (wrong++ == 0) first_wrong = fmt::format("({:a}, {:a}) gives {:a}, not {:a}", x, y, got, want);
  }
};

// Arguments come from next(x, y), which fills one block of `width` lanes and says whether there are any.
template <class Next>
Accuracy measure(const Function& f, Next next) {
  Lanes lanes(kernel::expand(elementwise(f.op, DType::f32_, DType::f32_)));
  const bool binary = ops::info(f.op).arity == 2;
  float unused[width] = {};
  float* x = lanes.input<float>(0);
  float* y = binary ? lanes.input<float>(1) : unused;
  Accuracy result;
  while (next(x, y)) {
    lanes.run();
    const float* got = lanes.output<float>();
    for (int i = 0; i < width; ++i) result.add(f, x[i], y[i], got[i]);
  }
  return result;
}

// Every `step`-th bit pattern from `first` to before `last`.
inline auto patterns(std::uint64_t first, std::uint64_t last, std::uint64_t step) {
  return [=](float* x, float*) mutable {
    if (first >= last) return false;
    for (int i = 0; i < width; ++i) {
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first));
      if (first + step < last || i + 1 == width) first += step;
    }
    return true;
  };
}

// Floats where functions change their behaviour.
inline std::vector<float> edges() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> all = {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001u),
                            std::bit_cast<float>(0x7fffffffu)};
  for (float v :
       {0.0f,        0x1p-149f,   0x1p-127f,   0x1p-126f,  0x1p-100f, 0x1p-64f,   0x1p-25f,   0x1p-24f,
        0x1p-12f,    0.25f,       0.3f,        0.5f,       0.55f,     0.6931472f, 1.0f,       1.5f,
        1.5707964f,  2.0f,        3.0f,        3.1415927f, 3.95f,     4.0f,       9.01f,      10.0f,
        17.5f,       64.0f,       87.33654f,   88.72284f,  89.5f,     103.97208f, 104.5f,     126.0f,
        127.0f,      128.0f,      149.0f,      150.0f,     151.0f,    65535.0f,   8388607.0f, 8388608.0f,
        16777215.0f, 16777216.0f, 16777218.0f, 0x1p31f,    0x1p63f,   0x1p126f,   0x1p127f,   std::numeric_limits<float>::max(),
        inf})
    for (float w : {std::nextafter(v, 0.0f), v, std::nextafter(v, inf)}) {
      all.push_back(w);
      all.push_back(-w);
    }
  return all;
}

inline auto edge_pairs() {
  return [all = edges(), at = std::size_t{0}](float* x, float* y) mutable {
    const std::size_t n = all.size() * all.size();
    if (at >= n) return false;
    for (int i = 0; i < width; ++i) {
      const std::size_t j = std::min(at++, n - 1);
      x[i] = all[j / all.size()];
      y[i] = all[j % all.size()];
    }
    return true;
  };
}

// Random pairs of four kinds: any bits; results within the range of f32; bases near 1; negative bases with integer exponents.
inline auto random_pairs(std::uint64_t seed, std::uint64_t count) {
  return [=, state = seed, left = count](float* x, float* y) mutable {
    if (left == 0) return false;
    left -= std::min<std::uint64_t>(left, width);
    auto random = [&state] {
      std::uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      return z ^ (z >> 31);
    };
    for (int i = 0; i < width; ++i) {
      const std::uint64_t r = random();
      const auto a = static_cast<std::uint32_t>(r), b = static_cast<std::uint32_t>(r >> 32);
      const float unit = static_cast<float>(b) * 0x1p-31f - 1;  // -1 .. 1
      x[i] = std::bit_cast<float>(a & 0x7fffffff);
      switch (i & 3) {
        case 0:
          x[i] = std::bit_cast<float>(a);
          y[i] = std::bit_cast<float>(b);
          break;
        case 1:
          y[i] = unit * 151 / std::log2(x[i]);
          break;
        case 2:
          x[i] = std::bit_cast<float>(0x3f000000 + (a & 0xffffff));
          y[i] = unit * 151 / std::log2(x[i]);
          break;
        default:
          x[i] = -x[i];
          y[i] = std::nearbyint(unit * 151 / std::log2(-x[i]));
      }
    }
    return true;
  };
}

}  // namespace cosmati::ulp
