# Knobs of lanes and registers: every setting computes the same values, and one that cannot hold is refused with its reason.
# SPDX-License-Identifier: Apache-2.0
import subprocess

import numpy as np

from tool import TOOL, ToolTest, close, main

MOMENTS = """reducer moments(x, w) {
  identity n = 0, s = 0
  lift     n = w, s = x * w
  merge    n = a.n + b.n, s = a.s + b.s
  finish   s / n
}
program weighted(in x: f32[row, col], in w: f32[col], out mean: f32[row], out total: f32[col], out y: f32[row, col]) {
  parallel row {
    m = moments(x, w, col)
    e = exp(x - max(x, col))
    mean[row] = m
    total[col] = sum(x, row)
    y[row, col] = e / sum(e, col) + m
  }
}"""
CAUSAL = """program causal(in x: f32[i, j], out y: f32[i]) {
  parallel i {
    axis t in 0 .. i + 1
    y[i] = sum(x[i, t] else 0, t)
  }
}"""
TWO_NESTS = """program two_nests(in x: f32[row, a, b], out y: f32[row, a], out z: f32[row, b]) {
  parallel row {
    y[row, a] = sum(x, b)
    z[row, b] = sum(x, a)
  }
}"""
RUNNING = """program running(in x: f32[row, step, d], out y: f32[row, d]) {
  parallel row {
    stream step carry acc = f32(d) * 0 { next acc = acc * 0.5 + x[row, step, d] }
    y[row, d] = acc
  }
}"""


