// error: the body of parallel returns nothing
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, [&] { return sum(x, col); });
});
