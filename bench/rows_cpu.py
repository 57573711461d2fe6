# Row programs on the CPU.
# SPDX-License-Identifier: Apache-2.0
"""Softmax and layer norm of float32 rows on the CPU, beside NumPy, oneDNN, onnxruntime and a copy of the same bytes."""
from bench.core import Array, Benchmark, Case, Cosmati

SHAPES = [(37, 1536), (37, 1537), (256, 3072), (1024, 4096), (16384, 256), (64, 65536)]


def cases():
    for rows, cols in SHAPES:
        x = Array("f32", rows, cols)
        yield Case(f"softmax {rows}x{cols}", "softmax", {"x": x})
        affine = {"gamma": Array("f32", cols), "beta": Array("f32", cols)}
        yield Case(f"layer_norm {rows}x{cols}", "layer_norm", {"x": x, **affine}, {"eps": 1e-5})


benchmark = Benchmark(cases=list(cases()), variants=[Cosmati(), "copy", "numpy", "onednn", "onnxruntime"])
