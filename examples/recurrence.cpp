// A linear recurrence h = h * a + x: a stream by index that stores as it goes.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program recurrence = program("recurrence", [] {
  Axis b{"b"}, t{"t"}, d{"d"};
  auto a = input("a", any_float, {b, t, d}), x = input("x", like(a), {b, t, d});
  auto y = output("y", like(a), {b, t, d});
  parallel(b, d, [&] {
    stream(t, carry(0), [&](Tile h) {
      Tile now = h * a + x;
      y(b, t, d) = now;
      return next(now);
    });
  });
});

int main() {
  const int batch = 2, steps = 50, width = 6;
  std::vector<float> a(batch * steps * width, 0.5f), x(a.size()), y(a.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13);

  Function f{recurrence, Device::pick()};
  auto view = [&](std::vector<float>& v) { return TensorView{v.data(), f32, {batch, steps, width}}; };
  f({{"a", view(a)}, {"x", view(x)}, {"y", view(y)}});

  double worst = 0;
  for (int b = 0; b < batch; ++b)
    for (int d = 0; d < width; ++d) {
      double h = 0;
      for (int t = 0; t < steps; ++t) {
        const int i = (b * steps + t) * width + d;
        h = h * a[i] + x[i];
        worst = std::fmax(worst, std::fabs(h - y[i]));
      }
    }
  std::printf("recurrence of %d steps: largest difference %.2g\n", steps, worst);
  return worst < 1e-4 ? 0 : 1;
}
