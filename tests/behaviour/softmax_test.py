# Softmax and its parts at the edges of the number line and of extents.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, bf16, close, from_bf16, main, softmax

rng = np.random.default_rng(1)
inf, nan = np.inf, np.nan


class Softmax(ToolTest):
    def test_undefined_rows_are_nan_and_leave_the_others_alone(self):
        x = rng.standard_normal((5, 64)).astype(np.float32)
        x[0] = -inf
        x[1, 9] = inf
        x[2, [3, 40]] = inf
        x[3, 37] = nan
        for _, y in self.each("softmax", ["y"], x=x):
            self.assertTrue(np.isnan(y[:4]).all())
            close(y[4], softmax(x[4]))
        for device, y in self.each("softmax", ["y"], x=bf16(x)):
            y = from_bf16(y)
            self.assertTrue(np.isnan(y[:4]).all(), device)
            close(y[4], softmax(from_bf16(bf16(x[4]))), rtol=1e-2)

    def test_every_width_is_finite_and_sums_to_one(self):
        for n in (1, 2, 3, 31, 32, 33, 63, 65, 127, 257, 1023, 1025):
            x = rng.standard_normal((4, n)).astype(np.float32)
            for _, y in self.each("softmax", ["y"], x=x):
                close(y, softmax(x))
                close(y.astype(np.float64).sum(-1), 1)

    def test_every_width_on_every_number_of_lanes(self):
        for n in (1, 3, 31, 33, 65, 257, 1025):
            x = rng.standard_normal((4, n)).astype(np.float32)
            x[1] = 2  # every part of the row has the same maximum
            x[2] = np.arange(n) % 3
            for plan, y in self.each_plan("softmax", ["y"], x=x):
                self.assertTrue(np.isfinite(y).all(), plan)
                close(y, softmax(x))
                close(y.astype(np.float64).sum(-1), 1)

    def test_a_scale_inside_the_program_is_rounded_once(self):
        program = self.program("""program scaled(in x: f32[row, col], out y: f32[row, col], k: f32) {
          parallel row {
            s = x * k
            e = exp(s - max(s, col))
            y[row, col] = e / sum(e, col)
          }
        }""")
        x = rng.standard_normal((8, 25)).astype(np.float32)
        for k in (1e14, -1.7e14):
            for _, y in self.each(program, ["y"], x=x, k=k):
                self.assertTrue((y.sum(-1) == 1).all())
                self.assertTrue(((y == 0) | (y == 1)).all())
                self.assertTrue((y.argmax(-1) == (x * np.float32(k)).argmax(-1)).all())

    def test_a_scale_that_overflows_does_so_in_the_order_of_the_text(self):
        program = self.program("""program scaled(in x: f32[row, col], out y: f32[row, col], k: f32) {
          parallel row {
            s = x * k * k * k
            e = exp(s - max(s, col))
            y[row, col] = e / sum(e, col)
          }
        }""")
        x = rng.standard_normal((8, 25)).astype(np.float32)
        x[5:] *= np.float32(1e-6)  # these stay finite
        k = np.float32(-1.7e14)
        with np.errstate(over="ignore"):
            scaled = x * k * k * k
        self.assertEqual(np.isinf(scaled.max(-1)).tolist(), [True] * 5 + [False] * 3)
        wanted = softmax(scaled)
        runs = [run for run in self.each(program, ["y"], x=x, k=float(k)) if run[0] != "oracle"]  # which computes in float64
        for where, y in runs + self.each_plan(program, ["y"], x=x, k=float(k)):
            np.testing.assert_array_equal(np.isnan(y), np.isnan(wanted), where)
            np.testing.assert_array_equal(y[5:], wanted[5:], where)

    def test_constant_rows_are_uniform(self):
        approximate = self.program("""program softmax(in x: f32[row, col], out y: f32[row, col]) {
          parallel row {
            e = exp(x - max(x, col), relax: approx)
            y[row, col] = e / sum(e, col, relax: approx)
          }
        }""")
        for value in (-1000, 1000, 3e38):
            x = np.full((10, 512), value, np.float32)
            for program in ("softmax", approximate):
                for _, y in self.each(program, ["y"], x=x):
                    self.assertTrue((y == np.float32(1 / 512)).all())

    def test_low_precision_rows_do_not_stick(self):
        for n, expected in ((512, 1 / 512), (4096, 1 / 4096), (70000, from_bf16(bf16(np.float32(1 / 70000))))):
            x = np.zeros((2, n), np.uint16)
            for _, y in self.each("softmax", ["y"], x=x):
                self.assertTrue((from_bf16(y) == np.float32(expected)).all())

    def test_subnormal_probabilities_are_kept(self):
        x = np.array([[0, -88]], np.float32)
        for _, y in self.each("softmax", ["y"], x=x):
            self.assertAlmostEqual(float(y[0, 1]) / 6.05e-39, 1, delta=1e-2)

    def test_log_softmax_is_finite_over_many_rows(self):
        x = (rng.standard_normal((37, 1541)) * 5).astype(np.float32)
        for _, y in self.each("log_softmax", ["y"], x=x):
            self.assertTrue(np.isfinite(y).all())
            close(y, np.log(softmax(x)), rtol=2e-5, atol=2e-5)

    def test_two_passes_over_three_tiles_and_a_rest(self):
        for lanes, tile in ((1, 7), (4, 3), (8, 4), (16, 2), (32, 1)):
            n = 3 * lanes * tile + 5
            x = (rng.standard_normal((37, n)) * 5).astype(np.float32)
            wide = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
            normal = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)
            arguments = {"gamma": np.ones(n, np.float32), "beta": np.zeros(n, np.float32)}
            options = ("--set", f"tile.col={tile}")
            for _, y in self.each_plan("log_softmax", ["y"], *options, lanes=(lanes,), x=x):
                self.assertTrue(np.isfinite(y).all())
                close(y, np.log(softmax(x)), rtol=2e-5, atol=2e-5)
            for _, y in self.each_plan("layer_norm", ["y"], *options, lanes=(lanes,), x=x, **arguments):
                close(y, normal, rtol=2e-5, atol=1e-5)


if __name__ == "__main__":
    main()
