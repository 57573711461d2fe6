// gelu(a * w^T + bias) in one program, on 16-bit inputs held by the caller as bits.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program linear_gelu = program("linear_gelu", [] {
  Axis m{"m"}, n{"n"}, k{"k"};
  auto a = input("a", any_float, {m, k}), w = input("w", like(a), {n, k}), bias = input("bias", like(a), {n});
  auto y = output<f32>("y", {m, n});
  parallel(m, n, [&] { y(m, n) = gelu(contract(a, w, k) + bias); });
});

std::uint16_t to_bf16(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }
float from_bf16(std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

int main() {
  const int m = 7, n = 9, k = 33;
  std::vector<std::uint16_t> a(m * k), w(n * k), bias(n);
  std::vector<float> y(m * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = to_bf16(std::sin(static_cast<float>(i)));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = to_bf16(std::cos(static_cast<float>(i)));
  for (int i = 0; i < n; ++i) bias[i] = to_bf16(0.25f * static_cast<float>(i));

  Function f{linear_gelu, Device::pick()};
  f({{"a", TensorView{a.data(), bf16, {m, k}}},
     {"w", TensorView{w.data(), bf16, {n, k}}},
     {"bias", TensorView{bias.data(), bf16, {n}}},
     {"y", TensorView{y.data(), f32, {m, n}}}});

  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double x = from_bf16(bias[j]);
      for (int t = 0; t < k; ++t) x += static_cast<double>(from_bf16(a[i * k + t])) * from_bf16(w[j * k + t]);
      worst = std::fmax(worst, std::fabs(y[i * n + j] - 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)))));
    }
  std::printf("linear_gelu of %d x %d x %d: largest difference %.2g\n", m, n, k, worst);
  return worst < 1e-4 ? 0 : 1;
}
