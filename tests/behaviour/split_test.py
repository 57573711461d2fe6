# Reduced axes that are cut into parts: every part of the grid leaves a state, later phases merge them.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

from tool import DEVICES, TOOL, main

COMPILING = [device for device in DEVICES if device != "oracle"]  # which plans nothing

TWO = """program two<T: float>(in x: T[row, col], out m: f32[row], out i: i32[row], out y: T[row, col], out mu: f32[row], out s2: f32[row]) {
  parallel row {
    m[row] = max(x, col)
    i[row] = argmax(x, col)
    a, b = mean_var(x, col)
    mu[row] = a
    s2[row] = b
    y[row, col] = (x - a) * exp(x - max(x, col)) / sum(exp(x - max(x, col)), col)
  }
}
"""


class Split(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def call(self, *arguments):
        return subprocess.run([TOOL, *arguments], capture_output=True, text=True)

    def run_on(self, device, program, arrays, outs, *knobs):
        arguments = []
        for name, a in arrays.items():
            np.save(self.path / f"{name}.npy", a)
            arguments.append(f"{name}={self.path / f'{name}.npy'}")
        for out in outs:
            arguments += ["--out", f"{out}={self.path / f'{out}.{device}.npy'}"]
        result = self.call("run", program, *arguments, "--device", device, "--check", *[w for k in knobs for w in ("--set", k)])
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return [np.load(self.path / f"{out}.{device}.npy") for out in outs]

    def test_every_reduction_and_every_store_is_right(self):
        file = self.path / "two.tile"
        file.write_text(TWO)
        random = np.random.default_rng(5)
        for rows, cols in ((1, 1000), (3, 1), (2, 37), (5, 129), (0, 7), (4, 0)):
            x = random.standard_normal((rows, cols)).astype(np.float32)
            if cols == 0:
                continue
            for parts in (2, 5, 64):
                for more in ((), ("lanes=1",), ("lane_axes=row",), ("tile.col=3",)):
                    with self.subTest(rows=rows, cols=cols, parts=parts, more=more):
                        knobs = (f"split.col={parts}", "lanes=8", *more) if "lanes=1" not in more else (f"split.col={parts}", *more)
                        for device in COMPILING:
                            m, i, mu = self.run_on(device, str(file), {"x": x}, ("m", "i", "mu"), *knobs)
                            np.testing.assert_array_equal(m, x.max(1))
                            np.testing.assert_array_equal(i, x.argmax(1))
                            np.testing.assert_allclose(mu, x.astype(np.float64).mean(1), atol=1e-6)

    def test_reductions_over_program_axes_split_too(self):
        random = np.random.default_rng(6)
        x = random.standard_normal((300, 5)).astype(np.float32)
        for device in COMPILING:
            (s,) = self.run_on(device, "column_sums", {"x": x}, ("s",), "split.row=7")
            np.testing.assert_allclose(s, x.astype(np.float64).sum(0), atol=1e-4)

    def test_the_plan_shows_parts(self):
        text = self.call("plan", "softmax", "x=f32[1,100000]:zeros", "--set", "split.col=4").stdout
        self.assertIn("phase part_", text)
        self.assertIn("(grid, ", text)
        self.assertIn("parts of ", text)

    def test_what_cannot_be_split_is_refused(self):
        ordered = self.path / "ordered.tile"
        ordered.write_text("program ordered(in x: f32[row, col], out y: f32[row]) {\n  parallel row { y[row] = sum(x, col, order: left) }\n}\n")
        cases = (
            ("linear_recurrence", ("a=f32[2,3,4]:zeros", "x=f32[2,3,4]:zeros"), "split.t=2", "a stream runs over t"),
            ("transpose", ("x=f32[2,3]:zeros",), "split.i=2", "nothing is reduced over the axis: axis i"),
            ("softmax", ("x=f32[2,3]:zeros",), "split.nowhere=2", "the program has no axis nowhere"),
            ("softmax", ("x=f32[2,3]:zeros",), "split.col=4096", "`4096` is none of 1..1024"),
            (str(ordered), ("x=f32[2,3]:zeros",), "split.col=2", "a reduction in the order of its elements is spread over workers"),
        )
        for program, arguments, knob, reason in cases:
            with self.subTest(program=program, knob=knob):
                result = self.call("plan", program, *arguments, "--set", knob, "--json")
                self.assertEqual(result.returncode, 2)
                error = json.loads(result.stdout)["errors"][0]
                self.assertEqual(error["code"], "bad_knob")
                self.assertIn(reason, error["what"] + error["hint"])


if __name__ == "__main__":
    main()
