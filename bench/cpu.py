# The bars of programs on the CPU, each held against memory or the best peer on the machine that it runs on.
# SPDX-License-Identifier: Apache-2.0
"""Programs on this processor beside the speed of its memory, oneDNN, NumPy and onnxruntime, and what planning and compiling cost.

Memory is what tools/stream_kernels.cpp and memcpy reach on the same number of threads; the fastest of them counts. Cases whose names
end in `cold` go through more memory than the last-level cache; `warm` ones repeat on arrays that fit it.
"""
from bench import _planning as planning
from bench.core import Array, Benchmark, Case, Cosmati, Figure, Settings, Speed, machine

COPIES = ("copy", "copy, vectors", "copy, past the cache")
PEERS = ("numpy", "onednn", "onnxruntime")
LAST_LEVEL = machine.last_level_bytes(machine.caches()) or 32 << 20
PERIOD_ELEMENTS = 1 << 22  # rows of larger arrays come again after about so many, so that the oracle can judge each of them
BYTES = {"f32": 4, "bf16": 2}


def divisor(rows, most):
    """The largest divisor of `rows` up to `most`."""
    return next(d for d in range(max(1, most), 0, -1) if rows % d == 0)


def arrays(program, dtype, rows, cols, periodic=True):
    """The inputs of a program of rows, of those that come again where they are many."""
    period = divisor(rows, PERIOD_ELEMENTS // cols) if periodic and rows * cols > 2 * PERIOD_ELEMENTS else 0
    matrix, vector = Array(dtype, rows, cols, period=period if 1 < period < rows else 0), Array(dtype, cols)
    return {
        "layer_norm": {"x": matrix, "gamma": vector, "beta": vector},
        "rms_norm": {"x": matrix, "w": vector},
        "add_rms_norm": {"x": matrix, "res": matrix, "w": vector},
        "layer_norm_backward": {"x": matrix, "dy": matrix, "gamma": vector},
        "cross_entropy": {"x": matrix, "label": Array("i32", rows, values=(0, cols), period=matrix.period)},
    }.get(program, {"x": matrix})


class Table:
    """The cases and bars in the order in which they are declared."""

    def __init__(self):
        self.cases, self.bars = [], []

    def case(self, case, against, limit, what):
        self.cases.append(case)
        self.bars.append(Speed(what, case.name, against, limit))

    def memory(self, program, dtype, rows, cols, limit, kind="memcpy", bytes_per_element=2, periodic=True):
        """A program beside memory: cold, and warm where its arrays fit the last-level cache."""
        against = COPIES if kind == "memcpy" else ("read",)
        fits = rows * cols * BYTES[dtype] * bytes_per_element <= 1.01 * LAST_LEVEL
        for cold in (True, False) if fits else (True,):
            name = f"{program} {dtype} {rows}x{cols} {'cold' if cold else 'warm'}"
            inputs = arrays(program, dtype, rows, cols, periodic)
            self.case(Case(name, program, inputs, cold=cold, variants=[Cosmati(), *against]), against, limit, f"{program} beside {kind}")

    def best(self, program, rows, cols, limit, peers=PEERS):
        name = f"{program} f32 {rows}x{cols} beside peers"
        inputs = arrays(program, "f32", rows, cols)
        self.case(Case(name, program, inputs, cold=False, variants=[Cosmati(), *peers]), peers, limit, f"{program} beside the best peer")

    def like(self, program, cols, off, limit):
        """A program at awkward columns or addresses beside itself at 4096x2040."""
        even = Case(f"{program} f32 4096x2040", program, arrays(program, "f32", 4096, 2040), cold=False)
        name = f"{program} f32 4096x{cols}" + (" one element off" if off else "")
        variants = [Cosmati(), Cosmati("4096x2040", case=even)]
        case = Case(name, program, arrays(program, "f32", 4096, cols), cold=False, off=off, variants=variants)
        self.case(case, ("4096x2040",), limit, f"{program} beside itself at 4096x2040")


def table():
    t = Table()
    for rows in (1024, 65536):
        t.memory("softmax", "f32", rows, 4096, 0.75)
        for program in ("rms_norm", "layer_norm", "log_softmax"):
            t.memory(program, "f32", rows, 4096, 0.85)
        t.memory("add_rms_norm", "f32", rows, 4096, 0.85, bytes_per_element=4)
    for program in ("softmax", "layer_norm"):
        t.like(program, 2041, 0, 0.9)
        t.like(program, 2040, 1, 0.9)
    for dtype in ("f32", "bf16"):
        for program in ("sum", "min_max", "argmax"):
            for rows in (1024, 65536):
                t.memory(program, dtype, rows, 4096, 0.95, "a read", 1)
    for program in ("softmax", "rms_norm"):
        for rows in (1024, 65536):
            t.memory(program, "bf16", rows, 4096, 0.7)
    for rows, cols, norm in ((37, 1537, 1.4), (256, 3072, 1.4), (768, 6144, 1.1), (1024, 4096, 1.1)):
        t.best("softmax", rows, cols, 1.8)
        t.best("argmax", rows, cols, 1.5)
        t.best("layer_norm", rows, cols, norm)
    t.memory("softmax", "f32", 1000000, 17, 0.6)
    t.memory("softmax", "f32", 8388609, 3, 0.5)
    t.memory("softmax", "f32", 1, 16777216, 0.9)
    t.memory("column_sums", "f32", 16384, 4096, 0.9, "a read", 1, periodic=False)
    square = Case("transpose f32 8192x8192 cold", "transpose", {"x": Array("f32", 8192, 8192)}, cold=True, variants=[Cosmati(), *COPIES])
    t.case(square, COPIES, 0.7, "transpose beside memcpy")
    t.memory("layer_norm_backward", "f32", 16384, 4096, 0.85, bytes_per_element=3, periodic=False)
    t.memory("cross_entropy", "bf16", 4096, 128256, 0.9, "a read", 1)
    for n in (512, 1024):
        inputs = {"a": Array("f32", n, n), "b": Array("f32", n, n)}
        case = Case(f"matmul f32 {n}x{n}x{n}", "matmul", inputs, cold=False, variants=[Cosmati(), "onednn"])
        t.case(case, ("onednn",), 0.5, "matmul beside oneDNN")
    return t


FIGURES = [
    Figure("compiles of softmax over 64 widths x 64 heights", planning.softmax_compiles, 8),
    Figure("compiles of decode over batches 1..256 and lengths 1..8192", planning.decode_compiles, 6),
    Figure("planning a new program and shape", planning.new_program_ms, 20, "ms"),
    Figure("a first call at new extents of a known program", planning.new_extents_us, 50, "us"),
    Figure("compile time at 262144 columns of that at 256", planning.compile_time_ratio, 1.1, "ratio"),
    Figure("code size at 262144 columns of that at 256", planning.code_size_ratio, 1.1, "ratio"),
]

_table = table()
benchmark = Benchmark(
    cases=_table.cases, bars=_table.bars + FIGURES, baseline="cosmati", requires=["ml_dtypes"], required=PEERS,
    settings=Settings(rounds=12, pause_s=0.02),
)  # fmt: skip
