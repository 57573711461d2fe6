# Arrays of a case: generated inputs, outputs between guards, and as many sets of them as the cache must not hold.
# SPDX-License-Identifier: Apache-2.0
"""Sets of inputs and outputs. Inputs of all sets hold the same values in memory of their own."""
import hashlib
import zlib

import numpy as np

GUARD_BYTES = 4096
_GUARD, _POISON = 0xA5, 0xFF  # poison is NaN in every floating type and no likely integer

# Names of dtypes as cosmati prints them.
DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
}  # fmt: skip


def dtype_of(name):
    """The NumPy dtype of a name. Raises ValueError for one that NumPy has not, nor ml_dtypes where that is installed."""
    if name in DTYPES:
        return np.dtype(DTYPES[name])
    try:
        import ml_dtypes

        return np.dtype({"bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}[name])
    except (ImportError, KeyError):
        raise ValueError(f"there is no dtype {name} here; there are {', '.join(DTYPES)}, and bf16 and f8 with ml_dtypes") from None


def generate(array, seed, salt):
    """The values of a declared Array: of this seed and the texts that tell it from others. Raises ValueError."""
    random = np.random.default_rng([seed, zlib.crc32(salt.encode())])
    dtype = dtype_of(array.dtype)
    values = array.values
    if isinstance(values, tuple):
        if dtype.kind not in "iu" or len(values) != 2 or values[0] >= values[1]:
            raise ValueError(f"values {values} are not a range of integers for {array.dtype}")
        return random.integers(*values, array.shape, dtype=dtype)
    if values in ("zeros", "ones"):
        return np.full(array.shape, values == "ones", dtype)
    if dtype.kind in "iub" or values not in ("normal", "uniform"):
        raise ValueError(f"values {values!r} cannot be made for {array.dtype}: normal, uniform (floating types), zeros, ones, or a range")
    return (random.standard_normal if values == "normal" else random.random)(array.shape).astype(dtype)


def guarded(shape, dtype):
    """An array aligned to 64 bytes, with guard bytes before and after it that check_guards() reads."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = np.full(size + 2 * GUARD_BYTES + 64, _GUARD, np.uint8)
    start = GUARD_BYTES + -(room.ctypes.data + GUARD_BYTES) % 64
    return room[start : start + size].view(dtype).reshape(shape), room, start, size


def raw(array):
    """The bytes of an array in row-major order; a view where it lies so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def sha256(array):
    return hashlib.sha256(raw(array).data).hexdigest()


class Sets:
    """`count` sets of a case's arrays. inputs: values by name. outputs: (dtype name, shape) by name."""

    def __init__(self, inputs, outputs, count):
        self.inputs, self.outputs, self._guards = [], [], []
        self._masters = inputs
        for _ in range(count):
            self.inputs.append({name: self._make(value.shape, value.dtype, value) for name, value in inputs.items()})
            self.outputs.append({name: self._make(shape, dtype_of(dtype), None) for name, (dtype, shape) in outputs.items()})
        self.poison()

    def __len__(self):
        return len(self.inputs)

    def _make(self, shape, dtype, value):
        array, room, start, size = guarded(shape, dtype)
        self._guards.append((room, start, size))
        if value is not None:
            array[...] = value
            array.setflags(write=False)
        return array

    def poison(self):
        """Overwrites every output with bytes that are no result."""
        for arrays in self.outputs:
            for array in arrays.values():
                raw(array)[:] = _POISON

    def damage(self):
        """What was written that must not be, as one sentence, or None."""
        for room, start, size in self._guards:
            if not ((room[:start] == _GUARD).all() and (room[start + size :] == _GUARD).all()):
                return "bytes outside of an array were written"
        for number, arrays in enumerate(self.inputs):
            for name, array in arrays.items():
                if not np.array_equal(raw(array), raw(self._masters[name])):
                    return f"the input {name} of set {number} was written"
        return None

    def mend(self):
        """Guards and inputs as they were, for who comes next."""
        for room, start, size in self._guards:
            room[:start] = room[start + size :] = _GUARD
        for arrays in self.inputs:
            for name, array in arrays.items():
                array.setflags(write=True)
                array[...] = self._masters[name]
                array.setflags(write=False)


def bytes_of(inputs, outputs):
    """Bytes that a call reads and writes, each array once."""
    read = sum(value.nbytes for value in inputs.values())
    return read + sum(int(np.prod(shape, dtype=np.int64)) * dtype_of(dtype).itemsize for dtype, shape in outputs.values())


def sets_needed(set_bytes, cold, cache_bytes, memory_bytes):
    """How many sets calls go through: one when warm; when cold as many as hold the last-level cache twice, at least two. Raises
    ValueError where that is more than half of the memory that is free."""
    if not cold:
        return 1
    if cache_bytes is None:
        raise ValueError("the size of the last-level cache is unknown, so nothing says how much memory a cold measurement must go through")
    count = max(2, -(-2 * cache_bytes // max(set_bytes, 1)) + 1)
    if memory_bytes is not None and count * set_bytes > memory_bytes // 2:
        raise ValueError(f"a cold measurement needs {count} sets of {set_bytes} bytes, more than half of the {memory_bytes} bytes that are free")
    return count
