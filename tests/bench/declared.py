# What the tests of the runner share: tiny benchmarks, peers with faults, a run in a folder of its own.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np

from bench import __main__ as command
from bench.core import Absent, Array, Benchmark, Case, Cosmati, Settings, Subject, peer, results
from bench.core.run import Run

QUICK = Settings(rounds=2, target_s=0.0, warmup_s=0.0, pause_s=0.0, single_samples=2)
DOUBLE = "program double(in x: f32[i, j], out y: f32[i, j]) { parallel i, j { y[i, j] = x * 2 } }"
DOUBLE_CASE = Case("double", DOUBLE, {"x": Array("f32", 5, 7)})


@peer("right")
def right(work):
    def run(i):
        np.multiply(work.inputs[i]["x"], np.float32(2), out=work.outputs[i]["y"])

    return run


@peer("wrong in one element")
def wrong(work):
    def run(i):
        np.multiply(work.inputs[i]["x"], np.float32(2), out=work.outputs[i]["y"])
        work.outputs[i]["y"][3, 4] *= np.float32(1 + 1e-5)

    return run


@peer("wrong in the end")
def wrong_in_the_end(work):
    calls = []

    def run(i):
        calls.append(i)
        np.multiply(work.inputs[i]["x"], np.float32(2 if len(calls) < 5 else 3), out=work.outputs[i]["y"])

    return run


@peer("forgets an element")
def forgets(work):
    def run(i):
        x, y = work.inputs[i]["x"], work.outputs[i]["y"]
        y.reshape(-1)[1:] = x.reshape(-1)[1:] * 2

    return run


@peer("writes too far")
def writes_too_far(work):
    def run(i):
        y = work.outputs[i]["y"]
        np.multiply(work.inputs[i]["x"], np.float32(2), out=y)
        np.lib.stride_tricks.as_strided(y.reshape(-1), (y.size + 1,), (4,))[-1] = 0

    return run


@peer("writes its input")
def writes_its_input(work):
    def run(i):
        x = work.inputs[i]["x"]
        np.multiply(x, np.float32(2), out=work.outputs[i]["y"])
        x.setflags(write=True)
        x[0, 0] = 7

    return run


@peer("another form")
def another_form(work):
    return Subject(run=lambda i: None, fetch=lambda i: {"y": np.zeros((7, 5), np.float32)})


@peer("fetched")
def fetched(work):
    """Keeps its results where only fetch() finds them, as a GPU does."""
    there = {}

    def run(i):
        there[i] = work.inputs[i]["x"] * np.float32(2)

    return Subject(run=run, fetch=lambda i: {"y": there[i]}, clock=FakeClock(), versions={"fetched": "1.0"}, notes=["a remark"])


class FakeClock:
    def start(self):
        pass

    def stop(self):
        return 1e-6


@peer("not here")
def not_here(work):
    raise Absent("its library is not installed")


@peer("raises", requires=["no-such-package"])
def raises(work):
    raise RuntimeError("two\nlines")


@peer("raises later")
def raises_later(work):
    calls = []

    def run(i):
        calls.append(i)
        if len(calls) == 4:
            raise RuntimeError("the fourth call")
        np.multiply(work.inputs[i]["x"], np.float32(2), out=work.outputs[i]["y"])

    return run


@peer("a lame copy", yardstick="copy")
def a_lame_copy(work):
    def run(i):
        work.outputs[i]["bytes"][:-1] = work.inputs[i]["bytes"][:-1]

    return run


def interrupting(calls_until):
    """A peer that is interrupted by its n-th call."""

    @peer("interrupted")
    def interrupted(work):
        calls = []

        def run(i):
            calls.append(i)
            if len(calls) >= calls_until:
                raise KeyboardInterrupt
            np.multiply(work.inputs[i]["x"], np.float32(2), out=work.outputs[i]["y"])

        return run


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def execute(self, variants, cases=(DOUBLE_CASE,), settings=QUICK, baseline=None, **changes):
        """(status, document as it was written) of a benchmark of these variants."""
        benchmark = Benchmark(list(cases), list(variants), baseline, dataclasses.replace(settings, **changes))
        folder = results.make_folder(self.path, "test")
        about = {"name": "test", "title": "Test", "file": "test.py", "sha256": "0" * 64}
        run = Run(benchmark, about, folder, 2, stream=io.StringIO())
        status = run.execute()
        document = results.load(folder / "results.json")
        self.assertEqual(document["status"], status)
        self.folder = folder
        return status, document

    def row(self, document, name, case=0):
        (row,) = [row for row in document["cases"][case]["variants"] if row["name"] == name]
        return row

    def names(self, document, what, case=0):
        return [one["variant"] for one in document["cases"][case][what]]

    def main(self, *arguments):
        """(exit code, standard output, standard error) of the command line in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(list(arguments))
        return code, out.getvalue(), err.getvalue()


__all__ = ["Array", "BenchTest", "Case", "Cosmati", "DOUBLE", "DOUBLE_CASE", "QUICK", "Settings", "interrupting", "json", "os", "sys"]
