// A reducer of one's own: the largest value of each row and where it is, in one pass.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program max_arg = program("max_arg", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto v = output<f32>("v", {row});
  auto i = output<i64>("i", {row});
  Reducer best{"best", [] { return next(-inf, -1); }, [](Tile x, Tile i) { return next(x, i); },
               [](auto a, auto b) {
                 Tile first = a[0] > b[0] || (a[0] == b[0] && a[1] < b[1] && a[1] >= 0) || b[1] < 0;
                 return next(where(first, a[0], b[0]), where(first, a[1], b[1]));
               },
               [](auto s) { return next(s[0], s[1]); }};
  parallel(row, [&] {
    auto [value, index] = best(x, col, col);
    v(row) = value;
    i(row) = index;
  });
});

int main() {
  const int rows = 9, cols = 101;
  std::vector<float> x(rows * cols), v(rows);
  std::vector<std::int64_t> i(rows);
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n * 7919 % 257);

  Function f{max_arg, Device::pick()};
  f({{"x", TensorView{x.data(), f32, {rows, cols}}},
     {"v", TensorView{v.data(), f32, {rows}}},
     {"i", TensorView{i.data(), i64, {rows}}}});

  int wrong = 0;
  for (int r = 0; r < rows; ++r) {
    int at = 0;
    for (int c = 1; c < cols; ++c)
      if (x[r * cols + c] > x[r * cols + at]) at = c;
    wrong += i[r] != at || v[r] != x[r * cols + at];
  }
  std::printf("max_arg of %d rows: %d wrong\n", rows, wrong);
  return wrong;
}
