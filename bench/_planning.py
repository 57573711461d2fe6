# What planning and compiling cost, and how often programs are compiled: figures of the benchmark cpu.
# SPDX-License-Identifier: Apache-2.0
"""Each function takes the results so far, which it does not need, and returns Measured. Results of every call are checked."""
import re
import subprocess
import tempfile
import time

import numpy as np

from bench.core import Measured


def _random(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def softmax_compiles(_):
    """64 widths x 64 heights, dense arrays of one alignment."""
    import cosmati

    rng = np.random.default_rng(1)
    widths = sorted({1, 2, 3, 8, 17, 4096, 8192, *rng.choice(np.arange(1, 8193), 200, replace=False).tolist()})[:: 3][:64]
    heights = sorted({1, 2, 37, 256, *rng.choice(np.arange(1, 257), 150, replace=False).tolist()})[:: 2][:64]
    assert len(widths) == len(heights) == 64
    softmax, x, y = cosmati.load("softmax", cache=""), _random(heights[-1] * widths[-1]), np.empty(heights[-1] * widths[-1], np.float32)
    for h in heights:
        for w in widths:
            a, b = x[: h * w].reshape(h, w), y[: h * w].reshape(h, w)
            b.fill(np.nan)
            softmax(a, out=b)
            if not np.allclose(b.sum(-1, dtype=np.float64), 1, atol=1e-5):
                raise AssertionError(f"softmax {h}x{w}: its rows do not add up to 1")
        if not all(softmax.check(x[: h * widths[5]].reshape(h, widths[5]))):
            raise AssertionError(f"softmax {h}x{widths[5]} is wrong")
    return Measured([softmax.compiles], notes=[f"{len(heights) * len(widths)} shapes"])


def decode_compiles(_):
    """Batches and capacities of the cache, and lengths up to the capacity: few long ones, since only shapes can make a difference."""
    import cosmati

    rng = np.random.default_rng(2)
    batches = sorted({1, 2, 3, 4, 8, 16, 17, 64, 128, 255, 256, *rng.integers(1, 257, 6).tolist()})
    capacities = sorted({1, 2, 3, 8, 16, 100, 128, 1000, 1024, 4095, 4096, 8191, 8192, *rng.integers(1, 8193, 12).tolist()})
    groups, heads, width = 1, 2, 64
    decode = cosmati.load("decode", cache="")
    k = _random(batches[-1] * groups * capacities[-1] * width)
    q = _random(batches[-1], groups * heads, width)
    shapes = 0
    for b in batches:
        for c in capacities:
            shape = (b, groups, c, width)
            cache = k[: np.prod(shape)].reshape(shape)
            lengths = rng.integers(0, min(c, 16) + 1, b).astype(np.int32)
            lengths[0] = c if b * c <= 1 << 14 else lengths[0]
            arguments = {"q": q[:b], "k": cache, "v": cache, "len": lengths, "scale": 0.125}
            if b * c <= 1 << 12:
                if not all(decode.check(**arguments)):
                    raise AssertionError(f"decode of {b} sequences in caches of {c} is wrong")
            elif not np.isfinite(decode(**arguments)).all():
                raise AssertionError(f"decode of {b} sequences in caches of {c} is not finite")
            shapes += 1
    return Measured([decode.compiles], notes=[f"{shapes} shapes"])


def _examples():
    """Arguments of programs of all kinds."""
    x, v, i = _random(256, 1024), _random(1024), np.zeros(256, np.int32)
    q, kv = _random(2, 8, 16, 64), _random(2, 2, 128, 64)
    rows = dict.fromkeys(("softmax", "log_softmax", "sum", "min_max", "argmax", "column_sums", "transpose", "quantize_rows"), {"x": x})
    return {
        **rows, "layer_norm": {"x": x, "gamma": v, "beta": v}, "rms_norm": {"x": x, "w": v}, "add_rms_norm": {"x": x, "res": x, "w": v},
        "layer_norm_backward": {"x": x, "dy": x, "gamma": v}, "cross_entropy": {"x": x, "label": i}, "bias_gelu": {"x": x, "b": v},
        "swiglu": {"gu": x}, "matmul": {"a": x, "b": x.T.copy()}, "attention": {"q": q, "k": kv, "v": kv},
        "decode": {"q": q[:, :, 0].copy(), "k": kv, "v": kv, "len": np.full(2, 100, np.int32), "scale": 0.125},
        "linear_recurrence": {"a": q[0], "x": q[0]},
    }  # fmt: skip


def new_program_ms(_, repeats=7):
    """Parsing, proving and planning a program that this process has not seen, the slowest of many."""
    import cosmati

    times, names = {}, 0
    for program, arguments in _examples().items():
        text = cosmati.load(program).source(**arguments, as_="tile")
        times[program] = []
        for _ in range(repeats):
            names += 1
            new = re.sub(r"\bprogram \w+", f"program new_{names}", text)
            begin = time.perf_counter()
            cosmati.program(new, name=f"new_{names}", cache="").plan(**arguments)
            times[program].append((time.perf_counter() - begin) * 1e3)
    slowest = max(times, key=lambda program: np.median(times[program]))
    middle = float(np.median([np.median(one) for one in times.values()]))
    return Measured(times[slowest], notes=[f"the slowest of {len(times)} programs, {slowest}", f"{middle:.2g} ms the median program"])


def new_extents_us(_, extents=400):
    """A whole first call, of few elements: the plan for the new extents, and the run. Calls that compiled are counted apart."""
    import cosmati

    f, x, y = cosmati.load("softmax", threads=1, cache=""), _random(64 * 200), np.empty(64 * 200, np.float32)
    shapes = [(1 + n % 7, 9 + 2 * (n // 7)) for n in range(extents)]
    times, compiled = [], 0
    for rows, cols in shapes:
        a, b = x[: rows * cols].reshape(rows, cols), y[: rows * cols].reshape(rows, cols)
        before = f.compiles
        begin = time.perf_counter()
        f(a, out=b)
        took = (time.perf_counter() - begin) * 1e6
        if not np.allclose(b.sum(-1), 1, atol=1e-5):
            raise AssertionError(f"softmax {rows}x{cols} is wrong")
        if f.compiles == before:
            times.append(took)
        compiled += f.compiles - before
    return Measured(times, notes=[f"{compiled} of {extents} first calls compiled"])


WIDE, NARROW = 262144, 256
_COMPILED = ("softmax", "layer_norm", "sum")


def _at(program, columns):
    x, v = _random(4, columns), _random(columns)
    return {"x": x, "gamma": v, "beta": v} if program == "layer_norm" else {"x": x}


def compile_time_ratio(_, rounds=15):
    """The first call of a new function that has its plan minus the second, at both widths in turns, the worst of some programs."""
    import cosmati

    def compile_s(program, arguments):
        f = cosmati.load(program, cache="")
        f.plan(**arguments)  # has a bar of its own
        times = []
        for _ in range(2):
            begin = time.perf_counter()
            f(**arguments)
            times.append(time.perf_counter() - begin)
        assert f.compiles == 1
        return times[0] - times[1]

    worst = {}
    for program in _COMPILED:
        wide, narrow = _at(program, WIDE), _at(program, NARROW)
        ratios = []
        for n in range(rounds + 1):
            pair = {}
            for arguments in (wide, narrow) if n % 2 else (narrow, wide):
                pair[id(arguments)] = compile_s(program, arguments)
            ratios.append(pair[id(wide)] / pair[id(narrow)])
        worst[program] = ratios[1:]  # the first round warms up
    program = max(worst, key=lambda name: np.median(worst[name]))
    return Measured(worst[program], notes=[f"the worst of {', '.join(_COMPILED)}: {program}"])


def _code_bytes(assembly):
    """The bytes of machine code of an assembly text."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["as", "-o", f"{folder}/code.o"], input=assembly, text=True, check=True, cwd=folder)
        listed = subprocess.run(["size", "-A", f"{folder}/code.o"], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[1]) for line in listed.splitlines() if line.startswith(".text"))


def code_size_ratio(_):
    import cosmati

    sizes = {}
    for program in _COMPILED:
        f = cosmati.load(program, cache="")
        sizes[program] = [_code_bytes(f.source(**_at(program, columns), as_="asm")) for columns in (WIDE, NARROW)]
    ratios = {program: wide / narrow for program, (wide, narrow) in sizes.items()}
    worst = max(ratios, key=ratios.get)
    note = f"the worst of {', '.join(_COMPILED)}: {worst}, {sizes[worst][0]} and {sizes[worst][1]} bytes"
    return Measured(list(ratios.values()), max(ratios.values()), [note])
