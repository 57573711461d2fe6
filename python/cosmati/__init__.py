# The package: what the library offers, the exceptions, and ways to programs.
# SPDX-License-Identifier: Apache-2.0
"""Numeric kernels written once, with named axes and no word about hardware.

    import cosmati as co

    softmax = co.load("softmax")          # a file, FILE:NAME, or one of shipped_programs()
    y = softmax(x)                        # NumPy arrays, torch tensors, anything with __dlpack__

    @co.program                           # a program written in Python
    def scale():
        row, col = co.Axis("row"), co.Axis("col")
        x = co.input("x", co.any_float, [row, col])
        y = co.output("y", co.like(x), [row, col])
        k = co.scalar("k", co.f32, 2)
        with co.parallel(row):
            y[row, col] = x * k

    scale(x, k=0.5)
"""
from cosmati import _core
from cosmati._core import *  # noqa: F403
from cosmati._core import version as version
from cosmati._errors import BackendAbsent as BackendAbsent
from cosmati._errors import Error as Error
from cosmati._errors import InternalError as InternalError
from cosmati._programs import load as load
from cosmati._programs import program as program

__version__ = version
# Names of Python's own stay what they are under `from cosmati import *`.
_BUILTIN = {"abs", "all", "any", "input", "max", "min", "pow", "round", "sum"}
__all__ = sorted(
    {name for name in vars(_core) if not name.startswith("_")} - _BUILTIN
    | {"BackendAbsent", "Error", "InternalError", "load", "program"}
)
