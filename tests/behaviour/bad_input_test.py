# Everything that a user can hand over wrong: one message with its code, exit code 2, and no file that is new, changed or half
# written. What is no error although it looks like one is here too.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import struct
import subprocess

import numpy as np

from tool import ABSENT, DEVICES, DONE, TOOL, WRONG_INPUT, ToolTest, main

# Codes that the tool has no way to reach: it never lends one array to two parameters, and never forbids compiling.
LIBRARY_ONLY = {"overlap", "not_compiled"}

LANGUAGE = {  # code: (parameters, body, part of the message)
    "extra_axis": ("in x: f32[row], in g: f32[c], out y: f32[row]", "y[row] = x * g", "axis c, which the index does not name"),
    "no_such_axis": ("in x: f32[row], in g: f32[c], out y: f32[row]", "y[row] = sum(x, c)", "the value has no axis c"),
    "unfinished_reduction": ("in x: f32[row], out y: f32[row]", "y[row] = x - sum(x, row)", "when every instance of row has finished"),
    "store_conflict": ("in x: f32[row], out y: f32[2]", "y[0] = x", "every instance of row would store"),
    "out_of_bounds": ("in x: f32[row], out y: f32[row]", "y[row] = x[row + 1]", "leaves its extents"),
    "unproved_gather": ("in x: f32[row], in at: i32[row], out y: f32[row]", "y[row] = x[at]", "nothing says at < extent(row)"),
    "partial_out": ("in x: f32[row], out y: f32[row, 2]", "y[row, 0] = x", "element (0, 1) is never stored"),
    "cut_dependent": ("in x: f32[row, n], out y: f32[row]",
                      "stream tile n carry m = 0.0 { next m = m + max(x, n) * 0 + 1 }\n    y[row] = m", "depends on where the stream over n is cut"),
    "range_on_tile_axis": ("in x: f32[row, e], out y: f32[row, e]", "axis t in 0 .. e\n    y[row, e] = sum(x[row, t], t)", "not a program axis"),
    "repeated_axis": ("in x: f32[row, row], out y: f32[row]", "y[row] = x[row, row]", "axis row appears twice"),
    "syntax": ("in x: f32[row], out y: f32[row]", "y[row] = (x", "expected"),
    "unknown_name": ("in x: f32[row], out y: f32[row]", "y[row] = z", "nothing declares the name z"),
    "type_mismatch": ("in x: f32[row], out y: i32[row]", "y[row] = x", "y is i32"),
    "redefined": ("in x: f32[row], out y: f32[row]", "x = 3\n    y[row] = x", "already"),
    "not_supported": ("in x: f32[row], out y: f32[row]", "y[row] = sort(x, row)", "the language has no sort"),
}


def npy(header, data=b"", length=None):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) if length is None else length) + text + data


