# float32 to bf16 by vectors of every width: whole vectors of normal numbers, and others among them.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import ToolTest, bf16, main

PROGRAM = """program narrowed(in x: f32[i], out y: bf16[i]) {
  parallel i { y[i] = bf16(x) }
}"""


class Narrowing(ToolTest):
    def test_rounds_to_nearest_even_at_every_number(self):
        upper = np.arange(2**16, dtype=np.uint32) << 16
        x = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
        # Neighbours alike, so that most vectors are of one kind; then shuffled.
        x = np.concatenate([x, np.random.default_rng(1).permutation(x)[:-1]]).view(np.float32)
        nan = np.isnan(x)
        expected = np.where(nan, (x.view(np.uint32) >> 16) & 0x8000 | 0x7FC0, 0).astype(np.uint16)
        expected[~nan] = bf16(x[~nan])
        program = self.program(PROGRAM)
        for where, y in self.each_plan(program, ["y"], x=x):
            at = np.flatnonzero(y.view(np.uint16) != expected)
            self.assertEqual(len(at), 0, f"{where}: {x[at[0]]!r} is {y.view(np.uint16)[at[0]]:#x}" if len(at) else "")


if __name__ == "__main__":
    main()
