# The command line: what is listed, what runs, and one sentence for input that is wrong. And the smoke benchmark, recomputed.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import statistics
import subprocess
import sys
import unittest

from bench import __main__ as command
from bench.core import results
from bench.core.peers import load_peers
from bench.core.progress import Progress, duration
from declared import BenchTest, json

DECLARATION = """# A benchmark of a test.
# SPDX-License-Identifier: Apache-2.0
'''Three doubles.'''
import numpy as np
from bench.core import Array, Benchmark, Case, Cosmati, Settings, peer


@peer("{peer}")
def mine(work):
    def run(i):
        np.multiply(work.inputs[i]["x"], np.float32({factor}), out=work.outputs[i]["y"])
    return run


text = "program double(in x: f32[i], out y: f32[i]) {{ parallel i {{ y[i] = x * 2 }} }}"
benchmark = Benchmark(
    [Case(f"double {{n}}", text, {{"x": Array("f32", n)}}) for n in (1, 10, 100)], [Cosmati(), "{peer}"],
    settings=Settings(rounds=2, target_s=0.0, warmup_s=0.0, pause_s=0.0),
)
"""


class Smoke(BenchTest):
    """What the runner of the tree writes is read here without its code, but for the schema."""

    @classmethod
    def setUpClass(cls):
        import pathlib
        import tempfile

        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        ran = subprocess.run([sys.executable, "-m", "bench", "smoke", "--out", folder.name], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        (cls.folder,) = pathlib.Path(folder.name).iterdir()
        cls.document = results.load(cls.folder / "results.json")  # valid by the schema

    def test_every_row_is_there(self):
        names = self.document["settings"]["variants"]
        for case in self.document["cases"]:
            self.assertEqual([row["name"] for row in case["variants"]], names)
            rows = {row["name"]: row for row in case["variants"]}
            for name in ("cosmati", "cosmati, one lane", "numpy", "copy"):
                self.assertEqual(rows[name]["status"], "ok", rows[name]["reason"])
            for row in rows.values():
                self.assertTrue(row["status"] == "ok" or (row["status"] == "absent" and row["reason"]), row)
                self.assertEqual(bool(row["checks"]), row["status"] == "ok")

    def test_every_sample_is_there(self):
        for case in self.document["cases"]:
            ok = {row["name"] for row in case["variants"] if row["status"] == "ok"}
            for order in case["orders"]:
                names = {s["variant"] for s in case["samples"] if s["metric"] == order["metric"]}
                self.assertLessEqual(names, ok)
                wanted = [(r, p, name) for r, round_ in enumerate(order["rounds"]) for p, name in enumerate(round_)]
                got = [(s["round"], s["position"], s["variant"]) for s in case["samples"] if s["metric"] == order["metric"]]
                self.assertEqual(got, wanted)
                self.assertIn("numpy", names) if order["metric"].startswith("e2e") else None

    def test_every_figure_follows_from_the_samples(self):
        count = 0
        for case in self.document["cases"]:
            def rounds(variant, metric, case=case):
                found = [s for s in case["samples"] if (s["variant"], s["metric"]) == (variant, metric)]
                return [[second / s["calls"] * 1e6 for second in s["seconds"]] for s in sorted(found, key=lambda s: s["round"])]

            for s in case["summaries"]:
                every = sorted(sum(rounds(s["variant"], s["metric"]), []))
                self.assertEqual(s["count"], len(every))
                self.assertAlmostEqual(s["median"], statistics.median(every), delta=1e-9 * s["median"])
                q1, _, q3 = statistics.quantiles(every, n=4, method="inclusive")
                self.assertAlmostEqual(s["q1"], q1, delta=1e-9 * q1)
                self.assertAlmostEqual(s["q3"], q3, delta=1e-9 * q3)
            for p in case["pairs"]:
                ours, theirs = ([statistics.median(one) for one in rounds(name, p["metric"])] for name in (p["variant"], p["baseline"]))
                ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
                for a, b in zip(p["ratios"], ratios, strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-9 * b)
                self.assertAlmostEqual(p["median"], statistics.median(ratios), delta=1e-9 * p["median"])
                self.assertEqual((p["low"], p["high"]), (min(p["ratios"]), max(p["ratios"])))
                self.assertEqual((p["better"], p["worse"]), (sum(r < 1 for r in p["ratios"]), sum(r > 1 for r in p["ratios"])))
                count += 1
        self.assertGreaterEqual(count, 2 * 2 * 3)

    def test_hashes_are_those_of_the_files(self):
        for case in self.document["cases"]:
            self.assertEqual(case["program"]["sha256"], hashlib.sha256(case["program"]["text"].encode()).hexdigest())
            for row in case["variants"]:
                for kept in row["sources"] + ([row["plan"]] if row["plan"] else []):
                    self.assertEqual(kept["sha256"], hashlib.sha256((self.folder / kept["file"]).read_bytes()).hexdigest())
                self.assertEqual(row["plan"] is not None, row["kind"] == "cosmati")

    def test_the_table_names_every_row(self):
        table = (self.folder / "table.md").read_text()
        for case in self.document["cases"]:
            self.assertIn(f"## {case['name']}", table)
        for name in self.document["settings"]["variants"]:
            self.assertEqual(table.count(f"\n| {name} |"), len(self.document["cases"]) * len(self.document["settings"]["metrics"]))


class Command(BenchTest):
    def declare(self, factor=2, peer=None, text=DECLARATION):
        path = self.path / "mine.py"
        path.write_text(text.format(factor=factor, peer=peer or f"mine {self.id()}"))
        return str(path)

    def refused(self, text, *arguments):
        code, out, err = self.main(*arguments)
        self.assertEqual(code, 2, err)
        self.assertIn(text, err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(out, "")

    def test_benchmarks_are_listed(self):
        code, out, _ = self.main()
        self.assertEqual(code, 0)
        for name in ("smoke", "cpu", "library", "regret"):
            self.assertIn(name, out)
        for name in ("core", "peers", "ulp", "results"):
            self.assertNotIn(f"\n{name} ", "\n" + out)

    def test_every_benchmark_of_the_tree_is_declared_right(self):
        peers = load_peers()
        for name, path in command.available().items():
            benchmark = command.declared(name, path)
            self.assertTrue(command.title(path).endswith("."))
            for variant in benchmark.variants:
                self.assertTrue(not isinstance(variant, str) or variant in peers, (name, variant))

    def test_a_file_of_a_user_with_a_peer_of_their_own(self):
        code, out, err = self.main(self.declare(), "--out", str(self.path / "out"), "--case", "* 1*", "--rounds", "3", "--seed", "9")
        self.assertEqual(code, 0, err)
        (written,) = (self.path / "out").glob("*-mine/results.json")
        document = results.load(written)
        self.assertEqual(document["benchmark"]["title"], "Three doubles.")
        self.assertEqual([case["name"] for case in document["cases"]], ["double 1", "double 10", "double 100"])
        self.assertEqual((document["settings"]["rounds"], document["settings"]["seed"]), (3, 9))
        self.assertIn("| ratio to cosmati |", out)

    def test_a_failed_check_exits_with_1(self):
        code, _, err = self.main(self.declare(factor=2.001), "--out", str(self.path / "out"), "--case", "double 10")
        self.assertEqual(code, 1)
        self.assertIn("is wrong at", err)

    def test_choices_of_the_command_line(self):
        name = f"mine {self.id()}"
        arguments = ["--out", str(self.path / "out"), "--case", "double 1", "--variant", name, "--metric", "e2e_single", "--warm"]
        code, _, err = self.main(self.declare(), *arguments)
        self.assertEqual(code, 0, err)
        (written,) = (self.path / "out").glob("*/results.json")
        settings = results.load(written)["settings"]
        self.assertEqual((settings["variants"], settings["metrics"], settings["baseline"]), ([name], ["e2e_single"], name))

    def test_wrong_input_is_one_sentence(self):
        mine, name = self.declare(), f"mine {self.id()}"
        self.refused("there is no benchmark nothing; there are ", "nothing")
        self.refused("no case matches odd; there are double 1, double 10, double 100", mine, "--case", "odd")
        self.refused(f"there is no variant odd; there are cosmati, {name}", mine, "--variant", "odd")
        self.refused("the baseline odd is no variant", mine, "--baseline", "odd")
        self.refused("there is no metric odd; the metrics are e2e_batch", mine, "--metric", "odd")
        self.refused("rounds is 0; at least 1 is needed", mine, "--rounds", "0")
        self.refused("target_s is -0.001", mine, "--target-ms", "-1")
        self.refused("target_s is nan", mine, "--target-ms", "nan")
        self.refused("--threads is 0", mine, "--threads", "0")
        self.refused("--seed is -1", mine, "--seed", "-1")
        (self.path / "file").write_text("")
        self.refused("cannot be made", mine, "--out", str(self.path / "file" / "out"))
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["file", "mine.py"])

    def test_declarations_that_are_wrong(self):
        for text, part in (
            ("", "declares no `benchmark"),
            ("benchmark = 3", "declares no `benchmark"),
            ("1 / 0", "cannot be loaded: ZeroDivisionError"),
            (DECLARATION.replace("[Cosmati(), ", "[Cosmati(), Cosmati(), "), "two variants are called cosmati"),
            (DECLARATION.replace("(1, 10, 100)", "(1, 1)").replace("double {{n}}", "double"), "two cases are called double"),
            (DECLARATION.replace("(1, 10, 100)", "()"), "there is no case"),
            (DECLARATION.replace('"{peer}"],', '"no peer"],'), "there is no peer no peer; the peers are"),
        ):
            with self.subTest(part=part):
                self.refused(part, self.declare(text=text), "--out", str(self.path))
        self.assertEqual([p.name for p in self.path.iterdir()], ["mine.py"])

    def test_requirements_are_those_of_the_peers_of_a_benchmark(self):
        code, out, _ = self.main("smoke", "--requirements")
        self.assertEqual((code, out.split()), (0, ["numpy>=2", "onednn-cpu-gomp", "onnx", "onnxruntime"]))
        self.assertEqual(self.main("smoke", "--requirements", "--variant", "cosmati")[1].split(), [])

    def test_without_the_package_it_says_who_builds_it(self):
        environment = {**os.environ, "PYTHONPATH": str(command.HERE.parent)}
        ran = subprocess.run([sys.executable, "-m", "bench", "smoke", "--out", str(self.path)], capture_output=True, text=True, env=environment)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("./dev bench builds it", ran.stderr)


class ProgressLines(unittest.TestCase):
    def test_time_left(self):
        class Stream:
            text = ""

            def isatty(self):
                return False

            def write(self, text):
                self.text += text

            def flush(self):
                pass

        now = [0.0]
        stream = Stream()
        progress = Progress(100, stream, clock=lambda: now[0])
        self.assertEqual(progress.line("x"), "bench: x: 0 s, 0% done, about 100 s left")
        now[0] = 5
        progress.advance(1, "x")
        self.assertEqual(stream.text, "")  # nothing in the first seconds
        now[0] = 50
        progress.advance(24, "round 2")
        self.assertEqual(stream.text, "bench: round 2: 50 s, 25% done, about 2 min 30 s left\n")
        progress.done_s = 100
        self.assertEqual(progress.line("x"), "bench: x: 50 s, 100% done")
        self.assertEqual(duration(200), "3 min 20 s")


if __name__ == "__main__":
    unittest.main()
