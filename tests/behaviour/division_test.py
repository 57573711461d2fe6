# Division is rounded correctly, by what a loop changes and by what it does not.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, main

PROGRAM = """program divide(in x: f32[n], in s: f32[m], out y: f32[m, n]) {
  parallel m { y[m, n] = x / s }
}"""


class Division(ToolTest):
    def quotients(self, x, s, every_plan=False):
        with np.errstate(all="ignore"):
            wanted = x[None, :] / s[:, None]
        program = self.program(PROGRAM)
        runs = self.each_plan(program, ["y"], x=x, s=s) if every_plan else self.each(program, ["y"], check=False, x=x, s=s)
        for _, y in runs:
            same = (y.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(y) & np.isnan(wanted))
            at = np.argwhere(~same)
            self.assertEqual(len(at), 0, f"{x[at[0][1]]!r} / {s[at[0][0]]!r}" if len(at) else "")

    def test_of_any_numbers(self):
        random = np.random.default_rng(3)
        bits = random.integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
        edges = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, 1, -1, 3, 1 / 3])
        self.quotients(np.concatenate([bits, edges]), np.concatenate([bits[:60], edges]))

    def test_half_way_between_subnormal_numbers(self):
        # x / s is k + 1/2 units of the smallest number, for divisors whose reciprocal is inexact.
        s = np.float32([3, 6, 10, 98, 206, 214, 322, 374, 394, 1000003])
        halves = np.arange(1, 400, 2, dtype=np.float64) / 2
        x = np.unique(np.concatenate([halves * k for k in s.astype(np.float64)]))
        x = (x[x == np.floor(x)] * 2.0**-149).astype(np.float32)
        self.quotients(np.concatenate([x, -x]), s)

    def test_next_to_half_way_between_numbers(self):
        random = np.random.default_rng(4)
        s = (random.integers(2**23, 2**24, 40) | 1).astype(np.float32)
        middle = (2 * random.integers(2**23, 2**24, 500) + 1).astype(np.float64)
        x = np.concatenate([(m * s.astype(np.float64)).astype(np.float32) for m in middle])
        self.quotients(x, s)

    def test_where_vectors_multiply_by_a_reciprocal(self):
        # Whole vectors of numbers that are neither tiny nor huge, then others among them, at the ends of what counts as that.
        random = np.random.default_rng(5)
        size = lambda n, low, high: np.ldexp(random.uniform(1, 2, n), random.integers(low, high, n)).astype(np.float32)
        ends = [np.nextafter(np.float32(2.0**e), np.float32(to)) for e in (-63, -30, 30, 65) for to in (0, np.inf)]
        ends = np.float32([*ends, 2.0**-63, 2.0**-30, 2.0**30, 2.0**65])
        s = np.concatenate([size(40, -30, 30), ends, [1, -1, 3, 1.9999999], np.float32(2 - 2.0**-23) * np.float32(2.0) ** random.integers(-9, 9, 4)])
        x = np.concatenate([size(60000, -63, 65), np.repeat(ends, 16), random.choice([0, -0.0, 1e-40, np.nan, np.inf, 1, 3], 1600)])
        x = x * random.choice([-1, 1], len(x))
        self.quotients(x.astype(np.float32), s.astype(np.float32), every_plan=True)


if __name__ == "__main__":
    main()
