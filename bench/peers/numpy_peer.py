# NumPy, written as a user of NumPy who cares about speed writes it: in place where it can be.
# SPDX-License-Identifier: Apache-2.0
"""The peer "numpy"."""
import numpy as np

from bench.core import Absent, Subject, peer


def softmax(x, y):
    np.subtract(x, x.max(-1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(-1, keepdims=True)


def log_softmax(x, y):
    np.subtract(x, x.max(-1, keepdims=True), out=y)
    y -= np.log(np.exp(y).sum(-1, keepdims=True))


def layer_norm(x, gamma, beta, y, eps=1e-5):
    np.subtract(x, x.mean(-1, keepdims=True), out=y)
    y /= np.sqrt(np.square(y).mean(-1, keepdims=True) + x.dtype.type(eps))
    y *= gamma
    y += beta


def rms_norm(x, w, y, eps=1e-6):
    np.divide(x, np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(eps)), out=y)
    y *= w


def argmax(x, i):
    x.argmax(-1, out=i)


def sum_rows(x, y):
    x.sum(-1, out=y)


def column_sums(x, s):
    x.sum(0, out=s)


def matmul(a, b, c):
    np.matmul(a, b, out=c)


OPERATIONS = {
    "argmax": argmax, "column_sums": column_sums, "layer_norm": layer_norm, "log_softmax": log_softmax, "matmul": matmul, "rms_norm": rms_norm,
    "softmax": softmax, "sum": sum_rows,
}  # fmt: skip


@peer("numpy", requires=["numpy>=2"])
def numpy_(work):
    if work.operation not in OPERATIONS:
        raise Absent(f"no {work.operation} is written for NumPy here")
    operation = OPERATIONS[work.operation]
    sets, fetch = [{**i, **o, **work.scalars} for i, o in zip(work.inputs, work.outputs)], None
    if work.operation == "argmax":  # NumPy's indices are as wide as its addresses
        sets = [{**arrays, "i": np.empty(arrays["i"].shape, np.intp)} for arrays in sets]

        def fetch(i):
            return {"i": sets[i]["i"].astype(work.outputs[i]["i"].dtype)}

    notes = ["temporaries of NumPy are allocated while it is timed"]
    run = lambda i: operation(**sets[i])  # noqa: E731
    return Subject(run=run, fetch=fetch, versions={"numpy": np.__version__}, binaries=[_core_file()], notes=notes)


def _core_file():
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):  # of NumPy 2, of NumPy 1
        try:
            return __import__(name, fromlist=["__file__"]).__file__
        except ImportError:
            continue
    return ""
