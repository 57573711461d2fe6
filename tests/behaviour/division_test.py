# Division is rounded correctly, by what a loop changes and by what it does not.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, main

PROGRAM = """program divide(in x: f32[n], in s: f32[m], out y: f32[m, n]) {
  parallel m { y[m, n] = x / s }
}"""


class Division(ToolTest):
    def quotients(self, x, s):
        with np.errstate(all="ignore"):
            wanted = x[None, :] / s[:, None]
        for _, y in self.each(self.program(PROGRAM), ["y"], check=False, x=x, s=s):
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


if __name__ == "__main__":
    main()
