# Arrays as users have them: transposed, Fortran order, odd products, missing and lying files, wrong arguments.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess

import numpy as np

from tool import ABSENT, DEVICES, DONE, TOOL, WRONG_INPUT, ToolTest, close, main, softmax

rng = np.random.default_rng(4)


class Files(ToolTest):
    def test_fortran_order_means_the_same_array(self):
        for shape in ((32, 32), (5, 64), (1, 7), (7, 1)):
            x = rng.standard_normal(shape).astype(np.float32)
            for _, y in self.each("softmax", ["y"], x=np.asfortranarray(x)):
                close(y, softmax(x))

    def test_products_of_odd_sizes(self):
        for m, n, k in ((1, 105, 107), (2, 4, 3), (1, 1, 1), (17, 33, 65), (3, 5, 1), (0, 4, 3), (4, 0, 3), (4, 3, 0)):
            a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
            wanted = a.astype(np.float64) @ b.astype(np.float64)
            for order in (np.ascontiguousarray, np.asfortranarray):
                for _, c in self.each("matmul", ["c"], a=order(a), b=order(b)):
                    self.assertEqual(c.shape, (m, n))
                    close(c, wanted, rtol=1e-4, atol=1e-5)

    def test_a_large_product_of_odd_rows(self):
        a, b = rng.standard_normal((1471, 512)).astype(np.float32), rng.standard_normal((512, 256)).astype(np.float32)
        c = self.run_on("cpu" if "cpu" in DEVICES else "oracle", "matmul", ["c"], check=False, a=a, b=b)
        close(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)

    def test_every_element_type_is_copied_exactly(self):
        program = self.program("program f<T: any>(in x: T[i], out y: T[i]) {\n parallel i { y[i] = x }\n}")
        for dtype in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "f2", "f4", "f8"):
            x = np.arange(40).astype(dtype)
            for _, y in self.each(program, ["y"], x=x):
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y, x)

    def test_an_inout_is_read_and_written(self):
        program = self.program("program f(inout y: f32[i], in x: f32[i]) {\n parallel i { y[i] = y + x }\n}")
        x, y = rng.standard_normal(70).astype(np.float32), rng.standard_normal(70).astype(np.float32)
        for _, got in self.each(program, ["y"], x=x, y=y):
            np.testing.assert_array_equal(got, x + y)

    def test_an_input_file_is_never_changed(self):
        program = self.program("program f(inout y: f32[i]) {\n parallel i { y[i] = y + 1 }\n}")
        path = self.path / "y.npy"
        np.save(path, np.zeros(8, np.float32))
        for device in DEVICES:
            subprocess.run([TOOL, "run", program, f"y={path}", "--device", device], check=True, capture_output=True)
            np.testing.assert_array_equal(np.load(path), np.zeros(8))

    def test_a_file_can_be_replaced_by_the_result_of_reading_it(self):
        x = rng.standard_normal((4, 9)).astype(np.float32)
        path = self.path / "x.npy"
        np.save(path, x)
        subprocess.run([TOOL, "run", "softmax", f"x={path}", "--out", f"y={path}", "--device", "oracle"], check=True, capture_output=True)
        close(np.load(path), softmax(x))

    def refusal(self, *arguments):
        before = sorted(os.listdir(self.path))
        result = subprocess.run([TOOL, "run", *arguments, "--json"], capture_output=True, text=True)
        self.assertEqual(result.returncode, WRONG_INPUT, result.stdout + result.stderr)
        self.assertEqual(sorted(os.listdir(self.path)), before, "something was written")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        object = json.loads(result.stdout)
        self.assertFalse(object["ok"])
        return object["errors"][0]["code"], result.stderr

    def test_wrong_input_is_refused_and_nothing_is_written(self):
        out = f"y={self.path / 'y.npy'}"
        good = self.path / "good.npy"
        np.save(good, np.ones((3, 4), np.float32))
        (self.path / "short.npy").write_bytes(good.read_bytes()[:-1])
        np.save(self.path / "object.npy", np.array([None, 1], object), allow_pickle=True)
        np.save(self.path / "big.npy", np.ones((3, 4), ">f4"))
        np.save(self.path / "flat.npy", np.ones(4, np.float32))
        np.save(self.path / "ints.npy", np.ones((3, 4), np.int32))
        generated = "x=f32[3,4]:normal"
        cases = [
            (["softmax", f"x={self.path / 'none.npy'}"], "bad_file", "none.npy"),
            (["softmax", f"x={self.path / 'short.npy'}"], "bad_file", "47"),
            (["softmax", f"x={self.path / 'object.npy'}"], "bad_file", "object"),
            (["softmax", f"x={self.path / 'big.npy'}"], "bad_file", "big-endian"),
            (["softmax", f"x={self.path / 'flat.npy'}"], "bad_argument", "x"),
            (["softmax", f"x={self.path / 'ints.npy'}"], None, "i32"),
            (["softmax"], "bad_argument", "needs x"),
            (["softmax", generated, generated], "bad_argument", "twice"),
            (["softmax", generated, "z=3"], "bad_argument", "no parameter 'z'"),
            (["softmax", "x"], "bad_argument", "name=value"),
            (["softmax", "x=f32[3,4]:nothing"], "bad_argument", "nothing"),
            (["softmax", "x=f32[3,-4]:normal"], "bad_argument", "negative"),
            (["softmax", "x=f32[3,x]:normal"], "bad_argument", "shape"),
            (["softmax", "x=f32[3,4]"], "bad_argument", "generator"),
            (["softmax", "x=f32[99999999999,99999999999]:zeros"], "bad_argument", "64 bits"),
            (["softmax", "x=f32[999999999,99999]:zeros"], "bad_argument", "memory"),
            (["layer_norm", generated, "gamma=f32[4]:ones", "beta=f32[5]:ones"], "extent_mismatch", "5"),
            (["layer_norm", generated, "gamma=f32[4]:ones", "beta=f32[4]:ones", "eps=tiny"], "bad_argument", "eps"),
            (["cross_entropy", generated, "label=i32[3]:arange", "--seed", "x"], "bad_argument", "seed"),
            (["no_such_program", generated], "unknown_name", "no_such_program"),
            (["softmax", generated, "--set", "no_such_knob=1"], "unknown_knob", "no_such_knob"),
            (["softmax", generated, "--device", "abacus"], "bad_argument", "abacus"),
            (["softmax", generated, "--plan", str(self.path / "none.json")], "bad_file", "none.json"),
            (["softmax", generated, "--out", f"z={self.path / 'z.npy'}"], "bad_argument", "z"),
            (["softmax", generated, "--out", "y=/no/such/folder/y.npy"], "bad_file", "folder"),
            (["softmax", generated, "--no-such-option"], "bad_argument", "no-such-option"),
        ]
        for arguments, code, text in cases:
            with self.subTest(arguments=arguments):
                got, message = self.refusal(*arguments, *([] if "--out" in arguments else ["--out", out]))
                if code:
                    self.assertEqual(got, code, message)
                self.assertIn(text, message)

    def test_only_regular_files_are_replaced_by_results(self):
        folder, pipe, link = self.path / "folder", self.path / "pipe", self.path / "null"
        folder.mkdir()
        os.mkfifo(pipe)
        link.symlink_to("/dev/null")
        for path in (folder, pipe, link):
            self.assertEqual(self.refusal("softmax", "x=f32[3,4]:normal", "--out", f"y={path}")[0], "bad_file", path)
            result = subprocess.run([TOOL, "plan", "softmax", "x=f32[3,4]:normal", "--save", path], capture_output=True)
            self.assertEqual(result.returncode, WRONG_INPUT, path)
        self.assertTrue(folder.is_dir() and pipe.is_fifo() and link.is_symlink())

    def test_writes_that_fail_leave_nothing_behind(self):
        out = self.path / "y.npy"
        limited = subprocess.run(["sh", "-c", f"ulimit -f 4096; exec {TOOL} run transpose 'x=f32[1000,1000]:ones' --out y={out}"], capture_output=True)
        self.assertEqual(limited.returncode, WRONG_INPUT, limited.stderr)
        self.assertEqual(os.listdir(self.path), [])
        for command in ("run softmax 'x=f32[3,4]:ones'", "run softmax 'x=f32[3,4]:ones' --json", "docs"):
            full = subprocess.run(["sh", "-c", f"exec {TOOL} {command} > /dev/full"], capture_output=True)
            self.assertEqual(full.returncode, WRONG_INPUT, command)
            self.assertIn(b"standard output", full.stderr)

    def test_two_results_need_two_files(self):
        path = self.path / "both.npy"
        outs = ["--out", f"lo={path}", "--out", f"hi={self.path / '.' / 'both.npy'}"]
        self.assertEqual(self.refusal("min_max", "x=f32[3,4]:normal", *outs)[0], "bad_argument")

    def test_pipes_and_endless_devices_are_refused_at_once(self):
        pipe = self.path / "pipe.npy"
        os.mkfifo(pipe)
        self.assertEqual(self.refusal("softmax", f"x={pipe}")[0], "bad_file")
        self.assertEqual(self.refusal("softmax", "x=/dev/zero")[0], "bad_file")
        self.assertEqual(self.refusal("/dev/zero", "x=f32[3,4]:normal")[0], "bad_file")
        self.assertEqual(self.refusal("softmax", "x=f32[3,4]:normal", "--plan", "/dev/zero")[0], "bad_file")

    def test_damaged_plans_are_refused(self):
        path = self.path / "plan.json"
        run = ["softmax", "x=f32[3,4]:normal", "--plan", str(path)]
        subprocess.run([TOOL, "plan", *run[:2], "--save", path], check=True, capture_output=True)
        good = json.loads(path.read_text())
        deep = '{"domain": ' + "[" * 1000000 + "]" * 1000000 + "}"
        texts = ["", "[]", "null", '{"schema": 1}', deep, path.read_text()[:-40]]
        for key in ("schema", "program", "program_hash", "target", "knobs", "domain", "mapping", "hash"):
            texts.append(json.dumps({k: v for k, v in good.items() if k != key}))
            texts += [json.dumps(good | {key: value}) for value in (None, -1, 1e300, 10**40, "x" * 5000, [[]], {"a": 1})]
        for text in texts:
            path.write_text(text)
            with self.subTest(plan=text[:60]):
                code, message = self.refusal(*run)
                self.assertIn(code, ("bad_plan", "unknown_knob"))
                self.assertLess(len(message), 2000)

    def test_programs_of_any_bytes_are_refused(self):
        noise = np.random.default_rng(5)
        path = self.path / "noise.tile"
        seeds = [b"", b"\xff\xfe", b"program", b"(" * 100000, b"program f(in x: f32[i], out y: f32[i]) { parallel i { y[i] = " + b"-" * 200000 + b"x } }"]
        for data in seeds + [noise.integers(0, 256, 300, np.uint8).tobytes() for _ in range(40)]:
            path.write_bytes(data)
            result = subprocess.run([TOOL, "check", str(path)], capture_output=True)
            self.assertIn(result.returncode, (DONE, WRONG_INPUT), result.stderr[-300:])
            if data:
                self.assertEqual(result.returncode, WRONG_INPUT, data[:40])

    def test_commands_print_what_they_promise(self):
        run = [TOOL, "run", "softmax", "x=f32[37,70]:normal", "--device", "oracle"]
        lines = subprocess.run(run + ["--check", "--time"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertRegex(lines[0], r"^y f32\[37,70\] \S+ \S+ \S+ 0$")
        self.assertRegex(lines[1], r"^check y \S+ \S+ \S+ ok$")
        self.assertRegex(lines[2], r"^time \S+ us copy \S+ us ratio ")
        probe = self.path / "e.npy"
        object = json.loads(subprocess.run(run + ["--json", "--check", "--time", "--probe", f"e={probe}"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(object["schema"], 1)
        self.assertTrue(object["ok"])
        self.assertEqual(object["errors"], [])
        self.assertEqual(object["outputs"][0]["shape"], [37, 70])
        for key in ("time_us", "copy_us", "compiles"):
            self.assertIn(key, object)
        self.assertEqual(np.load(probe).shape, (37, 70))
        checked = subprocess.run([TOOL, "check", "softmax", "layer_norm"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(checked.splitlines(), ["softmax: ok", "layer_norm: ok"])
        self.assertEqual(subprocess.run([TOOL, "--help"], capture_output=True).returncode, DONE)

    def test_the_same_seed_gives_the_same_arrays(self):
        files = []
        for seed in ("0", "0", "1"):
            files.append(self.path / f"x{len(files)}.npy")
            subprocess.run([TOOL, "run", "softmax", "x=f32[5,9]:normal", "--seed", seed, "--out", f"x={files[-1]}", "--device", "oracle"],
                           check=True, capture_output=True)
        a, b, c = (np.load(f) for f in files)
        np.testing.assert_array_equal(a, b)
        self.assertTrue((a != c).any())

    def test_an_absent_backend_has_its_own_exit_code(self):
        result = subprocess.run([TOOL, "run", "softmax", "x=f32[2,3]:ones", "--device", "cpu"], capture_output=True)
        self.assertEqual(result.returncode, DONE if "cpu" in DEVICES else ABSENT)


if __name__ == "__main__":
    main()