class BadInput(ToolTest):
    def setUp(self):
        super().setUp()
        self.out = self.path / "y.npy"
        self.out.write_bytes(b"what was here before")
        self.codes = set()

    def state(self):
        return {name: (self.path / name).read_bytes() for name in os.listdir(self.path) if (self.path / name).is_file()}

    def refused(self, code, says, *arguments, environment=None, exit_code=WRONG_INPUT):
        """The command is refused with this code, in words and as JSON, and leaves all files as they are."""
        before = self.state()
        with self.subTest(arguments=arguments):
            for options in ([], ["--json"]):
                result = subprocess.run([TOOL, *map(str, arguments), *options], capture_output=True, text=True, cwd=self.path,
                                        env={**os.environ, **(environment or {})})
                self.assertEqual(result.returncode, exit_code, result.stdout + result.stderr)
                # Beside the error there may be how far a slow machine has come.
                lines = [line for line in result.stderr.splitlines() if not re.match(r"cosmati: .*: \d+ s", line)]
                self.assertEqual(len(lines), 1, result.stderr)
                self.assertRegex(lines[0], rf"^(\S.*: )?{code}: ")
                self.assertIn(says, lines[0])
                self.assertLess(len(lines[0]), 2000)
            errors = json.loads(result.stdout)["errors"]
            self.assertEqual([error["code"] for error in errors], [code])
            self.assertEqual(set(errors[0]), {"code", "file", "line", "column", "what", "origin", "hint"})
            self.assertEqual(self.state(), before, "a file is new or changed")
        self.codes.add(code)

    def run_refused(self, code, says, *arguments, **more):
        self.refused(code, says, "run", *arguments, *([] if "--out" in arguments else ["--out", f"y={self.out}"]), **more)

    def file(self, name, data):
        (self.path / name).write_bytes(data)
        return f"x={self.path / name}"

    def array(self, name, value):
        np.save(self.path / name, value, allow_pickle=True)
        return f"x={self.path / name}"

    def test_every_code_is_reached(self):
        for code, (parameters, body, says) in LANGUAGE.items():
            path = self.program(f"program p({parameters}) {{\n  parallel row {{\n    {body}\n  }}\n}}\n")
            self.refused(code, says, "check", path)
        minus = self.program("""reducer minus(x) {
          identity m = 0.0
          lift m = x
          merge m = a.m - b.m
          finish m
        }
        program p(in x: f32[row, col], out y: f32[row]) {
          parallel row { y[row] = minus(x, col) }
        }""")
        self.refused("reducer_law", "reducer minus", "check", minus)
        self.refused("contract_broken", "label", "run", "cross_entropy", "x=f32[5,4]:normal", "label=i32[5]:arange")
        self.refused("extent_mismatch", "axis row", "run", "cross_entropy", "x=f32[3,4]:normal", "label=i32[7]:zeros")
        self.refused("bad_file", "none.npy", "run", "softmax", "x=none.npy")
        self.refused("bad_argument", "softmax needs x", "run", "softmax")
        self.refused("unknown_knob", "no_such_knob", "run", "softmax", "x=f32[3,4]:normal", "--set", "no_such_knob=1")
        self.refused("bad_knob", "lanes", "run", "softmax", "x=f32[3,4]:normal", "--set", "lanes=3")
        self.file("plan.json", b"{}")
        self.refused("bad_plan", "", "run", "softmax", "x=f32[3,4]:normal", "--plan", "plan.json")
        absent = "cuda" if "cpu" in DEVICES else "cpu"
        self.refused("backend_absent", absent, "run", "softmax", "x=f32[3,4]:normal", "--device", absent, exit_code=ABSENT)
        page = json.loads(subprocess.run([TOOL, "docs", "--json"], capture_output=True, text=True, check=True).stdout)["pages"]["errors"]
        self.assertEqual(self.codes | LIBRARY_ONLY, set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)))

    def test_arrays_that_do_not_fit(self):
        good = "x=f32[3,4]:normal"
        self.run_refused("bad_argument", "x has 1 dimension [4], but softmax declares [row, col]", "softmax", "x=f32[4]:normal")
        self.run_refused("bad_argument", "x has 3 dimensions [2, 3, 4]", "softmax", self.array("a.npy", np.ones((2, 3, 4), np.float32)))
        self.run_refused("type_mismatch", "x is i32, but softmax takes float types for T", "softmax", self.array("b.npy", np.ones((3, 4), np.int32)))
        self.run_refused("bad_argument", "x is f32 but gamma is f16, and both are T", "layer_norm", good, "gamma=f16[4]:ones", "beta=f32[4]:ones")
        self.run_refused("extent_mismatch", "axis col is 4 in dimension 1 of x but 5 in dimension 0 of beta", "layer_norm", good, "gamma=f32[4]:ones",
                         "beta=f32[5]:ones")
        attention = ["attention", "q=f32[1,28,2,8]:normal", "k=f32[1,5,4,8]:normal", "v=f32[1,5,4,8]:normal"]
        self.run_refused("extent_mismatch", "dimension 1 of q: extent 28 is not a multiple of 5 = g. g is 5 in dimension 1 of k", *attention)
        self.run_refused("bad_argument", "memory", "softmax", "x=f32[999999999,99999]:zeros")
        self.run_refused("bad_argument", "64 bits", "softmax", "x=f32[99999999999,99999999999]:zeros")
        for wrong in ("x=f32[3,-4]:normal", "x=f32[3,x]:normal", "x=f32[3,4]", "x=f32[3,4]:noise", "x=f31[3,4]:normal", "x=3", "x=true", "x=f32:normal",
                      "x=normal", "x", "x=", "=3"):
            self.run_refused("bad_argument", "", "softmax", wrong)
        self.file("range.tile", b"program p(in x: f32[n], out y: f32[n], k: i64) {\n  parallel n {\n    axis t in 0 .. k\n    y[n] = x * max(f32(t % 2), t)\n  }\n}\n")
        self.run_refused("bad_argument", "axis t has 9223372036854775775 points", "range.tile", "x=f32[7]:ones", "k=9223372036854775775")
        self.run_refused("bad_argument", "eps is a scalar f32", "layer_norm", good, "gamma=f32[4]:ones", "beta=f32[4]:ones", "eps=f32[]:ones")
        self.run_refused("bad_argument", "w is i32, but 1.5 is given", "attention_window", attention[1], "k=f32[1,28,4,8]:ones", "v=f32[1,28,4,8]:ones",
                         "w=1.5", "scale=1")
        self.run_refused("bad_argument", "given twice", "softmax", good, good)
        self.run_refused("bad_argument", "no parameter 'z'", "softmax", good, "z=3")
        self.run_refused("bad_argument", "normal", "column_sums", "x=i32[3,4]:normal")

    def test_files_that_are_missing_truncated_or_lie(self):
        whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", bytes(48))
        shaped = "{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}"
        files = {
            "empty": b"",
            "magic": b"\x93NUMPY",
            "text": b"softmax",
            "cut in the header": whole[:40],
            "cut in the data": whole[:-1],
            "no data": whole[:-48],
            "a header longer than the file": npy("{'descr': '<f4'", length=60000),
            "a negative extent": npy(shaped.format("(-3, 4)"), bytes(48)),
            "an extent beyond 64 bits": npy(shaped.format("(99999999999999999999, 4)"), bytes(48)),
            "a product beyond 64 bits": npy(shaped.format("(4294967296, 4294967296)"), bytes(48)),
            "more elements than bytes": npy(shaped.format("(3, 5)"), bytes(48)),
            "a shape that is none": npy(shaped.format("(3, 'x')"), bytes(48)),
            "an order that is none": npy("{'descr': '<f4', 'fortran_order': 7, 'shape': (3, 4), }", bytes(48)),
            "no shape": npy("{'descr': '<f4', 'fortran_order': False, }", bytes(48)),
            "big-endian": whole.replace(b"<f4", b">f4"),
            "complex": whole.replace(b"<f4", b"<c8"),
            "an unknown type": whole.replace(b"<f4", b"<q9"),
            "a future version": whole.replace(b"\x01\x00", b"\x09\x00", 1),
        }
        for name, data in files.items():
            path = name.replace(" ", "_") + ".npy"
            self.run_refused("bad_file", path, "softmax", self.file(path, data))
        self.run_refused("bad_file", "object", "softmax", self.array("object.npy", np.array([None, 1], object)))
        self.run_refused("bad_file", "record", "softmax", self.array("record.npy", np.zeros((3, 4), [("a", "<f4")])))
        np.savez(self.path / "archive.npz", x=np.zeros((3, 4)))
        self.run_refused("bad_file", "numpy.save writes one array", "softmax", f"x={self.path / 'archive.npz'}")
        self.run_refused("bad_file", "not a regular file", "softmax", f"x={self.path}")
        self.run_refused("bad_file", "none.npy", "softmax", "x=none.npy")

    def test_names_of_nothing(self):
        good = ["softmax", "x=f32[3,4]:normal"]
        self.run_refused("unknown_name", "did you mean softmax", "sofmax", good[1])
        self.run_refused("unknown_name", "neither a file nor a shipped program", "none.tile:p", good[1])
        two = self.program("program a(out y: f32[2]) {\n  axis i = 2\n  parallel i { y[i] = 1.0 }\n}\n"
                           "program b(out y: f32[]) {\n  parallel { y[] = 1.0 }\n}\n")
        self.run_refused("unknown_name", "holds 2 programs", two)
        self.run_refused("unknown_name", "holds no program `c`", f"{two}:c")
        self.run_refused("syntax", "holds no program", self.program("# nothing\n"))
        self.run_refused("bad_argument", "abacus", *good, "--device", "abacus")
        self.run_refused("bad_argument", "abacus", *good, environment={"COSMATI_DEVICE": "abacus"})
        self.run_refused("bad_argument", "seed", *good, "--seed", "x")
        self.run_refused("bad_argument", "no option '--no-such-option'", *good, "--no-such-option")
        self.run_refused("unknown_knob", "there is no knob `lane`. Hint: ", *good, "--set", "lane=8")
        for knob in ("lanes=3", "lanes=x", "lanes=", "home.e=elsewhere", "home.f=worker", "tile.col=17", "tile.k=2", "lane_axes=k"):
            self.run_refused("bad_argument" if knob[-1] == "=" else "bad_knob", knob.split("=")[0], *good, "--set", knob)
        self.run_refused("bad_knob", "twice", *good, "--set", "lanes=8", "--set", "lanes=4")
        self.run_refused("bad_argument", "no tensor 'z'", *good, "--out", "z=z.npy")
        self.run_refused("bad_file", "no_such_folder", *good, "--out", "y=no_such_folder/y.npy")
        self.run_refused("bad_argument", "two results", "min_max", good[1], "--out", f"lo={self.out}", "--out", f"hi={self.out}")
        self.run_refused("unknown_name", "names no value `f`", *good, "--probe", "f=f.npy")
        self.refused("bad_argument", "not emitted as `ptx`", "emit", *good, "--as", "ptx")
        for device in ("sim", "oracle"):
            for form in ("llvm", "asm"):
                self.refused("bad_argument", f"this device is {device}. Hint: ", "emit", *good, "--as", form, "--device", device)
        for seed in ("-1", "1.5", "18446744073709551616"):
            self.run_refused("bad_argument", f"'{seed}' is no seed", *good, "--seed", seed)
        self.refused("bad_argument", "there is no command 'rum'", "rum", *good)

    def test_plans_of_something_else(self):
        def plan(name, *arguments):
            subprocess.run([TOOL, "plan", *arguments, "--save", self.path / name], check=True, capture_output=True)
            return ["--plan", str(self.path / name)]
        good = ["softmax", "x=f32[3,4]:normal"]
        own = plan("own.json", *good)
        subprocess.run([TOOL, "run", *good, *own], check=True, capture_output=True)
        self.run_refused("bad_plan", "program", *good, *plan("sum.json", "sum", good[1]))
        self.run_refused("bad_plan", 'where "x: f16, 2 dimensions", but here "x: f32', *good, *plan("f16.json", "softmax", "x=f16[3,4]:normal"))
        self.run_refused("bad_plan", "leave out --set", *good, *own, "--set", "lanes=1")
        lanes = plan("lanes.json", *good, "--set", "lanes=8")
        self.run_refused("bad_plan", "knob lanes is 8 in the plan, but is set to 4", *good, *lanes, "--set", "lanes=4")
        self.run_refused("bad_plan", "stride", "softmax", self.array("fortran.npy", np.asfortranarray(np.ones((3, 4), np.float32))), *own)
        if "cpu" in DEVICES:
            self.run_refused("bad_plan", "target", *good, *plan("sim.json", *good, "--device", "sim"), "--device", "cpu")
        text = (self.path / "own.json").read_bytes()
        changed = text.replace(b"instances of row", b"instances of col", 1)
        self.assertNotEqual(changed, text)
        for name, data in {"empty": b"", "half": text[: len(text) // 2], "list": b"[]", "changed": changed, "bytes": bytes(range(256))}.items():
            (self.path / f"{name}.json").write_bytes(data)
            self.run_refused("bad_plan", f"{name}.json: bad_plan: ", *good, "--plan", f"{name}.json")
        self.run_refused("bad_file", "none.json", *good, "--plan", "none.json")

    def test_promises_about_data_that_are_broken(self):
        program = self.program("""program p(in x: f32[n], in at: i32[m] in 0 .. extent(n), in up: i32[m] in 0 .. 9 sorted, in one: i32[m] in 0 .. 9 distinct,
                                            k: i32, out y: f32[m]) {
          require k > 2
          parallel m { y[m] = x[at] + f32(up + one + k) }
        }""")
        good = {"at": [0, 1, 2], "up": [1, 1, 3], "one": [4, 0, 8]}

        def arguments(k=3, **changed):
            values = {**good, **changed}
            return [program, "x=f32[3]:normal", f"k={k}", *(self.argument(name, np.int32(value)) for name, value in values.items())]
        for _, y in self.each(program, ["y"], x=np.zeros(3, np.float32), k=3, **{name: np.int32(value) for name, value in good.items()}):
            np.testing.assert_array_equal(y, [8, 4, 14])
        self.run_refused("contract_broken", "at[1] = 3 is outside 0 .. 3 (extent of n in x)", *arguments(at=[0, 3, 2]))
        self.run_refused("contract_broken", "at[2] = -1 is outside 0 .. 3", *arguments(at=[0, 1, -1]))
        self.run_refused("contract_broken", "up[2] = 0 is less than up[1] = 1, but up is sorted", *arguments(up=[1, 1, 0]))
        self.run_refused("contract_broken", "one[2] = 4 is also one[0], but one is distinct", *arguments(one=[4, 0, 4]))
        self.run_refused("contract_broken", "require k > 2 does not hold: k is 2. Hint: pass arguments with k > 2", *arguments(k=2))

    def test_texts_of_any_bytes(self):
        noise = np.random.default_rng(11)
        program = (b"program softmax(in x: f32[row, col], out y: f32[row, col]) {\n  parallel row {\n    e = exp(x - max(x, col))\n"
                   b"    y[row, col] = e / sum(e, col)\n  }\n}\n")
        codes = set(LANGUAGE) | {"bad_file", "bad_argument", "extent_mismatch"}
        for k in range(60):
            data = bytearray(program)
            for _ in range(1 + k % 5):
                at = int(noise.integers(0, len(data)))
                data[at:at + int(noise.integers(0, 3))] = noise.integers(0, 256, int(noise.integers(0, 4)), np.uint8).tobytes()
            (self.path / "noise.tile").write_bytes(data)
            before = self.state()
            result = subprocess.run([TOOL, "run", "noise.tile", "x=f32[3,4]:ones", "--json", "--out", f"y={self.out}", "--device", "oracle"],
                                    capture_output=True, cwd=self.path)
            self.assertIn(result.returncode, (DONE, WRONG_INPUT), bytes(data))
            object = json.loads(result.stdout)
            if result.returncode == WRONG_INPUT:
                self.assertEqual(len(object["errors"]), 1)
                self.assertIn(object["errors"][0]["code"], codes)
                self.assertEqual(self.state(), before)
            self.out.write_bytes(b"what was here before")

    def test_nothing_is_no_error(self):
        for rows, cols in ((0, 0), (0, 5), (5, 0), (1, 1), (5, 1)):
            for _, y in self.each("softmax", ["y"], x=np.ones((rows, cols), np.float32)):
                self.assertEqual(y.shape, (rows, cols))
        ranges = self.program("""program p(in x: f32[row, col], in lo: i32[row] in 0 .. extent(col) + 1, out s: f32[row], out hi: f32[row]) {
          parallel row {
            axis t in lo .. extent(col) - lo
            s[row] = sum(x[row, t], t)
            hi[row] = max(x[row, t], t)
          }
        }""")
        for _, (s, hi) in self.each(ranges, ["s", "hi"], x=np.ones((4, 5), np.float32), lo=np.int32([0, 2, 3, 5])):
            np.testing.assert_array_equal(s, [5, 1, 0, 0])
            np.testing.assert_array_equal(hi, [1, 1, -np.inf, -np.inf])


if __name__ == "__main__":
    main()
