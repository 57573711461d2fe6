# Layer norm and RMS norm where variance cancels, squares overflow, or nothing varies.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, close, main


def layer_norm(x, eps=1e-5):
    x = np.asarray(x, np.float64)
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + np.float64(np.float32(eps)))


class Norms(ToolTest):
    def layer_norm(self, x, beta=0.0):
        n = x.shape[-1]
        ones = np.ones(n, x.dtype)
        return self.each("layer_norm", ["y"], x=x, gamma=ones, beta=np.full(n, beta, x.dtype))

    large_means = np.array([[m + i * 1e-3 for i in range(16)] for m in (0, 100, 1000, 10000)]).astype(np.float32)

    def test_a_large_mean_costs_no_more_than_its_own_rounding(self):
        x = self.large_means
        wanted = layer_norm(x)
        # The mean is a float32: at worst half a unit of its last place, which moves the whole row.
        rounding = np.spacing(x.mean(-1, keepdims=True)) / 2 / np.sqrt(x.var(-1, keepdims=True, dtype=np.float64) + 1e-5)
        for _, y in self.layer_norm(x):
            self.assertTrue((abs(y - wanted) <= 2e-6 + 2e-5 * abs(wanted) + rounding).all())
            close(y[:3], wanted[:3], atol=2e-3)
            close(y[:, 15] - y[:, 0], [2.6832, 2.6829, 2.6857, 2.6626], rtol=2e-5, atol=5e-5)

    def test_a_large_mean_costs_nothing_after_a_shift(self):
        x = self.large_means
        text = """program shifted(in x: f32[row, col], out y: f32[row, col]) {
  parallel row {
    d = x - (x[row, 0] else 0)
    mu, var = mean_var(d, col)
    y[row, col] = (d - mu) * rsqrt(var + 1e-5)
  }
}"""
        for _, y in self.each(self.program(text), ["y"], x=x):
            close(y, layer_norm(x), rtol=2e-5, atol=2e-6)
            close(y[:, 0], [-1.3416, -1.3415, -1.3415, -1.3313], rtol=1e-4)
            close(y[:, 15], [1.3416, 1.3414, 1.3442, 1.3313], rtol=1e-4)

    def test_constant_rows_give_beta(self):
        rows = [np.float32([1e15 + i for i in range(5)])] + [np.full(n, v, np.float32) for v in (0.5, 3.3e4, 1e30) for n in (7, 1000, 4097)]
        for row in rows:
            for _, y in self.layer_norm(row[None], beta=0.25):
                np.testing.assert_array_equal(y, np.full_like(y, 0.25), str(row[0]))

    def test_exactly_representable_constants_give_exactly_beta(self):
        for n in (7, 64, 1000):
            for _, y in self.layer_norm(np.full((2, n), 4, np.float32), beta=0.25):
                np.testing.assert_array_equal(y, np.full((2, n), 0.25, np.float32))

    def test_sixteen_bit_squares_do_not_overflow(self):
        w = np.ones(4096, np.float16)
        x = np.full((2, 4096), 300, np.float16)
        for _, y in self.each("rms_norm", ["y"], x=x, w=w):
            self.assertTrue((y == 1).all())
        x = np.ones((2, 4096), np.float16)
        x[:, 17] = 60000
        wide = x.astype(np.float64)
        wanted = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + np.float64(np.float32(1e-6)))
        for _, y in self.each("rms_norm", ["y"], x=x, w=w):
            self.assertTrue(np.isfinite(y).all())
            close(y, wanted, rtol=1e-3)


if __name__ == "__main__":
    main()
