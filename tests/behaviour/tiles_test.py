# Accesses that lie a row apart from lane to lane, as many neighbours of them as there are lanes: turned around in registers.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import DEVICES, ToolTest, close, main, softmax

TRANSPOSE = "program turn(in x: {0}[i, j], out y: {0}[j, i]) {{\n  parallel i, j {{ y[j, i] = x }}\n}}"
TWICE = """program twice(in x: f32[i, j], out y: f32[j, i], out z: f32[i, j]) {
  parallel i, j {
    y[j, i] = x + x
    z[i, j] = x * x
  }
}"""
KINDS = [np.float32, np.float64, np.float16, np.int8, np.int32, np.bool_]


class Tiles(ToolTest):
    def settings(self):
        for lanes in (2, 4, 8, 16):
            for axis, other in (("i", "j"), ("j", "i")):
                for stores in ("cached", "past_caches"):
                    yield [f"lanes={lanes}", f"lane_axes={axis}", f"tile.{other}={lanes}", f"tile.{axis}=1", f"stores={stores}"]

    def on_cpu(self, program, outs, settings, **arguments):
        device = "cpu" if "cpu" in DEVICES else "sim"
        return self.run_on(device, program, outs, *(word for s in settings for word in ("--set", s)), check=False, **arguments)

    def test_transposes_of_every_type(self):
        random = np.random.default_rng(1)
        for kind in KINDS:
            name = {"float32": "f32", "float64": "f64", "float16": "f16", "int8": "i8", "int32": "i32", "bool": "bool"}[np.dtype(kind).name]
            typed = self.program(TRANSPOSE.format(name))
            x = random.integers(-100, 100, (37, 53)).astype(kind)
            for settings in self.settings():
                np.testing.assert_array_equal(self.on_cpu(typed, ["y"], settings, x=x), x.T, err_msg=f"{name} {settings}")

    def test_of_extents_around_the_lanes_and_rows_of_any_pitch(self):
        random = np.random.default_rng(2)
        program = self.program(TRANSPOSE.format("f32"))
        settings = ["lanes=8", "lane_axes=i", "tile.j=8", "tile.i=1"]
        for rows, cols in ((8, 8), (7, 9), (9, 7), (16, 8), (17, 15), (1, 8), (8, 1), (0, 8), (64, 1025)):
            x = random.standard_normal((rows, cols)).astype(np.float32)
            np.testing.assert_array_equal(self.on_cpu(program, ["y"], settings, x=x), x.T, err_msg=f"{rows}x{cols}")
            turned = np.asfortranarray(x)
            np.testing.assert_array_equal(self.on_cpu(program, ["y"], settings, x=turned), x.T, err_msg=f"{rows}x{cols} by columns")

    def test_two_results_of_one_tile(self):
        x = np.random.default_rng(3).standard_normal((40, 33)).astype(np.float32)
        program = self.program(TWICE)
        for settings in self.settings():
            y, z = self.on_cpu(program, ["y", "z"], settings, x=x)
            np.testing.assert_array_equal(y, (x + x).T, err_msg=str(settings))
            np.testing.assert_array_equal(z, x * x, err_msg=str(settings))

    def test_short_rows_beside_each_other(self):
        random = np.random.default_rng(4)
        for rows, cols in ((100, 17), (33, 3), (16, 16), (50, 40)):
            x = random.standard_normal((rows, cols)).astype(np.float32)
            for lanes in (4, 8, 16):
                close(self.on_cpu("softmax", ["y"], [f"lanes={lanes}", "lane_axes=row", f"tile.col={lanes}"], x=x), softmax(x))


if __name__ == "__main__":
    main()
