// Causal attention with grouped heads: a composite dimension, a range that depends on the instance, a default scale.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program attention = program("attention", [] {
  Axis b{"b"}, g{"g"}, r{"r"}, s{"s"}, c{"c"}, d{"d"}, e{"e"};
  auto q = input("q", any_float, {b, {g, r}, s, d}), k = input("k", like(q), {b, g, c, d}), v = input("v", like(q), {b, g, c, e});
  auto o = output("o", like(q), {b, {g, r}, s, e});
  auto scale = scalar<f32>("scale").defaults(1 / sqrt(cast<f32>(d.extent())));
  parallel(b, g, r, s, [&] {
    Axis t{"t", 0, s + 1 + c.extent() - s.extent()};
    auto [out, lse] = attend(contract(q, k(b, g, t, d), d) * scale, v(b, g, t, e), t);
    o(b, dim(g, r), s, e) = out;
  });
});

int main() {
  const int batch = 2, groups = 2, repeat = 3, queries = 5, keys = 9, width = 8;
  std::vector<float> q(batch * groups * repeat * queries * width), k(batch * groups * keys * width), v(k.size()), o(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = std::cos(static_cast<float>(i)), v[i] = std::sin(static_cast<float>(3 * i));

  Function f{attention, Device::pick()};
  f({{"q", TensorView{q.data(), f32, {batch, groups * repeat, queries, width}}},
     {"k", TensorView{k.data(), f32, {batch, groups, keys, width}}},
     {"v", TensorView{v.data(), f32, {batch, groups, keys, width}}},
     {"o", TensorView{o.data(), f32, {batch, groups * repeat, queries, width}}}});

  double worst = 0;
  for (int h = 0; h < batch * groups * repeat; ++h)
    for (int s = 0; s < queries; ++s) {
      const float* kk = &k[h / repeat * keys * width];
      const float* vv = &v[h / repeat * keys * width];
      const int seen = s + 1 + keys - queries;
      std::vector<double> p(seen), out(width, 0.0);
      double total = 0;
      for (int t = 0; t < seen; ++t) {
        double dot = 0;
        for (int d = 0; d < width; ++d) dot += static_cast<double>(q[(h * queries + s) * width + d]) * kk[t * width + d];
        total += p[t] = std::exp(dot / std::sqrt(width));
      }
      for (int t = 0; t < seen; ++t)
        for (int e = 0; e < width; ++e) out[e] += p[t] / total * vv[t * width + e];
      for (int e = 0; e < width; ++e) worst = std::fmax(worst, std::fabs(out[e] - o[(h * queries + s) * width + e]));
    }
  std::printf("attention of %d queries over %d keys: largest difference %.2g\n", queries, keys, worst);
  return worst < 1e-5 ? 0 : 1;
}
