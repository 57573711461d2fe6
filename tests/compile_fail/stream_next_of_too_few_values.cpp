// error: the body of a stream returns next\(...\) with one value for each carried one
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] { stream(col, carry(0, 1), [&](Tile a, Tile b) { return next(a + b); }); });
});
