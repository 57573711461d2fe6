# oneDNN through its C interface: one primitive a program, on the same arrays.
# SPDX-License-Identifier: Apache-2.0
"""The peer "onednn"."""
import ctypes

from bench.core import Absent, Subject, peer
from bench.peers import _dnnl as dnnl


def _descs(lib, arrays):
    return {name: lib.desc(array) for name, array in arrays.items()}


def softmax(lib, arrays, scalars, kind=dnnl.SOFTMAX_ACCURATE):
    d = _descs(lib, arrays)
    axis = arrays["x"].ndim - 1
    made = lib.primitive("softmax_forward", dnnl.FORWARD_INFERENCE, kind, d["x"], d["y"], axis)
    return made, [(dnnl.SRC, d["x"], "x"), (dnnl.DST, d["y"], "y")]


def log_softmax(lib, arrays, scalars):
    return softmax(lib, arrays, scalars, dnnl.SOFTMAX_LOG)


def layer_norm(lib, arrays, scalars):
    d = _descs(lib, arrays)
    eps = ctypes.c_float(scalars.get("eps", 1e-5))
    made = lib.primitive(
        "layer_normalization_forward", dnnl.FORWARD_INFERENCE, d["x"], d["y"], None, eps, ctypes.c_uint(dnnl.USE_SCALE | dnnl.USE_SHIFT)
    )
    return made, [(dnnl.SRC, d["x"], "x"), (dnnl.SCALE, d["gamma"], "gamma"), (dnnl.SHIFT, d["beta"], "beta"), (dnnl.DST, d["y"], "y")]


def rms_norm(lib, arrays, scalars):
    d = _descs(lib, arrays)
    eps = ctypes.c_float(scalars.get("eps", 1e-6))
    made = lib.primitive("layer_normalization_forward", dnnl.FORWARD_INFERENCE, d["x"], d["y"], None, eps, ctypes.c_uint(dnnl.USE_SCALE | dnnl.RMS_NORM))
    return made, [(dnnl.SRC, d["x"], "x"), (dnnl.SCALE, d["w"], "w"), (dnnl.DST, d["y"], "y")]


def _reduction(lib, x, into, axis):
    shape = list(x.shape)
    shape[axis] = 1
    source, target = lib.desc(x), lib.desc(into, shape)
    made = lib.primitive("reduction", dnnl.REDUCTION_SUM, source, target, ctypes.c_float(0), ctypes.c_float(0))
    return made, source, target


def sum_rows(lib, arrays, scalars):
    made, x, y = _reduction(lib, arrays["x"], arrays["y"], 1)
    return made, [(dnnl.SRC, x, "x"), (dnnl.DST, y, "y")]


def column_sums(lib, arrays, scalars):
    made, x, s = _reduction(lib, arrays["x"], arrays["s"], 0)
    return made, [(dnnl.SRC, x, "x"), (dnnl.DST, s, "s")]


def matmul(lib, arrays, scalars):
    d = _descs(lib, arrays)
    made = lib.primitive("matmul", d["a"], d["b"], None, d["c"])
    return made, [(dnnl.SRC, d["a"], "a"), (dnnl.WEIGHTS, d["b"], "b"), (dnnl.DST, d["c"], "c")]


OPERATIONS = {
    "column_sums": column_sums, "layer_norm": layer_norm, "log_softmax": log_softmax, "matmul": matmul, "rms_norm": rms_norm,
    "softmax": softmax, "sum": sum_rows,
}  # fmt: skip


@peer("onednn", requires=["onednn-cpu-gomp"])
def onednn(work):
    """The library that BENCH_DNNL names, else the newest wheel on PyPI that runs on OpenMP, else the system's."""
    if work.operation not in OPERATIONS:
        raise Absent(f"no primitive of oneDNN is called for {work.operation} here")
    try:
        lib = dnnl.Library()
        first = {**work.inputs[0], **work.outputs[0]}
        primitive, arguments = OPERATIONS[work.operation](lib, first, work.scalars)
    except dnnl.DnnlError as problem:
        raise Absent(str(problem)) from None
    sets = [{**i, **o} for i, o in zip(work.inputs, work.outputs)]
    runs = [lib.execution(primitive, [(arg, desc, arrays[name]) for arg, desc, name in arguments]) for arrays in sets]
    return Subject(
        run=lambda i: runs[i](),
        wait=lambda: lib.call("stream_wait", lib.stream),
        versions={"oneDNN": lib.version, "oneDNN runtime": lib.runtime},
        binaries=[lib.file()],
    )
