// The log-sum-exp of long rows as a stream of tiles with a merge: one pass, and the oracle checks that cuts do not matter.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program lse_rows = program("lse_rows", [] {
  Axis row{"row"}, col{"col"};
  auto x = input("x", any_float, {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] {
    auto [m, l] = stream(tiles(col), carry(-inf, 0), [&](Tile m, Tile l) {
      Tile larger = maximum(m, max(x, col));
      return next(larger, l * exp_diff(m, larger) + sum(exp_diff(x, larger), col)).merge([](auto a, auto b) {
        Tile both = maximum(a[0], b[0]);
        return next(both, a[1] * exp_diff(a[0], both) + b[1] * exp_diff(b[0], both));
      });
    });
    y(row) = m + log(l);
  });
});

int main() {
  check(lse_rows);
  const int rows = 5, cols = 10007;
  std::vector<float> x(rows * cols), y(rows);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) / 50;

  Function f{lse_rows, Device::pick()};
  f({{"x", TensorView{x.data(), f32, {rows, cols}}}, {"y", TensorView{y.data(), f32, {rows}}}});

  double worst = 0;
  for (int r = 0; r < rows; ++r) {
    double total = 0;
    for (int c = 0; c < cols; ++c) total += std::exp(static_cast<double>(x[r * cols + c]));
    worst = std::fmax(worst, std::fabs(y[r] - std::log(total)));
  }
  std::printf("lse of %d x %d: largest difference %.2g\n", rows, cols, worst);
  return worst < 1e-4 ? 0 : 1;
}
