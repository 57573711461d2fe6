// Layer normalisation with a gain and a bias: two results of one reduction, and a scalar with a default.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program layer_norm = program("layer_norm", [] {
  Axis row{"row"}, col{"col"};
  auto x = input("x", any_float, {row, col}), gamma = input("gamma", like(x), {col}), beta = input("beta", like(x), {col});
  auto y = output("y", like(x), {row, col});
  auto eps = scalar<f32>("eps").defaults(1e-5);
  parallel(row, [&] {
    auto [mu, var] = mean_var(x, col);
    y(row, col) = (x - mu) * rsqrt(var + eps) * gamma + beta;
  });
});

int main() {
  const int rows = 20, cols = 300;
  std::vector<float> x(rows * cols), gamma(cols, 2), beta(cols, 1), y(rows * cols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) / 100;

  Function f{layer_norm, Device::pick()};
  f({{"x", TensorView{x.data(), f32, {rows, cols}}},
     {"gamma", TensorView{gamma.data(), f32, {cols}}},
     {"beta", TensorView{beta.data(), f32, {cols}}},
     {"y", TensorView{y.data(), f32, {rows, cols}}}});

  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    double mean = 0, var = 0;
    for (int c = 0; c < cols; ++c) mean += x[r * cols + c] / cols;
    for (int c = 0; c < cols; ++c) var += std::pow(x[r * cols + c] - mean, 2) / cols;
    for (int c = 0; c < cols; ++c)
      worst = std::fmax(worst, std::fabs(y[r * cols + c] - ((x[r * cols + c] - mean) / std::sqrt(var + 1e-5) * 2 + 1)));
  }
  std::printf("layer_norm of %d x %d: largest difference %.2g\n", rows, cols, worst);
  return worst < 1e-5 ? 0 : 1;
}
