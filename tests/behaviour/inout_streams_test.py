# A stream that stores into an inout reads what was there before the program: where it stores, where only later steps store, and
# through values of the whole instance; on every device and number of lanes. What an earlier step has stored is refused, and is what
# a carried value is for.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import DEVICES, ToolTest, main


def rows(*shape):
    """Small integers, so that every sum is exact."""
    return np.random.default_rng(5).integers(-8, 9, shape).astype(np.float32)


class InoutStreams(ToolTest):
    def expect(self, text, wanted, **arguments):
        """`wanted` by name, on every device, with every number of lanes, and with lanes on each axis that may take them."""
        program = self.program(text)
        names = list(wanted)
        results = self.each(program, names, **arguments) + self.each_plan(program, names, **arguments)
        for axis in ("b", "c") if "c]" in text else ("b",):
            on = ("--set", "lanes=8", "--set", f"lane_axes={axis}")
            for device in sorted({"sim", DEVICES[0]}):
                results.append((f"{device}, lanes on {axis}", self.run_on(device, program, names, *on, check=False, **arguments)))
        for device, got in results:
            for name, array in zip(names, [got] if len(names) == 1 else got):
                np.testing.assert_array_equal(array, wanted[name], err_msg=f"{device}: {name}")

    def test_by_hand(self):
        program = self.program("program p(inout y: f32[b, t]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                               "      h2 = h + (y[b, t + 1] else 0)\n      y[b, t] = h2\n      next h = h2\n    }\n  }\n}\n")
        y = np.float32([[0, 1, 2, 3], [10, 20, 30, 40]])
        for device, got in self.each(program, ["y"], y=y):
            np.testing.assert_array_equal(got, [[1, 3, 6, 6], [20, 50, 90, 90]], err_msg=device)

    def test_what_later_steps_store(self):
        for b, t in ((1, 1), (3, 7), (37, 5)):
            y = rows(b, t)
            ahead = np.concatenate([y[:, 2:], np.zeros((b, min(2, t)), np.float32)], 1)
            self.expect("program p(inout y: f32[b, t]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                        "      h2 = h + y + (y[b, t + 2] else 0)\n      y[b, t] = h2\n      next h = h2\n    }\n  }\n}\n",
                        {"y": np.cumsum(y + ahead, 1)}, y=y)

    def test_other_elements_of_later_steps(self):
        for b, t, c in ((1, 3, 2), (5, 4, 33)):
            y = rows(b, t, c)
            ahead = np.concatenate([y[:, 1:, ::-1], np.zeros((b, 1, c), np.float32)], 1)
            self.expect("program p(inout y: f32[b, t, c]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                        "      h2 = h + (y[b, t + 1, extent(c) - 1 - c] else 0)\n      y[b, t, c] = h2\n      next h = h2\n    }\n  }\n}\n",
                        {"y": np.cumsum(ahead, 1)}, y=y)

    def test_sums_of_what_later_steps_store(self):
        y = rows(5, 4, 33)
        ahead = np.concatenate([y[:, 1:].sum(2), np.zeros((5, 1), np.float32)], 1)
        self.expect("program p(inout y: f32[b, t, c]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                    "      h2 = h + sum(y[b, t + 1, c] else 0, c)\n      y[b, t, c] = h2 + y\n      next h = h2\n    }\n  }\n}\n",
                    {"y": np.cumsum(ahead, 1)[:, :, None] + y}, y=y)

    def test_what_an_instance_reduces(self):
        for b, t in ((1, 1), (3, 7), (37, 40)):
            y = rows(b, t)
            s, most = y.sum(1, keepdims=True), y.max(1, keepdims=True)
            self.expect("program p(inout y: f32[b, t], out z: f32[b], out w: f32[b]) {\n  axis u = extent(t)\n  parallel b {\n"
                        "    s = sum(y, t)\n    stream t carry h = 0.0 {\n      h2 = h + y + s * max(y[b, u], u) + (y[b, 0] else 0)\n"
                        "      y[b, t] = h2\n      next h = h2\n    }\n    z[b] = s\n    w[b] = min(y, t)\n  }\n}\n",
                        {"y": np.cumsum(y + s * most + y[:, :1], 1), "z": s[:, 0], "w": y.min(1)}, y=y)

    def test_what_it_carries_is_stored_too(self):
        y = rows(9, 12)
        s = y.sum(1, keepdims=True)
        self.expect("program p(inout y: f32[b, t], out z: f32[b]) {\n  parallel b {\n    s = sum(y, t)\n"
                    "    stream t carry h = 0.0 {\n      h2 = h + y + s\n      y[b, t] = h2\n      next h = h2\n    }\n    z[b] = h\n  }\n}\n",
                    {"y": np.cumsum(y + s, 1), "z": (y + s).sum(1)}, y=y)

    def test_what_an_earlier_step_stored_is_carried(self):
        y = rows(9, 12)
        before = np.concatenate([np.zeros((9, 1), np.float32), y[:, :-1]], 1)
        self.expect("program p(inout y: f32[b, t]) {\n  parallel b {\n    stream t carry h = 0.0, old = 0.0 {\n"
                    "      h2 = h + old\n      y[b, t] = h2\n      next h = h2, old = y\n    }\n  }\n}\n",
                    {"y": np.cumsum(before, 1)}, y=y)

    def test_a_stream_that_stores_runs_once(self):
        # A carried value without an axis of instances is the same for all of them, and the stores are not.
        for t, b in ((3, 5), (2, 3000)):
            x = rows(t, b)
            step = np.arange(t, dtype=np.float32)[:, None]
            self.expect("program p(inout x: f32[t, b], out g: f32[b]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                        "      x[t, b] = x[t, b] * 2 + h\n      next h = h + 1.0\n    }\n    g[b] = h\n  }\n}\n",
                        {"x": x * 2 + step, "g": np.full(b, t, np.float32)}, x=x)
        x = rows(4, 9)
        self.expect("program p(inout x: f32[t, b], out g: f32[b], out q: f32[b]) {\n  parallel b {\n    stream t carry h = 0.0, k = 1.0 {\n"
                    "      x[t, b] = x[t, b] * 2 + k\n      next h = h + x[t, b], k = k + 1.0\n    }\n    g[b] = h\n    q[b] = k\n  }\n}\n",
                    {"x": x * 2 + np.arange(1, 5, dtype=np.float32)[:, None], "g": x.sum(0), "q": np.full(9, 5, np.float32)}, x=x)

    def test_a_step_reads_what_was_there_before_it(self):
        x = rows(6, 9)
        later = np.concatenate([x[:, 1:], np.zeros((6, 1), np.float32)], 1)
        self.expect("program p(inout x: f32[b, t], out y: f32[b, t], out z: f32[b, t]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                    "      x[b, t] = h\n      y[b, t] = x[b, t] + (x[b, t + 1] else 0)\n      z[b, t] = x[b, t]\n      next h = h + 1.0\n"
                    "    }\n  }\n}\n",
                    {"x": np.tile(np.arange(9, dtype=np.float32), (6, 1)), "y": x + later, "z": x}, x=x)
        error = self.refused(self.program("program p(inout x: f32[b, t], inout y: f32[b, t]) {\n  parallel b {\n    stream t carry h = 0.0 {\n"
                                          "      x[b, t] = y + h\n      y[b, t] = x - h\n      next h = h + 1.0\n    }\n  }\n}\n"), x=x, y=x)
        self.assertEqual(error["code"], "not_supported")
        self.assertIn("is read in the step of the stream over t that stores it", error["what"])

    def test_what_steps_would_overwrite_is_refused(self):
        stream = "stream t carry h = 0.0 {{\n      h2 = h + {}\n      y[b, t] = h2\n      next h = h2\n    }}"
        for read, after, says in (("(y[b, t - 1] else 0)", "", "y[b, t - 1] may read an element of y that an earlier step of the stream over t stores"),
                                  ("y[b, extent(t) - 1 - t]", "", "that an earlier step of the stream over t stores"),
                                  ("y", "z[b] = h + sum(y, t)", "y is read after the stream over t stores it"),
                                  ("sum(y[b, u] * f32(u + t), u)", "", "y is read at another place while the stream over t stores it")):
            with self.subTest(read=read):
                error = self.refused(self.program("program p(inout y: f32[b, t], inout z: f32[b]) {\n  axis u = extent(t)\n  parallel b {\n    "
                                                  + stream.format(read) + "\n    " + (after or "z[b] = 0") + "\n  }\n}\n"),
                                     y=rows(3, 4), z=rows(3))
                self.assertEqual(error["code"], "not_supported")
                self.assertIn(says, error["message"] if "message" in error else error["what"])


if __name__ == "__main__":
    main()
