// error: (could not convert|not contextually convertible)
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] {
    Tile s = sum(x, col);
    if (s > 0) y(row) = s;
  });
});
