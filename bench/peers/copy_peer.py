# The yardstick of the CPU: as many bytes as a program moves, copied by all threads that are allowed.
# SPDX-License-Identifier: Apache-2.0
"""The peer "copy"."""
import ctypes
from concurrent.futures import ThreadPoolExecutor

from bench.core import Subject, peer

ONE_THREAD_BYTES = 256 * 1024  # below it a second thread costs more than it copies


@peer("copy", yardstick=True)
def copy(work):
    """memmove, each thread its own part. A batch waits for the threads once, so that waking them is not what is timed."""
    size = work.inputs[0]["bytes"].nbytes
    threads = work.threads if size >= ONE_THREAD_BYTES else 1
    cuts = [size * t // threads // 64 * 64 for t in range(threads)] + [size]
    pairs = [(o["bytes"].ctypes.data, i["bytes"].ctypes.data) for i, o in zip(work.inputs, work.outputs)]
    parts = [[(to + a, source + a, b - a) for to, source in pairs] for a, b in zip(cuts, cuts[1:])]
    memmove = ctypes.memmove
    if threads == 1:
        return Subject(run=lambda i: memmove(*parts[0][i]), notes=["1 thread"])
    pool = ThreadPoolExecutor(threads)

    def copy_part(part, sets):
        for i in sets:
            memmove(*part[i])

    def batch(sets):
        for done in [pool.submit(copy_part, part, sets) for part in parts]:
            done.result()

    return Subject(run=lambda i: batch([i]), batch=batch, notes=[f"{threads} threads"])
