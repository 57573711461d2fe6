# The yardsticks of the CPU: as many bytes as a program moves, copied or read by all threads that are allowed.
# SPDX-License-Identifier: Apache-2.0
"""The peers "copy" (memcpy), "copy, vectors", "copy, past the cache" and "read"."""
import ctypes
import functools

import numpy as np

from bench.core import Absent, Subject, peer, provenance

ONE_THREAD_BYTES = 256 * 1024  # below it a second thread costs more than it moves
KINDS = {"read": 0, "copy, vectors": 1, "copy, past the cache": 2, "copy": 3}
PIECES, ROOM = 8, 64  # of an array for each thread; bytes that a read leaves of each


@functools.lru_cache
def _library():
    path = provenance.built("libcosmati_streams.so")
    if path is None:
        raise Absent("libcosmati_streams is not built; ./dev bench builds it")
    library = ctypes.CDLL(str(path))
    library.streams_open.restype = ctypes.c_void_p
    library.streams_close.argtypes = [ctypes.c_void_p]
    library.streams_run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int]
    return library, str(path)


class _Streams:
    """Threads of the library, as long as this lives."""

    def __init__(self, library, threads):
        self.library, self.handle = library, library.streams_open(threads)

    def __del__(self):
        self.library.streams_close(self.handle)


def _subject(work, name):
    library, path = _library()
    size = work.inputs[0]["bytes"].nbytes
    threads = work.threads if size >= ONE_THREAD_BYTES else 1
    streams = _Streams(library, threads)
    reads = name == "read"
    left = np.zeros((len(work.inputs), threads * PIECES, ROOM // 8), np.uint64)
    pointers = ctypes.c_void_p * len(work.inputs)
    source = pointers(*(i["bytes"].ctypes.data for i in work.inputs))
    target = pointers(*((part if reads else o["bytes"]).ctypes.data for part, o in zip(left, work.outputs)))

    def batch(sets):
        numbers = (ctypes.c_int * len(sets))(*sets)
        library.streams_run(streams.handle, KINDS[name], target, source, size, numbers, len(sets))

    def fetch(i):
        found = np.bitwise_xor.reduce(left[i], axis=None, keepdims=True).reshape(1)
        left[i] = 0
        return {"bytes": found}

    notes = [f"{threads} thread{'s' if threads > 1 else ''}"]
    return Subject(run=lambda i: batch([i]), batch=batch, fetch=fetch if reads else None, binaries=[path], notes=notes)


def _yardstick(name):
    peer(name, yardstick="read" if name == "read" else "copy")(lambda work: _subject(work, name))


for _name in KINDS:
    _yardstick(_name)
