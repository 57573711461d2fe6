// compiles: so that the others fail by their mistake alone
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
using namespace cosmati;

const Program p = program("p", [] {
  Axis row{"row"}, col{"col"};
  Axes rows{"rows"};
  auto x = input<f32>("x", {row, col});
  auto y = output<f32>("y", {row}), w = output<f32>("w", {rows});
  auto z = inout<f32>("z", {row});
  Reducer total{"total", [] { return 0; }, [](Tile v) { return v; }, [](auto a, auto b) { return a[0] + b[0]; },
                [](auto s) { return s[0]; }};
  parallel(row, rows, [&] {
    Tile a = x(row, col);
    a = a * 2;
    const Axis& same = row;
    y(same) = where(sum(a, col) > 0, maximum(x.at(col, 0), 3.0), total(x, col));
    z(row) = z(row) + max(x, col);
    w(rows) = 1;
    auto [l, r] = stream(tiles(col), carry(0, 1), [&](Tile l, Tile r) {
      return next(l, r).merge([](auto a, auto b) { return next(a[0] + b[0], a[1]); });
    });
    z(row) = l + r;
  });
});
