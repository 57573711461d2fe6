// error: parallel takes axes and then its body
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  parallel(row, col);
});
