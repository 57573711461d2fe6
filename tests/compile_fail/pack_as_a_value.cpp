// error: a pack of axes has no value
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  Axes rows{"rows"};
  parallel(row, [&] { y(row) = sum(x, col) + rows; });
});
