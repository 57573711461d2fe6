// error: an in parameter cannot be written
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  auto w = input<f32>("w", {row, col});
  parallel(row, [&] { x = w; });
});
