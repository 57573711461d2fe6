# Stores past the caches and fetching ahead change no bit, at any alignment, extent and stride.
# SPDX-License-Identifier: Apache-2.0
import subprocess

import numpy as np

from tool import DEVICES, TOOL, ToolTest, main

SETTINGS = [["--set", "stores=past_caches"], ["--set", "ahead=group"], ["--set", "stores=past_caches", "--set", "ahead=group"]]
WORK = ["--set", "lane_axes=col", "--set", "tile.col=2", "--set", "tile.row=1"]  # else the planner may choose other work with them
PROGRAM = """program scaled<T: float>(in x: T[row, col], out y: T[row, col], out z: T[row, col], out s: f32[row]) {
  parallel row {
    e = exp(x - max(x, col))
    y[row, col] = e / sum(e, col)
    z[row, col] = x + x
    s[row] = sum(e, col)
  }
}"""


class Caches(ToolTest):
    def test_results_are_the_same_bits(self):
        random = np.random.default_rng(11)
        program = self.program(PROGRAM)
        for rows, cols in ((1, 1), (3, 16), (5, 67), (7, 256), (0, 5), (4, 0), (33, 1000)):
            for dtype in (np.float32, np.float16, np.float64):
                x = random.standard_normal((rows, cols)).astype(dtype)
                for where, expected in self.each(program, ["y", "z", "s"], *WORK, check=False, x=x):
                    for settings in SETTINGS:
                        got = self.run_on(where, program, ["y", "z", "s"], *WORK, *settings, x=x)
                        for a, b in zip(got, expected):
                            self.assertEqual(a.tobytes(), b.tobytes(), f"{where} {rows}x{cols} {settings}")

    def text(self, *command):
        return subprocess.run([TOOL, *command, "--device", DEVICES[0]], capture_output=True, text=True, check=True).stdout

    def test_plans_say_so(self):
        text = self.text("plan", "softmax", "x=f32[8,64]:zeros", *SETTINGS[2])
        self.assertIn("stores: past the caches", text)
        self.assertIn("ahead: a group fetches what the next one reads", text)
        kernel = self.text("emit", "softmax", "x=f32[8,64]:zeros", *SETTINGS[2], "--as", "kernel")
        self.assertIn("past_caches y[", kernel)
        self.assertIn("prefetch x[(group + 1) * stride_x_0", kernel)


if __name__ == "__main__":
    main()
