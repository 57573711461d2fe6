# The yardstick of a CUDA device: as many bytes as a program moves, copied on the device by the driver.
# SPDX-License-Identifier: Apache-2.0
"""The peer "driver copy"."""
import ctypes

import numpy as np

from bench.core import Absent, Subject, peer


class _Driver:
    """libcuda on the primary context of device 0. Raises Absent."""

    def __init__(self):
        try:
            self.c = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise Absent("there is no CUDA driver (libcuda.so.1)") from None
        count, device, self.context, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        if self.c.cuInit(0) or self.c.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
            raise Absent("the CUDA driver finds no device")
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self("cuCtxSetCurrent", self.context)
        self("cuDriverGetVersion", ctypes.byref(version))
        name = ctypes.create_string_buffer(256)
        self("cuDeviceGetName", name, len(name), device)
        self.versions = {"CUDA driver": str(version.value), "GPU": name.value.decode()}

    def __call__(self, name, *arguments):
        code = getattr(self.c, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returns the CUDA error {code}")

    def handle(self, name, *arguments):
        made = ctypes.c_void_p()
        self(name, ctypes.byref(made), *arguments)
        return made


class _Copies:
    """Source and target of each set on the device; freed with this object."""

    def __init__(self, driver, work):
        self.driver, self.pointers = driver, []
        self.size = ctypes.c_size_t(work.inputs[0]["bytes"].nbytes)
        self.pairs = []
        for arrays in work.inputs:
            target, source = self._allocate(), self._allocate()
            driver("cuMemcpyHtoD_v2", source, ctypes.c_void_p(arrays["bytes"].ctypes.data), self.size)
            self.pairs.append((target, source))

    def _allocate(self):
        self.pointers.append(self.driver.handle("cuMemAlloc_v2", self.size))
        return self.pointers[-1]

    def run(self, i):
        target, source = self.pairs[i]
        self.driver("cuMemcpyDtoDAsync_v2", target, source, self.size, None)

    def wait(self):
        self.driver("cuCtxSynchronize")

    def fetch(self, i):
        back = np.empty(self.size.value, np.uint8)
        self.driver("cuMemcpyDtoH_v2", ctypes.c_void_p(back.ctypes.data), self.pairs[i][0], self.size)
        return {"bytes": back}

    def __del__(self):
        for pointer in self.pointers:
            self.driver.c.cuMemFree_v2(pointer)


class _EventClock:
    """Seconds between two events on the default stream."""

    def __init__(self, driver):
        self.driver = driver
        self.begin, self.end = (driver.handle("cuEventCreate", 0) for _ in range(2))

    def start(self):
        self.driver("cuEventRecord", self.begin, None)

    def stop(self):
        took_ms = ctypes.c_float()
        self.driver("cuEventRecord", self.end, None)
        self.driver("cuEventSynchronize", self.end)
        self.driver("cuEventElapsedTime", ctypes.byref(took_ms), self.begin, self.end)
        return took_ms.value / 1000

    def __del__(self):
        for event in (self.begin, self.end):
            self.driver.c.cuEventDestroy_v2(event)


@peer("driver copy", yardstick="copy")
def driver_copy(work):
    driver = _Driver()
    copies = _Copies(driver, work)
    return Subject(
        run=copies.run, wait=copies.wait, fetch=copies.fetch, clock=_EventClock(driver), device="cuda", versions=driver.versions
    )
