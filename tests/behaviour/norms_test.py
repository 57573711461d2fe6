# Layer norm and RMS norm where variance cancels, squares overflow, or nothing varies.
# SPDX-License-Identifier: Apache-2.0
import unittest

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

    def test_a_large_mean_does_not_cancel_the_variance(self):
        x = np.array([[m + i * 1e-3 for i in range(16)] for m in (0, 100, 1000, 10000)]).astype(np.float32)
        wanted = layer_norm(x)
        # The mean is accumulated in float32: units of its last place move the whole row, and scale it by a few percent.
        shift = 4 * np.spacing(x[:, -1:]) / x.std(-1, keepdims=True, dtype=np.float64)
        for _, y in self.layer_norm(x):
            self.assertTrue((abs(y - wanted) <= 2e-3 + shift).all())
            close(y[:, 15] - y[:, 0], [2.6832, 2.6829, 2.6857, 2.6626], rtol=3e-2)

    # What is wanted of the same rows. `mean_var` in float32 does not give it; whoever mends that removes the mark and the test above.
    @unittest.expectedFailure
    def test_a_large_mean_keeps_the_accuracy_of_a_small_one(self):
        x = np.array([[m + i * 1e-3 for i in range(16)] for m in (0, 100, 1000, 10000)]).astype(np.float32)
        for _, y in self.layer_norm(x):
            close(y, layer_norm(x), rtol=2e-3, atol=2e-3)
            close(y[:, 0], [-1.3416, -1.3415, -1.3415, -1.3313], rtol=2e-3)
            close(y[:, 15], [1.3416, 1.3414, 1.3442, 1.3313], rtol=2e-3)

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
