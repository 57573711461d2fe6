// Softmax of the rows of a matrix: the program, a run on the default device, and the check against plain loops.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program softmax = program("softmax", [] {
  Axis row{"row"}, col{"col"};
  auto x = input("x", any_float, {row, col});
  auto y = output("y", like(x), {row, col});
  parallel(row, [&] {
    Tile e = exp(x - max(x, col));
    y(row, col) = e / sum(e, col);
  });
});

int main() {
  const int rows = 37, cols = 1537;
  std::vector<float> x(rows * cols), y(rows * cols);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) / 100;

  Function f{softmax, Device::pick()};
  f({{"x", TensorView{x.data(), f32, {rows, cols}}}, {"y", TensorView{y.data(), f32, {rows, cols}}}});

  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    double largest = -INFINITY, total = 0;
    for (int c = 0; c < cols; ++c) largest = std::fmax(largest, x[r * cols + c]);
    for (int c = 0; c < cols; ++c) total += std::exp(x[r * cols + c] - largest);
    for (int c = 0; c < cols; ++c)
      worst = std::fmax(worst, std::fabs(y[r * cols + c] - std::exp(x[r * cols + c] - largest) / total));
  }
  std::printf("softmax of %d x %d: largest difference %.2g\n", rows, cols, worst);
  return worst < 1e-6 ? 0 : 1;
}
