# Packages, from the tool that writes them to a program that links the installed runtime-only library: results against NumPy and
# against the compiled kernels to the bit, and one clear error for every package that is not what it says.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "install"))
TOOL = sys.argv.pop(1)
from projects import BUILD, CACHE, CMAKE, SANITIZE, SOURCE, configure, run  # noqa: E402

LIMIT_MB = 12
rng = np.random.default_rng(7)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True), dtype=np.float64)
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, gamma, beta, eps):
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def cross_entropy(x, label):
    e = np.log(np.exp(x.astype(np.float64)).sum(-1))
    return np.where(label < 0, 0, e - x[np.arange(len(x)), label])


class Case:
    """A program, the words it is packaged with, arguments in declared order (None: left out, arrays of zeros: outputs), and NumPy's
    results."""

    def __init__(self, program, words, arguments, expected, scratch):
        self.program, self.words, self.arguments, self.expected, self.scratch = program, words, arguments, expected, scratch


TWO_PHASES = """program spread(in x: f32[row, col], k: f32, out y: f32[row, col], out total: f32[col]) {
  parallel row {
    e = exp(x * k)
    s = e / sum(e, col)
    y[row, col] = s
    total[col] = sum(s, row)
  }
}
"""


def cases(folder):
    (folder / "spread.tile").write_text(TWO_PHASES)
    x, g, b = normal(37, 1537), normal(1537), normal(1537)
    label = rng.integers(-1, 1537, 37).astype(np.int32)
    zeros = np.zeros_like
    row = np.zeros(37, np.float32)
    return {
        "softmax": Case("softmax", ["x=f32[1,1]:zeros"], [x, zeros(x)], [softmax(x)], True),
        "layer_norm": Case("layer_norm", ["x=f32[2,2]:zeros", "gamma=f32[2]:zeros", "beta=f32[2]:zeros"], [x, g, b, zeros(x), 1e-3],
                           [layer_norm(x, g, b, 1e-3)], None),
        "layer_norm_default": Case("layer_norm", ["x=f32[2,2]:zeros", "gamma=f32[2]:zeros", "beta=f32[2]:zeros"], [x, g, b, zeros(x), None],
                                   [layer_norm(x, g, b, 1e-5)], None),
        "column_sums": Case("column_sums", ["x=f32[4,4]:zeros"], [x, np.zeros(1537, np.float32)], [x.sum(0, dtype=np.float64)], None),
        "cross_entropy": Case("cross_entropy", ["x=f32[4,4]:zeros", "label=i32[4]:zeros"], [x, label, row], [cross_entropy(x, label)], None),
        "spread": Case(f"{folder}/spread.tile", ["x=f32[3,3]:zeros", "k=1"], [x, 0.25, zeros(x), np.zeros(1537, np.float32)],
                       [softmax(x / 4), softmax(x / 4).sum(0)], True),
    }


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        first, cls.prefix = cls.folder / "first", cls.folder / "installed"
        run(CMAKE, "--install", BUILD, "--prefix", first, "--component", "runtime", "--strip")
        shutil.move(first, cls.prefix)
        cls.libdir = next(cls.prefix.rglob("libcosmati_runtime.so")).parent
        cls.library = (cls.libdir / "libcosmati_runtime.so").resolve()
        cls.driver = cls.build(SOURCE / "tests/package/driver", cls.folder / "driver") / "driver"
        cls.cases = cases(cls.folder)
        for name, case in cls.cases.items():
            run(TOOL, "package", case.program, *case.words, cls.folder / name)

    @classmethod
    def build(cls, source, build, *options):
        configure(source, build, f"-DCMAKE_PREFIX_PATH={cls.prefix}", *options)
        run(CMAKE, "--build", build)
        return build

    def drive(self, package, *arguments):
        """The exit code and the texts of the driver."""
        return subprocess.run([str(self.driver), str(package), *arguments], capture_output=True, text=True, cwd="/")

    def refused(self, package, code, pattern, *arguments):
        done = self.drive(package, *arguments)
        self.assertEqual(done.returncode, 2, f"{done.returncode} {done.stdout} {done.stderr}")
        self.assertRegex(done.stderr, rf"(^|: ){code}: ")
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    # ---- what runs ----

    def words(self, case, folder):
        """The arguments for the driver, their arrays written to files."""
        words = []
        for i, a in enumerate(case.arguments):
            if isinstance(a, np.ndarray):
                dtype = {"float32": "f32", "int32": "i32"}[a.dtype.name]
                a.tofile(folder / f"{i}.bin")
                words.append(f"{dtype}:{','.join(map(str, a.shape))}:{folder / f'{i}.bin'}")
            else:
                words.append("-" if a is None else str(a))
        return words

    def test_results_are_those_of_compiled_kernels_to_the_bit_and_of_numpy(self):
        for name, case in self.cases.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as temporary:
                temporary = pathlib.Path(temporary)
                done = self.drive(self.folder / name, *self.words(case, temporary))
                self.assertEqual(done.returncode, 0, done.stderr)
                if case.scratch:
                    self.assertGreater(int(done.stdout.split()[1]), 0)
                parameters = json.loads(run(TOOL, "plan", case.program, *case.words, "--json"))["domain"]
                names = [line.split(":")[0] for line in parameters if re.match(r"\w+: ", line)]
                self.assertTrue(names)
                outputs = [i for i, a in enumerate(case.arguments) if isinstance(a, np.ndarray) and not a.any()]
                self.assertEqual(len(outputs), len(case.expected))
                given, outs, tensor = [], [], 0
                for i, a in enumerate(case.arguments):
                    if a is None:
                        continue
                    if not isinstance(a, np.ndarray):
                        given.append(f"{'k' if name == 'spread' else 'eps'}={a}")
                        continue
                    np.save(temporary / f"{i}.npy", a)
                    if i in outputs:
                        outs += ["--out", f"{names[tensor]}={temporary}/compiled{i}.npy"]
                    else:
                        given.append(f"{names[tensor]}={temporary}/{i}.npy")
                    tensor += 1
                # Plans follow extents, and sums their plans: the compiled kernel replays the plan of the package. Strides of one
                # element are facts of a plan that a package does not ask for.
                words = [word.replace("f32[1,1]", "f32[2,2]") for word in case.words]
                run(TOOL, "plan", case.program, *words, "--save", temporary / "plan.json")
                checked = run(TOOL, "run", case.program, *given, *outs, "--check", "--device", "cpu", "--plan", temporary / "plan.json")
                self.assertIn(" ok", checked)
                for i, expected in zip(outputs, case.expected):
                    got = np.fromfile(temporary / f"{i}.bin", case.arguments[i].dtype).reshape(case.arguments[i].shape)
                    np.testing.assert_array_equal(got.view(np.int32), np.load(temporary / f"compiled{i}.npy").view(np.int32))
                    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-4)

    def test_empty_arrays_and_other_extents(self):
        for rows, columns in ((0, 5), (3, 0), (1, 1), (5, 4096)):
            x = normal(rows, columns)
            case = Case("softmax", [], [x, np.zeros_like(x)], None, None)
            with tempfile.TemporaryDirectory() as temporary:
                temporary = pathlib.Path(temporary)
                done = self.drive(self.folder / "softmax", *self.words(case, temporary))
                self.assertEqual(done.returncode, 0, done.stderr)
                if x.size:
                    got = np.fromfile(temporary / "1.bin", np.float32).reshape(x.shape)
                    np.testing.assert_allclose(got, softmax(x), rtol=1e-5, atol=1e-7)

    def test_the_kernel_says_what_it_is(self):
        done = self.drive(self.folder / "softmax")
        manifest = self.manifest("softmax")
        self.assertRegex(done.stdout, r"^softmax [0-9a-f]{32}\n")
        self.assertIn(manifest["explanation"], done.stdout)

    def test_the_example_project_builds_against_the_installed_runtime_and_runs(self):
        files = [SOURCE / "examples/package" / name for name in ("CMakeLists.txt", "main.cpp")]
        lines = [line for file in files for line in file.read_text().splitlines() if line.strip() and not re.match(r"\s*(#\s|//)", line)]
        self.assertLess(len(lines), 40)
        program = self.build(SOURCE / "examples/package", self.folder / "example", f"-DPACKAGE={self.folder / 'softmax'}") / "runs_a_package"
        self.assertIn("1 / y[0, 0] = 1537.000, then 37.000", run(program, self.folder / "softmax", cwd="/"))
        done = subprocess.run([program, self.folder / "column_sums"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the generated header in use is of another package", done.stderr)

    def test_headers_are_typed_and_say_what_they_take(self):
        text = (self.folder / "layer_norm/layer_norm.h").read_text()
        for line in ("//   in x: f32[row, col]\n", "//   eps: f32, which may be left out\n", "// for arguments where stride(x, 1) == 1",
                     "// for arguments where no output shares memory with another argument\n", "Throws cosmati::Error"):
            self.assertIn(line, text)
        self.assertIn("    Array<float, DType::f32_, 2> y,\n    std::optional<float> eps = {})", text)
        run(TOOL, "package", self.words_program("double", "in new: bf16[i], out auto: bf16[i], given: i32 = 2", "auto[i] = new * bf16(given)"),
            "new=bf16[4]:zeros", self.folder / "keywords")
        calls = {"ok": "packaged::double_(p, {half, {4}}, {half, {4}}, 3);", "rank": "packaged::double_(p, {half, {4, 1}}, {half, {4}});",
                 "type": "float f[4]; packaged::double_(p, {f, {4}}, {half, {4}});", "missing": "packaged::double_(p, {half, {4}});"}
        for name, call in calls.items():
            source = self.folder / f"call_{name}.cpp"
            source.write_text(f'#include "{self.folder}/keywords/double.h"\nusing namespace cosmati;\nvoid f(const Package& p) {{ std::uint16_t half[4] = {{}}; {call} }}\n')
            run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.prefix}/include", source, fails=name != "ok")

    def words_program(self, name, parameters, statement):
        path = self.folder / f"{name}.tile"
        path.write_text(f"program {name}({parameters}) {{\n  parallel i {{ {statement} }}\n}}\n")
        return path

    # ---- what is installed ----

    def test_neither_llvm_nor_isl_is_linked(self):
        for file in (self.driver, self.library):
            libraries = run("ldd", file)
            self.assertNotRegex(libraries, r"(?i)llvm|libisl|not found")
        self.assertIn("libcosmati_runtime", run("ldd", self.driver))
        self.assertNotRegex(run("ldd", self.driver), r"libcosmati\.so")

    def test_only_the_runtime_is_installed(self):
        files = sorted(str(f.relative_to(self.prefix)) for f in self.prefix.rglob("*") if not f.is_dir())
        self.assertFalse([f for f in files if "libcosmati.so" in f or f.startswith("bin/") or f.endswith(("dsl.h", "program.h"))], files)
        for header in sorted((self.prefix / "include/cosmati").glob("*.h")):
            run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                f"-I{self.prefix}/include", "-xc++", "-", input=f"#include <cosmati/{header.name}>\n")
        project = self.folder / "wants_all"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(cosmati REQUIRED)\n")
        refused = configure(project, project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", fails=True)
        self.assertIn("cosmati has no component cosmati: only its runtime is installed here, which find_package(cosmati REQUIRED COMPONENTS runtime) finds",
                      " ".join(refused.split()))

    def test_the_library_shows_its_public_api_only(self):
        symbols = run("nm", "-DC", "--defined-only", self.library).splitlines()
        self.assertGreater(len(symbols), 20)
        for line in symbols:
            name = re.sub(r"^(typeinfo|typeinfo name|vtable) for ", "", line.split(" ", 2)[2])
            self.assertRegex(name, r"^cosmati::(Package|Device|Stream|Kernel|Launch|TensorView|Buffer|Error|InternalError|detail|name|meaning|set_log|version)\b")

    @unittest.skipIf(SANITIZE, "sanitizers make it large")
    def test_the_library_is_small(self):
        size = self.library.stat().st_size
        print(f"\n{self.library.name}, stripped: {size / 1e6:.2f} MB (limit {LIMIT_MB})")
        self.assertLess(size, LIMIT_MB * 1e6)

    @unittest.skipIf(SANITIZE or not shutil.which("pkg-config"), "needs pkg-config and a build without sanitizers")
    def test_pkg_config_compiles_and_links(self):
        flags = run("pkg-config", "--cflags", "--libs", "cosmati-runtime", env=os.environ | {"PKG_CONFIG_PATH": str(self.libdir / "pkgconfig")}).split()
        program = self.folder / "by_pkg_config"
        run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", SOURCE / "tests/package/driver/main.cpp", "-o", program, *flags)
        run(program, self.folder / "softmax", env=os.environ | {"LD_LIBRARY_PATH": str(self.libdir)})

    # ---- packages that lie ----

    def manifest(self, name):
        return json.loads((self.folder / name / "manifest.json").read_text())

    def copied(self, name="softmax"):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(self.folder / name, folder / "p")
        return folder / "p"

    def lie(self, code, pattern, change, name="softmax"):
        """A copy of the package whose manifest was changed is refused."""
        package, manifest = self.copied(name), self.manifest(name)
        change(manifest)
        (package / "manifest.json").write_text(json.dumps(manifest))
        with self.subTest(pattern=pattern, manifest=str(manifest)[:300]):
            self.refused(package, code, pattern)

    def test_a_manifest_that_is_written_again_is_the_same(self):
        package = self.copied()
        (package / "manifest.json").write_text(json.dumps(self.manifest("softmax")))
        self.assertEqual(self.drive(package).returncode, 0)

    def test_a_manifest_without_a_field_or_with_another_type_there(self):
        for where in ([], ["target"], ["facts"], ["code"]):
            def inside(manifest):
                for key in where:
                    manifest = manifest[key]
                return manifest
            for field in inside(self.manifest("softmax")):
                self.lie("bad_file", rf"it has no field `{field}`", lambda m: inside(m).pop(field))
                for other in (None, -1.5, {"a": 1}):
                    self.lie("bad_file", "holds something|has no field|format", lambda m: inside(m).update({field: other}))
        self.lie("bad_file", "holds something that no manifest does", lambda m: m.update(comment="hello"))

    def test_a_manifest_of_another_kernel(self):
        changes = [lambda m: m.update(program=m["program"].replace("f32", "f64")),
                   lambda m: m.update(program=m["program"].replace("row", "line")),
                   lambda m: m.update(kernel=m["kernel"].replace("extent(0)", "extent(1)")),
                   lambda m: m.update(kernel=m["kernel"].replace("stride(0, 0)", "stride(9, 9)")),
                   lambda m: m.update(kernel=m["kernel"].replace("worker_scratch[extent_col]", "worker_scratch[1]")),
                   lambda m: m.update(plan=m["plan"].replace("softmax", "softmix")),
                   lambda m: m.update(explanation="fast"),
                   lambda m: m["domain"].pop(),
                   lambda m: m["facts"]["unit_stride"][0].reverse(),
                   lambda m: m["facts"]["unit_stride"].pop(),
                   lambda m: m["facts"].update(aliases=[[0, 1]]),
                   lambda m: m["facts"].update(aliases=[[90, 91]]),
                   lambda m: m["target"]["features"].pop()]
        for change in changes:
            self.lie("bad_file", "the manifest beside it is of other code", change)

    def test_a_manifest_whose_program_or_kernel_is_none(self):
        for text in ("", "program", self.manifest("softmax")["program"][:-9], "program softmax<T: float>(in x: T[i], out y: T[i]) { parallel i { y[i] = x } }"):
            self.lie("bad_file", "its field `program` is", lambda m: m.update(program=text))
        self.lie("bad_file", "its field `program` is not layer_norm", lambda m: m.update(name="layer_norm"))
        for text in ("", "kernel", self.manifest("softmax")["kernel"][:-9] + "("):
            self.lie("bad_file", "its field `kernel` is none", lambda m: m.update(kernel=text))

    def test_a_package_of_another_format_or_machine(self):
        self.lie("bad_file", "is a package of format 2, and this library reads format 1", lambda m: m.update(format=2))
        self.lie("backend_absent", "is for the device cuda", lambda m: m["target"].update(device="cuda"))
        self.lie("backend_absent", "is for sparc, and this is", lambda m: m["target"].update(architecture="sparc"))
        self.lie("backend_absent", "uses warp_drive, which this processor lacks", lambda m: m["target"]["features"].append("warp_drive"))
        everything = ["avx2", "avx512f", "avx512vbmi2", "avx512vpopcntdq", "gfni"]
        lacked = [f for f in everything if f not in self.manifest("softmax")["target"]["features"]]
        if lacked:
            self.lie("backend_absent", f"uses {lacked[0]}, which this processor lacks", lambda m: m["target"]["features"].append(lacked[0]))

    def test_a_manifest_that_is_cut_short_or_no_text(self):
        text = (self.folder / "softmax/manifest.json").read_bytes()
        for damaged in (b"", b"\0" * 64, b"\xff\xfe", b"[" * 100000, text[: len(text) // 3], text[:-3], text.replace(b'"plan"', b'"plan', 1)):
            package = self.copied()
            (package / "manifest.json").write_bytes(damaged)
            self.refused(package, "bad_file", "damaged or cut short")

    def test_code_that_is_not_the_manifests(self):
        name = self.manifest("softmax")["code"]["file"]
        code = (self.folder / "softmax" / name).read_bytes()
        flipped = [code[:at] + bytes([code[at] ^ 1 << bit]) + code[at + 1:] for at, bit in ((0, 0), (60, 3), (len(code) // 2, 7), (len(code) - 1, 5))]
        other = (self.folder / "layer_norm" / self.manifest("layer_norm")["code"]["file"]).read_bytes()
        for damaged in (b"", b"hello", code[:100], code[:-1], code + b"\0", other, *flipped):
            package = self.copied()
            (package / name).write_bytes(damaged)
            self.refused(package, "bad_file", "its hash is not the manifest's")
        package = self.copied()
        (package / name).unlink()
        self.refused(package, "bad_file", rf"{name}: .*cannot be read")
        package = self.copied()
        (package / name).unlink()
        (package / name).mkdir()
        self.refused(package, "bad_file", "a folder, not a file")
        for outside in ("../softmax/" + name, "/etc/passwd", "..", "", "."):
            self.lie("bad_file", "outside of the package|a folder, not a file", lambda m: m["code"].update(file=outside))
        # Code of another kernel, with a manifest that says so.
        package, theirs = self.copied(), self.manifest("layer_norm")["code"]
        shutil.copy(self.folder / "layer_norm" / theirs["file"], package)
        (package / "manifest.json").write_text(json.dumps(self.manifest("softmax") | {"code": theirs}))
        self.refused(package, "bad_file", "the manifest beside it is of other code")

    def test_what_is_no_package(self):
        self.refused(self.folder / "nowhere", "bad_file", "there is no package here")
        self.refused(self.folder / "spread.tile", "bad_file", "there is no package here")
        package = self.copied()
        (package / "manifest.json").unlink()
        self.refused(package, "bad_file", "there is no package here: it has no manifest.json")
        (package / "manifest.json").mkdir()
        self.refused(package, "bad_file", "a folder, not a file")

    def test_a_manifest_nested_without_end(self):
        package = self.copied()
        (package / "manifest.json").write_text("[" * 1000000 + "]" * 1000000)
        self.refused(package, "bad_file", "it has no field `format`")
        self.lie("bad_file", "its field `program` is", lambda m: m.update(program="program p(out y: f32) { parallel { y = " + "(" * 100000 + "1 } }"))

    # ---- arguments ----

    def test_arguments_are_checked_as_those_of_functions(self):
        def words(case):
            return self.words(case, self.folder)
        x, y = normal(3, 4), np.zeros((3, 4), np.float32)
        package = self.folder / "softmax"
        for arguments, code, pattern in (([x.astype(np.int32), y], "bad_argument", "x is i32, but softmax takes f32"),
                                         ([x[0], y], "bad_argument", "x has 1 dimension"),
                                         ([x, y[:2]], "extent_mismatch", "axis row is 3"),
                                         ([x], "bad_argument", "needs an argument `y`"),
                                         ([x, y, 2], "bad_argument", "3 arguments are given")):
            self.refused(package, code, pattern, *words(Case("", [], arguments, None, None)))
        label = np.array([0, 4, 1], np.int32)
        self.refused(self.folder / "cross_entropy", "contract_broken", r"label\[1\] = 4 is outside",
                     *words(Case("", [], [x, label, np.zeros(3, np.float32)], None, None)))

    # ---- writing ----

    def tool_refuses(self, code, pattern, *words, exit_code=2):
        done = subprocess.run([TOOL, "package", *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        self.assertRegex(done.stderr, rf"{code}: ")
        self.assertRegex(done.stderr, pattern)

    def test_folders_that_cannot_be_written(self):
        x = "x=f32[1,1]:zeros"
        before = sorted(os.listdir(self.folder))
        self.tool_refuses("bad_file", "there is something already", "softmax", x, self.folder / "softmax")
        self.tool_refuses("bad_file", "there is something already", "softmax", x, self.folder / "spread.tile")
        self.tool_refuses("bad_file", "No such file", "softmax", x, self.folder / "no/such/folder")
        self.tool_refuses("bad_file", "Not a directory", "softmax", x, self.folder / "spread.tile/p")
        self.tool_refuses("bad_file", "cannot be written", "softmax", x, "/proc/p")
        self.tool_refuses("bad_argument", "no folder is given", "softmax", x)
        self.tool_refuses("bad_argument", "no folder is given", "softmax")
        self.tool_refuses("bad_argument", "not packaged for the device sim", "softmax", x, self.folder / "p", "--device", "sim")
        self.tool_refuses("bad_knob|unknown_knob", "lanes", "softmax", x, self.folder / "p", "--set", "lanes=3")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        (self.folder / "empty").mkdir()
        run(TOOL, "package", "softmax", x, f"{self.folder}/empty/")
        self.assertEqual(self.drive(self.folder / "empty").returncode, 0)
        (self.folder / "own").mkdir(mode=0o700)
        done = subprocess.run([TOOL, "package", "softmax", x, "."], capture_output=True, text=True, cwd=self.folder / "own")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("it is the current folder", done.stderr)
        run(TOOL, "package", "softmax", x, self.folder / "own")
        self.assertEqual((self.folder / "own").stat().st_mode & 0o777, 0o700)

    def test_a_system_without_a_linker_says_so(self):
        done = subprocess.run([TOOL, "package", "softmax", "x=f32[1,1]:zeros", self.folder / "p"], capture_output=True, text=True, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("neither cc, gcc nor clang", done.stderr)
        self.assertFalse((self.folder / "p").exists())

    def test_equal_commands_write_equal_packages(self):
        run(TOOL, "package", "softmax", "x=f32[1,1]:normal", self.folder / "again")
        for file in (self.folder / "softmax").iterdir():
            self.assertEqual(file.read_bytes(), (self.folder / "again" / file.name).read_bytes(), file.name)


if __name__ == "__main__":
    unittest.main()
