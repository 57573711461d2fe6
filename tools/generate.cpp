// Generated arrays. Element i is a pure function of (seed, name, i): splitmix64 in counter form, and a Box-Muller transform whose
// logarithm and cosine are written here, in additions, products and quotients only, since those of C libraries differ in the last
// bit.
// SPDX-License-Identifier: Apache-2.0
#include "tools/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <cosmati/error.h>

#include "ops/ops.h"
#include "support/distinct.h"

namespace cosmati::tools {
namespace {

struct Name {
  std::string_view text;
  Generator generator;
};
constexpr Name names[] = {{"normal", Generator::normal}, {"uniform", Generator::uniform}, {"zeros", Generator::zeros},
                          {"ones", Generator::ones},     {"arange", Generator::arange},   {"index", Generator::index}};

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Random {
 public:
  Random(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
    key_ = mix(seed + 0x9e3779b97f4a7c15u) ^ mix(hash);
  }
  std::uint64_t operator()(std::uint64_t i) const { return mix(key_ + (i + 1) * 0x9e3779b97f4a7c15u); }
  double unit(std::uint64_t i) const { return static_cast<double>((*this)(i) >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t i, std::uint64_t n) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)(i)) * n) >> 64);
  }

 private:
  std::uint64_t key_;
};

// ln x for x in (0, 1]: x = m * 2^e with m near 1, and 2 artanh((m - 1) / (m + 1)) as its series.
double logarithm(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + e * 0.69314718055994531;
}

// cos(2 pi u) and sin(2 pi u) for u in [0, 1): the Taylor series on an eighth of the circle around the nearest quarter.
void circle(double u, double& cosine, double& sine) {
  const int quarter = static_cast<int>(u * 4 + 0.5);
  const double x = (u - quarter * 0.25) * 6.2831853071795865, x2 = x * x;
  double c = 1, s = 1;
  for (int k = 16; k >= 2; k -= 2) c = 1 - x2 / (k * (k - 1)) * c;
  for (int k = 17; k >= 3; k -= 2) s = 1 - x2 / (k * (k - 1)) * s;
  s *= x;
  const double cs[4] = {c, -s, -c, s}, sn[4] = {s, c, -s, -c};
  cosine = cs[quarter % 4];
  sine = sn[quarter % 4];
}

// The normal value with index i: both halves of a Box-Muller pair are used.
double normal(const Random& random, std::uint64_t i) {
  const std::uint64_t pair = i / 2 * 2;
  double cosine = 0, sine = 0;
  circle(random.unit(pair + 1), cosine, sine);
  return std::sqrt(-2 * logarithm(1 - random.unit(pair))) * (i % 2 ? sine : cosine);
}

[[noreturn]] void refuse(const std::string& name, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_argument, {}, fmt::format("{}: {}", name, what), hint);
}

void store(const TensorView& view, std::int64_t i, ops::Scalar value) {
  ops::store(view.dtype, static_cast<char*>(view.data) + i * byte_size(view.dtype), value);
}

ops::Scalar real(DType t, double value) { return {.f = ops::round_to(t, value), .i = 0}; }
ops::Scalar whole(DType t, std::int64_t value) {
  if (is_float(t)) return real(t, static_cast<double>(value));
  return {.f = 0, .i = is_bool(t) ? value != 0 : ops::wrap_to(t, value)};
}

void fill_index(const TensorView& view, const Random& random, const std::string& name,
                const std::optional<ContractBounds>& contract) {
  if (!is_int(view.dtype)) refuse(name, fmt::format("'index' makes integers, but the array is {}", cosmati::name(view.dtype)));
  if (!contract || !contract->lo || !contract->hi)
    refuse(name, "'index' needs a contract with both bounds on the parameter",
           "declare it `in lo .. hi`, or use another generator");
  const std::int64_t lo = *contract->lo, hi = *contract->hi, elements = view.elements();
  if (elements == 0) return;
  if (hi <= lo) refuse(name, fmt::format("the contract {} .. {} is empty, so no integer is inside it", lo, hi));
  const std::uint64_t span = static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo);
  if (contract->distinct && span < static_cast<std::uint64_t>(elements))
    refuse(name, fmt::format("{} distinct integers do not fit into {} .. {}", elements, lo, hi));

  std::vector<std::int64_t> values(static_cast<std::size_t>(elements));
  if (contract->distinct) {
    const auto drawn =
        support::draw_distinct(span, values.size(), [&](std::uint64_t i, std::uint64_t n) { return random.below(i, n); });
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + drawn[i]);
  } else {
    for (std::uint64_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(lo) + random.below(i, span));
  }
  if (contract->sorted && view.rank() > 0) {
    const std::int64_t row = view.shape.back();
    for (std::int64_t first = 0; first < elements; first += row) std::sort(values.begin() + first, values.begin() + first + row);
  }
  for (std::int64_t i = 0; i < elements; ++i) store(view, i, whole(view.dtype, values[static_cast<std::size_t>(i)]));
}

}  // namespace

std::optional<Generator> generator_from_name(std::string_view name) {
  for (const Name& row : names)
    if (row.text == name) return row.generator;
  return std::nullopt;
}

std::string generator_names() {
  std::string all;
  for (const Name& row : names) all += (all.empty() ? "" : ", ") + std::string(row.text);
  return all;
}

void generate(const TensorView& view, Generator generator, std::uint64_t seed, const std::string& name,
              const std::optional<ContractBounds>& contract, const Fraction& progress) {
  const Random random(seed, name);
  const DType t = view.dtype;
  auto fill = [&](const auto& element) {
    constexpr std::int64_t told_every = std::int64_t{1} << 20;
    const std::int64_t elements = view.elements();
    for (std::int64_t i = 0; i < elements; ++i) {
      store(view, i, element(i));
      if (progress && i % told_every == 0) progress(static_cast<double>(i) / static_cast<double>(elements));
    }
  };
  switch (generator) {
    case Generator::normal:
      if (!is_float(t))
        refuse(name, fmt::format("'normal' makes floating values, but the array is {}", cosmati::name(t)),
               "use uniform or index");
      return fill([&](std::int64_t i) { return real(t, normal(random, static_cast<std::uint64_t>(i))); });
    case Generator::uniform:
      return fill([&](std::int64_t i) {
        const auto at = static_cast<std::uint64_t>(i);
        if (is_float(t)) return real(t, random.unit(at));
        return whole(t, static_cast<std::int64_t>(is_bool(t) ? random(at) & 1 : random(at)));
      });
    case Generator::zeros:
    case Generator::ones:
      return fill([&](std::int64_t) { return whole(t, generator == Generator::ones); });
    case Generator::arange:
      return fill([&](std::int64_t i) { return whole(t, i); });
    case Generator::index:
      return fill_index(view, random, name, contract);
  }
}

}  // namespace cosmati::tools