class Lanes(ToolTest):
    def settings(self):
        for lanes in (1, 4, 16):
            for axes, tiles in (("col", ("col=3",)), ("row", ()), ("none", ("col=2",)), ("col", ())):
                yield ["--set", f"lanes={lanes}", "--set", f"lane_axes={axes}"] + [p for t in tiles for p in ("--set", f"tile.{t}")]

    def test_every_setting_computes_the_same(self):
        x = np.random.default_rng(1).normal(size=(9, 37)).astype(np.float32)
        w = np.random.default_rng(2).uniform(1, 2, 37).astype(np.float32)
        program = self.program(MOMENTS)
        mean = (x.astype(float) * w).sum(1) / w.astype(float).sum()
        e = np.exp(x.astype(float) - x.max(1, keepdims=True))
        for options in self.settings():
            for _, (got, total, y) in self.each(program, ["mean", "total", "y"], *options, x=x, w=w):
                close(got, mean, rtol=1e-4, atol=1e-5)
                close(total, x.astype(float).sum(0), rtol=1e-4, atol=1e-5)
                close(y, e / e.sum(1, keepdims=True) + mean[:, None], rtol=1e-4, atol=1e-5)

    def test_the_first_of_several_axes_takes_the_lanes(self):
        x = np.random.default_rng(4).normal(size=(3, 5, 19)).astype(np.float32)
        program = self.program(TWO_NESTS)
        for axes in ("a,b", "b,a", "row"):
            for _, (y, z) in self.each(program, ["y", "z"], "--set", "lanes=4", "--set", f"lane_axes={axes}", x=x):
                close(y, x.sum(2, dtype=float), rtol=1e-5, atol=1e-5)
                close(z, x.sum(1, dtype=float), rtol=1e-5, atol=1e-5)

    def test_streams_run_on_lanes(self):
        x = np.random.default_rng(3).normal(size=(6, 5, 11)).astype(np.float32)
        wanted = np.zeros((6, 11))
        for t in range(5):
            wanted = wanted * 0.5 + x[:, t]
        program = self.program(RUNNING)
        for axes in ("row", "d", "none"):
            for _, y in self.each(program, ["y"], "--set", "lanes=4", "--set", f"lane_axes={axes}", x=x):
                close(y, wanted, rtol=1e-5, atol=1e-5)

    def test_neighbours_side_by_side(self):
        for width in (8, 24, 40):
            x = np.random.default_rng(width).integers(-3, 3, size=(5, width)).astype(np.float32)
            for lanes, side, tile in ((2, 4, 1), (4, 2, 2), (8, 8, 1)):
                options = ["--set", f"lanes={lanes}", "--set", "lane_axes=col", "--set", f"vector.col={side}", "--set", f"tile.col={tile}"]
                self.each("softmax", ["y"], *options, x=x)
                self.each("min_max", ["lo", "hi"], *options, x=x)
                for held in ([], ["--set", "resident=col"] if width <= lanes * side * tile else []):
                    for _, index in self.each("argmax", ["i"], *options, *held, x=x):
                        np.testing.assert_array_equal(index, x.argmax(1))
        error = self.refused("softmax", *options, x=np.zeros((5, 12), np.float32))
        self.assertIn("col is a multiple of 8", error["what"])

    def test_what_a_stream_carries_over_an_axis_has_a_plan_for_every_target(self):
        for form in ("kernel", "cuda"):  # a GPU's plan holds an axis in registers where it can
            subprocess.run([TOOL, "emit", self.program(RUNNING), "x=f32[6,5,300]:zeros", "--as", form], capture_output=True, check=True)

    def test_rows_are_held_whole_up_to_what_the_plan_is_for(self):
        weighted, held = self.program(MOMENTS), ["--set", "lanes=8", "--set", "lane_axes=col", "--set", "resident=col", "--set", "tile.col=4"]
        for width, full in ((1, 0), (7, 0), (8, 1), (24, 3), (31, 3), (32, 4)):
            options = held + (["--set", f"full.col={full}"] if full else [])
            x = np.random.default_rng(width).normal(size=(5, width)).astype(np.float32)
            w = np.random.default_rng(2).uniform(1, 2, width).astype(np.float32)
            self.each(weighted, ["mean", "y"], *options, x=x, w=w)
            for _, index in self.each("argmax", ["i"], *options, x=x):
                np.testing.assert_array_equal(index, x.argmax(1))
            self.each("layer_norm", ["y"], *options, x=x, gamma=w, beta=w)
        x, short = np.zeros((5, 33), np.float32), np.zeros((5, 7), np.float32)
        self.assertIn("col has at most 32", self.refused("softmax", *held, x=x)["what"])
        self.assertIn("col has at least 8; col has at most 32", self.refused("softmax", *held, "--set", "full.col=1", x=short)["what"])

    def test_what_cannot_hold_is_refused(self):
        x = np.zeros((4, 8), np.float32)
        causal, running = self.program(CAUSAL), self.program(RUNNING)
        for program, options, text in (
            (causal, ["lane_axes=i"], "the range of t depends on i"),
            (causal, ["tile.i=2"], "the range of t depends on i"),
            (causal, ["lane_axes=t,t"], "names t twice"),
            (causal, ["lane_axes=z"], "the program has no axis z"),
            ("softmax", ["lane_axes=row,col"], "lane_axes names col: an axis that tells instances apart shares its lanes with no other: row comes first"),
            ("softmax", ["lane_axes=col,row"], "col comes first in phase instances, and row tells instances apart there"),
            ("softmax", ["lane_axes=col,row", "lanes=1"], "lane_axes names row"),
            (causal, ["chunk.t=4"], "does not tell instances apart"),
            (causal, ["lanes=3"], "`3` is none of 1 | 2 | 4"),
        ):
            knobs = [part for option in options for part in ("--set", option)]
            error = self.refused(program, *knobs, x=x)
            self.assertIn(text, error["what"])
            self.assertTrue(error["hint"])
        held = ["--set", "lanes=4", "--set", "resident=d"]
        self.assertIn("carries a value over it", self.refused(running, *held, x=np.zeros((4, 3, 8), np.float32))["what"])
        self.assertIn("arrays or run streams", self.refused(running, "--set", "tile.row=2", x=np.zeros((4, 3, 8), np.float32))["what"])


if __name__ == "__main__":
    main()
