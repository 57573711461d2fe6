# Extremes and their places, beside what the language says of them: a NaN wins, -0 is below +0 but equal to it where places are
# asked for, the lowest index wins among equals, and of nothing comes the worst value and no place.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, bf16, from_bf16, main

PROGRAM = """program extremes<T: any>(in x: T[row, col], out lo: T[row], out hi: T[row], out first: i32[row], out last: i32[row]) {
  parallel row {
    lo[row] = min(x, col)
    hi[row] = max(x, col)
    first[row] = argmin(x, col)
    last[row] = argmax(x, col)
  }
}"""


def place(row, best):
    if len(row) == 0:
        return -1
    nan = np.isnan(row) if row.dtype.kind == "f" else np.zeros(len(row), bool)
    return int(np.argmax(nan if nan.any() else row == best(row)))


def extreme(row, best, of_nothing, zero):
    if len(row) == 0:
        return of_nothing
    if row.dtype.kind != "f":
        return best(row)
    value = np.nan if np.isnan(row).any() else best(row)
    if value == 0:
        value = zero(row[row == 0])
    return value


def rows(random, width, dtype):
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        pools = [[limits.min], [limits.max], [limits.min, limits.max, 0], [1, 2, 3], [-1, 0], list(range(-99, 99))]
    else:
        pools = [[-np.inf], [np.inf], [-np.inf, np.inf], [-0.0, 0.0], [-0.0], [0.0, -1.0, -0.0], [1.0, 0.0, -0.0], [3.0, 1.0],
                 [np.nan, 1.0, 2.0, -np.inf], [-np.nan, -1.0, -2.0, np.inf], [np.nan], [-5.0, -6.0, -1e-40], list(random.normal(size=99))]
        pools += [[0.5] * 60 + [np.nan], [-np.inf] * 60 + [-np.nan, -1.0]]
    return np.stack([random.choice(np.array(pool, dtype), width) for pool in pools])


class Extremes(ToolTest):
    def test_of_any_numbers(self):
        random = np.random.default_rng(11)
        programs = {half: self.program(PROGRAM.replace("any", "float") if half else PROGRAM) for half in (False, True)}
        for kind in (np.float32, np.float16, "bf16", np.float64, np.int32, np.int8):
            for width in (0, 1, 7, 8, 9, 31, 32, 33, 65, 200):
                half = kind == "bf16"
                dtype = np.float32 if half else kind
                x = rows(random, width, np.dtype(dtype))
                x = from_bf16(bf16(x)) if half else x
                floating = x.dtype.kind == "f"
                least, most = (-np.inf, np.inf) if floating else (np.iinfo(dtype).min, np.iinfo(dtype).max)
                for device, (lo, hi, first, last) in self.each(programs[half], ["lo", "hi", "first", "last"], check=False, x=bf16(x) if half else x):
                    if half:
                        lo, hi = from_bf16(lo.view(np.uint16)), from_bf16(hi.view(np.uint16))
                    for r, row in enumerate(x):
                        wanted_lo = extreme(row, np.min, most, lambda z: -0.0 if np.signbit(z).any() else 0.0)
                        wanted_hi = extreme(row, np.max, least, lambda z: -0.0 if np.signbit(z).all() else 0.0)
                        where = f"{device}, {'bf16' if half else np.dtype(dtype)}, row {r} of {width}"
                        for got, wanted in ((lo[r], wanted_lo), (hi[r], wanted_hi)):
                            same = np.isnan(got) and np.isnan(wanted) or got == wanted and np.signbit(got) == np.signbit(wanted)
                            self.assertTrue(same, f"{where}: {got}, not {wanted}")
                        self.assertEqual((first[r], last[r]), (place(row, np.min), place(row, np.max)), where)

    def test_places_of_64_bits_and_of_32_are_the_same(self):
        random = np.random.default_rng(13)
        text = """program places<T: any>(in x: T[row, col], out first: i64[row], out last: i64[row]) {
  parallel row {
    first[row] = argmin(x, col)
    last[row] = argmax(x, col)
  }
}"""
        for places in ("i64", "i32"):
            program = self.program(text.replace("i64", places))
            for width in (0, 5, 19, 64, 145):
                for dtype in (np.float32, np.int8):
                    x = rows(random, width, np.dtype(dtype))
                    for options in (["lane_axes=col", "tile.col=1"], ["lane_axes=col", "tile.col=4"], ["lane_axes=row", "tile.col=3"], []):
                        settings = [word for option in options for word in ("--set", option)]
                        for plan, (first, last) in self.each_plan(program, ["first", "last"], *settings, lanes=(1, 2, 8, 16, 32)[2 * (options == []):], x=x):
                            where = f"{places}, {plan}, {options}, {np.dtype(dtype)} of {width}"
                            self.assertEqual(first.tolist(), [place(row, np.min) for row in x], where)
                            self.assertEqual(last.tolist(), [place(row, np.max) for row in x], where)

    def test_of_a_value_beside_the_largest_size(self):
        program = self.program("""program sizes(in x: f32[row, col], out hi: f32[row], out lo: f32[row], out size: f32[row]) {
  parallel row {
    hi[row] = max(x, col)
    lo[row] = min(x, col)
    size[row] = max_abs(x, col)
  }
}""")
        x = np.random.default_rng(12).standard_normal((3, 77)).astype(np.float32) + np.float32([[-9], [0], [9]])
        for device, (hi, lo, size) in self.each(program, ["hi", "lo", "size"], x=x):
            for got, wanted in ((hi, x.max(1)), (lo, x.min(1)), (size, np.abs(x).max(1))):
                np.testing.assert_array_equal(got, wanted, device)


if __name__ == "__main__":
    main()
