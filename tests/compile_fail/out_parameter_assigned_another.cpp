// error: this is the parameter itself: store by y\(i, j\) = value
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  auto z = output<f32>("z", {row});
  parallel(row, [&] { y = z; });
});
