// error: a reducer takes its values first and then at least one axis
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row});
  Reducer total{"total", [] { return 0; }, [](Tile v) { return v; }, [](auto a, auto b) { return a[0] + b[0]; },
                [](auto s) { return s[0]; }};
  parallel(row, [&] { y(row) = total(x); });
});
