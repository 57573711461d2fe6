// error: the body of a stream takes one Tile for each carried value
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] { stream(col, carry(0, 1), [&](Tile a) { return next(a, a); }); });
});
