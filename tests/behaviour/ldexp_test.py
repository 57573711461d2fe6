# ldexp on every kind of number and exponent, by vectors of every width and beside the exponential functions that are made of it.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, main

PROGRAM = """program scaled<T: float>(in x: T[i], in n: T[i], out y: T[i]) {
  parallel i { y[i] = ldexp(x, n) }
}"""
EDGES = [0, -0.0, 1, -1, 1.5, -0.5, np.inf, -np.inf, np.nan, 2, 89.5, 127, 128, 129, -126, -149, -150, -151, 300, -300, 1e-45, 1e-38, 3e38, -1e10]


def wanted(x, n):
    """In float64: exact before the one rounding, as float32 has no exponents beyond +-200."""
    x, n = x.astype(np.float64), np.floor(n.astype(np.float64))
    power = np.where(np.isinf(n), np.where(n > 0, np.inf, 0), np.exp2(np.clip(n, -500, 500)))
    return np.where(np.isnan(x) | np.isnan(n), np.nan, x * power)


class Ldexp(ToolTest):
    def test_is_rounded_once_for_any_numbers(self):
        random = np.random.default_rng(5)
        bits = random.integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
        edges = np.float32(EDGES)
        x = np.concatenate([np.repeat(edges, len(edges)), bits])
        n = np.concatenate([np.tile(edges, len(edges)), (100 * random.standard_normal(len(bits))).astype(np.float32)])
        with np.errstate(all="ignore"):
            expected = wanted(x, n).astype(np.float32)
        program = self.program(PROGRAM)
        for where, y in self.each(program, ["y"], check=False, x=x, n=n) + self.each_plan(program, ["y"], x=x, n=n):
            same = (y.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(y) & np.isnan(expected))
            at = np.flatnonzero(~same)
            self.assertEqual(len(at), 0, f"{where}: ldexp({x[at[0]]!r}, {n[at[0]]!r}) is {y[at[0]]!r}" if len(at) else "")

    def test_of_float64(self):
        x, n = np.float64([1.5, -3, 5e-324, 1, np.nan, 0, np.inf]), np.float64([1023.9, -1070, 52, -np.inf, np.inf, np.inf, -np.inf])
        expected = np.float64([np.ldexp(1.5, 1023), np.ldexp(-3.0, -1070), np.ldexp(5e-324, 52), 0, np.nan, np.nan, np.nan])
        for _, y in self.each(self.program(PROGRAM), ["y"], check=False, x=x, n=n):
            np.testing.assert_array_equal(y, expected)


if __name__ == "__main__":
    main()
