// error: a merge returns next\(...\) with as many values as the stream carries
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] {
    stream(tiles(col), carry(0, 1),
           [&](Tile a, Tile b) { return next(a, b).merge([](auto l, auto r) { return next(l[0] + r[0]); }); });
  });
});
