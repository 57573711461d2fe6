// error: the lift of a reducer returns as many values as its identity
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  Reducer spread{"spread", [] { return next(inf, -inf); }, [](Tile v) { return v; },
                 [](auto a, auto b) { return next(minimum(a[0], b[0]), maximum(a[1], b[1])); },
                 [](auto s) { return s[1] - s[0]; }};
  parallel(row, [&] { y(row) = spread(x, col); });
});
