# The bars of the library that people embed: launches, calls, caches, start-up, size, examples.
# SPDX-License-Identifier: Apache-2.0
"""What the library costs who embeds it: a launch, a call from Python, the disk cache alone and in a storm of processes, start-up, size."""
import functools
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import timeit

import numpy as np

from bench.core import Absent, Benchmark, Figure, Measured, provenance

RUNTIME_OVERHEAD, CACHE_PROCESS = "bench/runtime/runtime_overhead", "tests/runtime/cache_process"
EXAMPLES = ("example_softmax", "example_engine")
KERNELS = 8  # of cache_process


def built(name):
    path = provenance.built(name)
    if path is None:
        raise Absent(f"{name} is not built; ./dev bench builds it")
    return str(path)


def run(*command, environment=None, **more):
    """Standard output; raises RuntimeError with what it said where it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, cwd=provenance.ROOT, env={**os.environ, **(environment or {})}, **more)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
    return ran.stdout


@functools.lru_cache
def overheads():
    """{what: samples} of the runtime's own costs; each of the repetitions has its own process."""
    found = {}
    for _ in range(3):
        for line in run(built(RUNTIME_OVERHEAD), "--json").splitlines():
            row = json.loads(line)
            found.setdefault(row["what"], []).extend(row["samples"])
    return found


def overhead(what):
    return lambda _: Measured(overheads()[what])


def python_call_us(_, rounds=301, calls=200):
    import cosmati

    softmax = cosmati.load("softmax", threads=1)
    x = np.random.default_rng(0).standard_normal((4, 16), dtype=np.float32)
    if not all(softmax.check(x)):
        raise AssertionError("softmax 4x16 is wrong")
    return Measured([s / calls * 1e6 for s in timeit.repeat(lambda: softmax(x), number=calls, repeat=rounds)])


@functools.lru_cache
def storm():
    """(failures, compilations of the first round, of the later ones): every process checks its results."""
    script = provenance.ROOT / "tests/runtime/storm_test.py"
    ran = subprocess.run(
        [sys.executable, str(script), built(CACHE_PROCESS), "Storm.test_one_compilation_a_kernel_among_many_processes_some_of_them_killed"],
        capture_output=True, text=True,
    )  # fmt: skip
    said = re.search(r"(\d+) killed: (\d+) compilations in the first round, (\d+) later", ran.stdout)
    if not said:
        raise RuntimeError(ran.stderr[-2000:])
    return ran.returncode, *map(int, said.groups())


def storm_failures(_):
    failed, killed, first, later = storm()
    return Measured([failed], notes=[f"16 processes x {KERNELS} kernels x 20 rounds, {killed} killed, {first} compilations in the first round"])


def storm_compiles(_):
    return Measured([storm()[3] / KERNELS])


def size_mb(_):
    """Of the shared library that ./dev build no-llvm makes, stripped."""
    run(str(provenance.ROOT / "dev"), "build", "no-llvm")
    (library,) = {os.path.realpath(path) for path in glob.glob(str(provenance.ROOT / "build/no-llvm/libcosmati.so*"))}
    with tempfile.TemporaryDirectory() as folder:
        run("strip", "-o", f"{folder}/stripped", library)
        return Measured([os.path.getsize(f"{folder}/stripped") / 1e6])


def examples(_):
    """How many of the programs that stand in the documentation do not end well."""
    for example in EXAMPLES:
        run(built(example), environment={"COSMATI_CACHE_DIR": ""})
    return Measured([0.0], notes=[", ".join(EXAMPLES)])


benchmark = Benchmark(
    bars=[
        Figure("a launch of a tiny kernel, calling thread", overhead("a prepared launch, 16 elements copied, calling thread"), 1, "us"),
        Figure("a launch of softmax 37x1537, two threads", overhead("prepared softmax 37x1537, two threads"), 25, "us"),
        Figure("a call from Python with NumPy arrays", python_call_us, 6, "us"),
        Figure("a kernel from the disk cache, later in a process", overhead("a new function and its kernel from the disk cache, later"), 5, "ms"),
        Figure("a kernel from the disk cache, first in a process", overhead("first call of softmax in a fresh process, from the disk cache"), 5, "ms"),
        Figure("failures and wrong results of a storm of processes", storm_failures, 0),
        Figure("compilations a kernel after the first round of a storm", storm_compiles, 1),
        Figure("Device::pick() in a fresh process", overhead("Device::pick() in a fresh process"), 30, "ms"),
        Figure("that process, from start to end", overhead("that process, from start to end"), 30, "ms"),
        Figure("the stripped shared library without LLVM", size_mb, 12, "MB"),
        Figure("examples that fail", examples, 0),
    ],
    targets=["runtime_overhead", "cache_process", *EXAMPLES],
)
