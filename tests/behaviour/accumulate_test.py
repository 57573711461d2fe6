# Reductions that add to states in memory, one pass over the elements for all results.
# SPDX-License-Identifier: Apache-2.0
import itertools

import numpy as np

from tool import DEVICES, ToolTest, close, main

COLUMNS = """program columns(in x: f32[row, col], out s: f32[col], out m: f32[col], out at: i32[col], out mu: f32[col], out var: f32[col]) {
  parallel col {
    s[col] = sum(x, row)
    m[col] = max(x, row)
    at[col] = argmax(x, row)
    mu_, var_ = mean_var(x, row)
    mu[col] = mu_
    var[col] = var_
  }
}"""
NORMALIZED = """program normalized(in x: f32[row, col], out y: f32[row, col]) {
  parallel col { y[row, col] = exp(x - max(x, row)) / sum(exp(x - max(x, row)), row) }
}"""
BATCHES = """program batches(in x: f32[batch, row, col], out s: f32[batch, col]) {
  parallel batch, col { s[batch, col] = sum(x, row) }
}"""
BOTH = """program both(in x: f32[row, col], in w: f32[col], out y: f32[row, col], out g: f32[col], out h: f32[col]) {
  parallel row {
    r = sum(x, col)
    y[row, col] = x * w + r
    g[col] = sum(x * r, row)
    h[col] = max(x, row)
  }
}"""
SHAPES = [(1, 1), (2, 17), (7, 64), (33, 65), (100, 3), (0, 5), (4, 0)]


class Accumulate(ToolTest):
    def settings(self, axis="row"):
        for device, parts, copies in itertools.product([d for d in DEVICES if d != "oracle"], (2, 3, 8), (1, 4)):
            yield device, ["--set", f"accumulate.{axis}={parts}", *(["--set", f"tile.{axis}={copies}"] if copies > 1 else [])]

    def numbers(self, *shape):
        return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)

    def test_every_reducer(self):
        program = self.program(COLUMNS)
        for shape in SHAPES:
            x = self.numbers(*shape)
            for device, knobs in self.settings():
                s, m, at, mu, var = self.run_on(device, program, ["s", "m", "at", "mu", "var"], *knobs, x=x)
                close(s, x.sum(0, dtype=np.float64))
                if shape[0]:
                    np.testing.assert_array_equal(m, x.max(0))
                    np.testing.assert_array_equal(at, x.argmax(0))
                    close(mu, x.mean(0, dtype=np.float64))
                    close(var, x.var(0, dtype=np.float64))

    def test_a_reduction_that_needs_another(self):
        program = self.program(NORMALIZED)
        for shape in SHAPES[:5]:
            x = self.numbers(*shape)
            e = np.exp(x.astype(np.float64) - x.max(0))
            for device, knobs in self.settings():
                close(self.run_on(device, program, ["y"], *knobs, x=x), e / e.sum(0))

    def test_several_axes_of_results(self):
        program = self.program(BATCHES)
        x = self.numbers(3, 9, 21)
        for device, knobs in self.settings():
            close(self.run_on(device, program, ["s"], *knobs, x=x), x.sum(1, dtype=np.float64))

    def test_beside_the_instances(self):
        program = self.program(BOTH)
        for shape in SHAPES:
            x, w = self.numbers(*shape), self.numbers(shape[1])
            r = x.sum(1, keepdims=True, dtype=np.float64)
            for device, knobs in self.settings():
                y, g, h = self.run_on(device, program, ["y", "g", "h"], *knobs, x=x, w=w)
                close(y, x * w.astype(np.float64) + r, atol=1e-5)
                close(g, (x * r).sum(0), atol=1e-4)
                if shape[0]:
                    np.testing.assert_array_equal(h, x.max(0))

    def test_what_cannot_accumulate_is_refused(self):
        x = self.numbers(4, 6)
        rows = self.program("program rows(in x: f32[row, col], out s: f32[row]) {\n  parallel row { s[row] = sum(x, col) }\n}")
        total = self.program("program total(in x: f32[b, row, col], out s: f32[b]) {\n  parallel b { s[b] = sum(x, row, col) }\n}")
        self.assertIn("no reduction over the axis alone", self.refused(total, "--set", "accumulate.row=4", x=self.numbers(2, 4, 6))["what"])
        self.assertIn("nothing is reduced over the axis", self.refused(rows, "--set", "accumulate.row=4", x=x)["what"])
        twice = self.refused(rows, "--set", "accumulate.col=4", "--set", "split.col=4", x=x)
        self.assertIn("two knobs cut one axis", twice["what"])
        self.refused(rows, "--set", "accumulate.col=1", x=x)


if __name__ == "__main__":
    main()
