# What the oneDNN peer needs of the C interface of libdnnl 3, through ctypes.
# SPDX-License-Identifier: Apache-2.0
"""Finding and calling libdnnl. Constants are those of oneapi/dnnl/dnnl_types.h."""
import ctypes
import ctypes.util
import os
import pathlib
import sys

import numpy as np

FORWARD_INFERENCE = 96
SOFTMAX_ACCURATE, SOFTMAX_LOG = 0x30000, 0x30001
REDUCTION_SUM = 0x2FFF4
USE_SCALE, USE_SHIFT, RMS_NORM = 2, 4, 0x20
SRC, DST, WEIGHTS, SCALE, SHIFT = 1, 17, 33, 51, 52
RUNTIMES = {0: "none", 1: "sequential", 2: "OpenMP", 4: "TBB", 8: "thread pool", 256: "OpenCL", 512: "SYCL"}
_CPU, _IN_ORDER = 1, 1
_TYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6, "float64": 7}
_STATUS = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 5: "runtime error", 6: "not required"}


class DnnlError(Exception):
    pass


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int), ("hash", ctypes.c_char_p),
                ("cpu_runtime", ctypes.c_uint), ("gpu_runtime", ctypes.c_uint)]  # fmt: skip


class _Argument(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]


def candidates():
    """Where libdnnl may lie: BENCH_DNNL, the wheels of this environment, the system."""
    if os.environ.get("BENCH_DNNL"):
        return [os.environ["BENCH_DNNL"]]
    wheels = sorted(str(path) for path in pathlib.Path(sys.prefix, "lib").glob("libdnnl.so.3"))
    return wheels + ["libdnnl.so.3", "libdnnl.so.2"]


class Library:
    """An open libdnnl with a CPU engine and a stream. Raises DnnlError, saying what was found instead."""

    def __init__(self):
        self.c, problems = None, []
        for path in candidates():
            try:
                self.c, self.path = ctypes.CDLL(path), path
                break
            except OSError as problem:
                problems.append(str(problem))
        if self.c is None:
            raise DnnlError("libdnnl is not installed (pip install onednn-cpu-gomp): " + problems[0])
        self.c.dnnl_version.restype = ctypes.POINTER(_Version)
        version = self.c.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        self.runtime = RUNTIMES.get(version.cpu_runtime, str(version.cpu_runtime))
        if version.major != 3:
            raise DnnlError(f"{self.path} is oneDNN {self.version}, and version 3 is called here")
        self.engine, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("engine_create", ctypes.byref(self.engine), _CPU, ctypes.c_size_t(0))
        self.call("stream_create", ctypes.byref(self.stream), self.engine, _IN_ORDER)

    def call(self, name, *arguments):
        status = getattr(self.c, "dnnl_" + name)(*arguments)
        if status:
            raise DnnlError(f"{name} of oneDNN {self.version} ({self.runtime}): {_STATUS.get(status, status)}")

    def file(self):
        """The path of the library that is loaded."""
        wanted = pathlib.Path(self.path).name
        for line in open("/proc/self/maps"):
            path = line.split(maxsplit=5)[-1].strip()
            if path.startswith("/") and pathlib.Path(path).name.startswith(wanted):
                return path
        return self.path

    def desc(self, array, shape=None):
        """A memory descriptor of an array's type and strides; `shape` adds dimensions of one to a dense array."""
        dims = list(array.shape if shape is None else shape)
        strides = [s // array.itemsize for s in array.strides]
        if shape is not None:
            strides = [int(np.prod(dims[d + 1 :])) for d in range(len(dims))]
        made, ints = ctypes.c_void_p(), ctypes.c_int64 * 12
        self.call("memory_desc_create_with_strides", ctypes.byref(made), len(dims), ints(*dims), _TYPES[array.dtype.name], ints(*strides))
        return made

    def primitive(self, kind, *arguments):
        desc, made = ctypes.c_void_p(), ctypes.c_void_p()
        self.call(kind + "_primitive_desc_create", ctypes.byref(desc), self.engine, *arguments, None)
        self.call("primitive_create", ctypes.byref(made), desc)
        return made

    def execution(self, primitive, arguments):
        """A call of `primitive` on arrays: [(argument, descriptor, array)]. The arrays must outlive it."""
        table = (_Argument * len(arguments))()
        for slot, (arg, desc, array) in zip(table, arguments):
            memory = ctypes.c_void_p()
            self.call("memory_create", ctypes.byref(memory), desc, self.engine, ctypes.c_void_p(array.ctypes.data))
            slot.arg, slot.memory = arg, memory
        execute, stream, count = self.c.dnnl_primitive_execute, self.stream, ctypes.c_int(len(arguments))

        def run():
            if execute(primitive, stream, count, table):
                raise DnnlError("primitive_execute failed")

        return run
