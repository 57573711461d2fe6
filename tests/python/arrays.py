# What the tests of the package share: devices, programs, and a producer of DLPack that counts what is given back.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import gc
import sys
import unittest
import weakref

import numpy as np

import cosmati as co

DEVICES = [device.name for device in co.devices() if device.present]


def softmax(x):
    e = np.exp(np.asarray(x, np.float64) - np.max(x, axis=-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


COPY = """program copy<T: any>(in x: T[i, j], out y: T[i, j]) {
  parallel i { y[i, j] = x }
}"""
# Every element of x, its coordinates, in places that depend on the strides only.
COPY_ANY_RANK = "program copy<T: any>(in x: T[dims...], out y: T[dims...]) { parallel dims... { y[dims...] = x } }"


class ArraysTest(unittest.TestCase):
    def refused(self, text, call, code="bad_argument", also=()):
        """The Error of a call that must be refused; the message names the argument and the rule."""
        with self.assertRaises(co.Error) as raised:
            call()
        self.assertEqual(raised.exception.code, code, raised.exception)
        for part in (text, *also):
            self.assertIn(part, str(raised.exception))
        return raised.exception

    def freed(self, f, make):
        """A tensor of torch that a call was given is gone with its last name."""
        x = make()
        f(x)
        gone = weakref.ref(x.untyped_storage() if hasattr(x, "untyped_storage") else x)
        counts = sys.getrefcount(x)
        f(x)
        self.assertEqual(sys.getrefcount(x), counts)
        del x
        gc.collect()
        self.assertIsNone(gone())


# ---- a producer ----------------------------------------------------------------------------------------------------
class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class Producer:
    """The memory of a NumPy array behind __dlpack__ only. `released` counts how often its exports were given back.

    versioned: DLPack 1 for consumers that ask for it; read_only: its flag. device: what __dlpack_device__ says. offset: bytes that the
    exported pointer lies before the data. legacy: __dlpack__ takes no keyword but stream. strides: False exports none.
    """

    def __init__(self, array, versioned=True, read_only=False, device=(1, 0), offset=0, legacy=False, strides=True, **fields):
        self.array, self.versioned, self.read_only, self.device, self.offset = array, versioned, read_only, device, offset
        self.strides, self.fields = strides, fields
        self.exported = self.released = 0
        self.asked = []
        self.keep = []
        if legacy:
            self.__class__ = LegacyProducer

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append((stream, max_version))
        return self.export(self.versioned and max_version is not None and max_version[0] >= 1)

    def export(self, versioned):
        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def deleter(_):
            self.released += 1

        array = self.array
        ints = ctypes.c_int64 * array.ndim
        shape, strides = ints(*array.shape), ints(*(s // array.itemsize for s in array.strides))
        managed = (_Versioned if versioned else _Managed)()
        tensor = managed.tensor
        tensor.data = array.ctypes.data - self.offset
        tensor.byte_offset = self.offset
        tensor.device_type, tensor.device_id = self.device
        tensor.ndim, tensor.lanes, tensor.bits = array.ndim, 1, array.itemsize * 8
        tensor.code = _CODES[array.dtype.kind]
        tensor.shape = shape
        if self.strides:
            tensor.strides = strides
        for name, value in self.fields.items():
            setattr(managed if hasattr(managed, name) else tensor, name, value)
        if versioned:
            managed.major, managed.minor = self.fields.get("major", 1), 1
            managed.flags = 1 if self.read_only else 0
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        self.keep.append((deleter, managed, shape, strides))
        self.exported += 1
        return _new_capsule(ctypes.addressof(managed), b"dltensor_versioned" if versioned else b"dltensor", None)


class _ExchangeApi(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("allocate", ctypes.c_void_p), ("from_object", ctypes.c_void_p), ("to_object", ctypes.c_void_p),
                ("view", ctypes.c_void_p), ("stream", ctypes.c_void_p)]  # fmt: skip


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
def _from_object(producer, out):
    producer.fast += 1
    producer.export(True)
    out[0] = ctypes.addressof(producer.keep[-1][1])
    return 0


_API = _ExchangeApi(major=1, minor=3, from_object=ctypes.cast(_from_object, ctypes.c_void_p))
_API_NAME = b"dlpack_exchange_api"  # a capsule keeps the pointer
_NEWER = _ExchangeApi(major=2, minor=0, previous=ctypes.addressof(_API))


class FastProducer(Producer):
    """A producer with the table of C functions, of a later version that has the known one behind it; `fast` counts its use."""

    __dlpack_c_exchange_api__ = _new_capsule(ctypes.addressof(_NEWER), _API_NAME, None)
    fast = 0

    def __dlpack__(self, **_):
        raise AssertionError("the table is there")


class LegacyProducer(Producer):
    def __dlpack__(self, *, stream=None):
        self.asked.append((stream, None))
        return self.export(False)
