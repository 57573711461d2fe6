# Sums, extremes and their indices: NaN, ties, signed zeros, subnormals, extents of one and nothing.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, bf16, close, from_bf16, main

rng = np.random.default_rng(2)
inf, nan = np.inf, np.nan


class Reductions(ToolTest):
    def test_nan_wins_wherever_it_stands(self):
        for width in (64, 96):
            for sign in (1, -1):
                x = np.full((4, width), sign * inf, np.float32)
                for row, col in enumerate((0, 31, 32, width - 1)):
                    x[row, col] = nan
                for run in (self.each, self.each_plan):
                    for where, (lo, hi) in run("min_max", ["lo", "hi"], x=x):
                        self.assertTrue(np.isnan(lo).all() and np.isnan(hi).all(), where)

    def test_the_num_forms_ignore_nan(self):
        program = self.program("""program f(in x: f32[row, col], out lo: f32[row], out hi: f32[row]) {
          parallel row {
            lo[row] = min_num(x, col)
            hi[row] = max_num(x, col)
          }
        }""")
        x = rng.standard_normal((6, 65)).astype(np.float32)
        x[:3, ::2] = nan
        for _, (lo, hi) in self.each(program, ["lo", "hi"], x=x):
            np.testing.assert_array_equal(lo, np.nanmin(x, 1))
            np.testing.assert_array_equal(hi, np.nanmax(x, 1))

    def test_low_precision_sums_do_not_saturate(self):
        program = self.program("""program f<T: float>(in x: T[row, col], out s: T[row], out m: T[row]) {
          parallel row {
            s[row] = sum(x, col)
            m[row] = mean(x, col)
          }
        }""")
        for run in (self.each, self.each_plan):
            for n in (4096, 20000):
                for where, (s, m) in run(program, ["s", "m"], x=np.ones((1, n), np.float16)):
                    self.assertEqual((s[0], m[0]), (n, 1), where)
            for where, (s, m) in run(program, ["s", "m"], x=np.ones((1, 70000), np.float16)):
                self.assertEqual((s[0], m[0]), (inf, 1), where)
            for where, (s, m) in run(program, ["s", "m"], x=bf16(np.ones((1, 70000)))):
                self.assertEqual((from_bf16(s)[0], from_bf16(m)[0]), (70144, 1), where)

    def test_reducing_one_element_changes_no_bit(self):
        program = self.program("""program f(in x: f32[a, b, c], out m: f32[a, b], out s: f32[a, b], out t: f32[a, c], out u: f32[a, c]) {
          parallel a {
            m[a, b] = max(x, c)
            s[a, b] = sum(x, c)
            t[a, c] = sum(x, b)
            u[a, c] = max(x, b)
          }
        }""")
        for shape in ((16, 1, 1), (16, 1, 2), (16, 2, 1), (1, 1, 1), (32, 2, 64)):
            x = rng.standard_normal(shape).astype(np.float32)
            for run in (self.each, self.each_plan):
                for _, (m, s, t, u) in run(program, ["m", "s", "t", "u"], x=x):
                    np.testing.assert_array_equal(m, x.max(2))
                    np.testing.assert_array_equal(u, x.max(1))
                    close(s, x.sum(2, dtype=np.float64), atol=1e-5)
                    close(t, x.sum(1, dtype=np.float64))
                    for axis, outs in ((2, (m, s)), (1, (t, u))):
                        if shape[axis] == 1:
                            for out in outs:
                                np.testing.assert_array_equal(out.view(np.uint32), x.squeeze(axis).view(np.uint32))

    def test_the_lowest_index_wins_ties(self):
        constant = np.full((3, 64), 7, np.float32)
        zeros = np.zeros((3, 64), np.float32)
        zeros[:, ::2] = -0.0
        late = rng.integers(0, 3, (3, 1000)).astype(np.float32)
        for x in (constant, zeros, late):
            for run in (self.each, self.each_plan):
                for where, i in run("argmax", ["i"], x=x):
                    np.testing.assert_array_equal(i, x.argmax(1), where)

    def test_the_lowest_instance_wins_ties(self):
        program = self.program("""program f(in x: f32[row, col], out i: i32[col], out j: i32[col]) {
          parallel row {
            i[col] = argmax(x, row)
            j[col] = argmin(x, row)
          }
        }""")
        for rows in (2, 64, 1000):
            for x in (np.full((rows, 5), 7), rng.integers(0, 3, (rows, 5)), np.where(rng.random((rows, 5)) < 0.5, 0.0, -0.0)):
                x = x.astype(np.float32)
                for _, (i, j) in self.each(program, ["i", "j"], x=x):
                    np.testing.assert_array_equal(i, x.argmax(0))
                    np.testing.assert_array_equal(j, x.argmin(0))

    def test_argmax_takes_the_first_nan(self):
        x = rng.standard_normal((2, 70)).astype(np.float32)
        x[0, [33, 60]] = nan
        for _, i in self.each("argmax", ["i"], x=x):
            np.testing.assert_array_equal(i, x.argmax(1))

    def test_subnormals_are_kept(self):
        program = self.program("""program f(in x: f32[row, col], out y: f32[row, col], out z: f32[row, col], out hi: f32[row], out s: f32[row]) {
          parallel row {
            y[row, col] = x * 1
            z[row, col] = x
            hi[row] = max(x, col)
            s[row] = sum(x, col)
          }
        }""")
        x = np.ldexp(np.float32(1), -np.arange(127, 150)).astype(np.float32)[None]
        for sign in (1, -1):
            x = sign * x
            for run in (self.each, self.each_plan):
                for where, (y, z, hi, s) in run(program, ["y", "z", "hi", "s"], x=x):
                    np.testing.assert_array_equal(y, x, where)
                    np.testing.assert_array_equal(z, x, where)
                    self.assertEqual(hi[0], x.max(), where)
                    self.assertEqual(s[0], x.sum(dtype=np.float64).astype(np.float32), where)

    def test_empty_extents_are_no_error(self):
        program = self.program("""program f(in x: f32[row, col], out s: f32[row], out p: f32[row], out lo: f32[row], out hi: f32[row],
                    out m: f32[row], out i: i32[row], out l: f32[row]) {
          parallel row {
            s[row] = sum(x, col)
            p[row] = product(x, col)
            lo[row] = min(x, col)
            hi[row] = max(x, col)
            m[row] = mean(x, col)
            i[row] = argmax(x, col)
            l[row] = logsumexp(x, col)
          }
        }""")
        names = ["s", "p", "lo", "hi", "m", "i", "l"]
        for _, outs in self.each(program, names, x=np.zeros((10, 0), np.float32)):
            for got, wanted in zip(outs, (0, 1, inf, -inf, nan, -1, -inf)):
                np.testing.assert_array_equal(got, np.full(10, wanted, got.dtype))
        for _, outs in self.each(program, names, x=np.zeros((0, 64), np.float32)):
            self.assertTrue(all(out.shape == (0,) for out in outs))
        for _, y in self.each("softmax", ["y"], x=np.zeros((0, 64), np.float32)):
            self.assertEqual(y.shape, (0, 64))
        for _, y in self.each("softmax", ["y"], x=np.zeros((10, 0), np.float32)):
            self.assertEqual(y.shape, (10, 0))
        for _, y in self.each("rms_norm", ["y"], x=np.zeros((4, 0, 5, 2), np.float32), w=np.ones(2, np.float32)):
            self.assertEqual(y.shape, (4, 0, 5, 2))


if __name__ == "__main__":
    main()
