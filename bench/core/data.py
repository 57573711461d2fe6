# Arrays of a case: generated inputs, outputs between guards, and as many sets of them as the cache must not hold.
# SPDX-License-Identifier: Apache-2.0
"""Sets of inputs and outputs. Inputs of all sets hold the same values in memory of their own."""
import hashlib
import zlib

import numpy as np

GUARD_BYTES = 4096
MANY = 16  # of one set that is so many times the cache, nothing is left in it when the next call begins
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
    """The values of a declared Array, of one period where it has one: of this seed and the texts that tell it from others. Raises
    ValueError."""
    random = np.random.default_rng([seed, zlib.crc32(salt.encode())])
    dtype = dtype_of(array.dtype)
    values = array.values
    shape = (array.period, *array.shape[1:]) if array.period else array.shape
    if isinstance(values, tuple):
        if dtype.kind not in "iu" or len(values) != 2 or values[0] >= values[1]:
            raise ValueError(f"values {values} are not a range of integers for {array.dtype}")
        return random.integers(*values, shape, dtype=dtype)
    if values in ("zeros", "ones"):
        return np.full(shape, values == "ones", dtype)
    if dtype.kind in "iub" or values not in ("normal", "uniform"):
        raise ValueError(f"values {values!r} cannot be made for {array.dtype}: normal, uniform (floating types), zeros, ones, or a range")
    return (random.standard_normal if values == "normal" else random.random)(shape).astype(dtype)


def guarded(shape, dtype, off=0):
    """An array that begins `off` elements behind a multiple of 64 bytes, with guard bytes before and after it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = np.empty(size + 2 * GUARD_BYTES + 64 + off * dtype.itemsize, np.uint8)
    start = GUARD_BYTES + -(room.ctypes.data + GUARD_BYTES) % 64 + off * dtype.itemsize
    room[:start] = room[start + size :] = _GUARD
    return room[start : start + size].view(dtype).reshape(shape), room, start, size


def fill(array, values):
    """Writes `values`, again and again along the first dimension where the array is longer."""
    if array.shape == values.shape:
        array[...] = values
        return
    for at in range(0, len(array), len(values)):
        array[at : at + len(values)] = values[: len(array) - at]


def holds(array, values):
    """Whether fill() has left these very bytes in it."""
    if array.shape == values.shape:
        return np.array_equal(raw(array), raw(values))
    starts = range(0, len(array), len(values))
    return all(np.array_equal(raw(array[at : at + len(values)]), raw(values[: len(array) - at])) for at in starts)


def periods(array, repeats):
    """Its equal parts along the first dimension."""
    return array.reshape(repeats, array.shape[0] // repeats, *array.shape[1:]) if repeats > 1 else array[np.newaxis]


def raw(array):
    """The bytes of an array in row-major order; a view where it lies so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def sha256(array, repeats=1):
    """Of the bytes of an array, or of so many such arrays one after the other."""
    digest, bytes_ = hashlib.sha256(), raw(array).data
    for _ in range(repeats):
        digest.update(bytes_)
    return digest.hexdigest()


class Sets:
    """`count` sets of a case's arrays. inputs: (shape, values that come again along the first dimension) by name. outputs: (dtype name,
    shape) by name. off: of every array, as a Case has it."""

    def __init__(self, inputs, outputs, count, off=0):
        self.inputs, self.outputs, self._guards, self._off = [], [], [], off
        self._masters = {name: values for name, (_, values) in inputs.items()}
        for _ in range(count):
            self.inputs.append({name: self._make(shape, values.dtype, values) for name, (shape, values) in inputs.items()})
            self.outputs.append({name: self._make(shape, dtype_of(dtype), None) for name, (dtype, shape) in outputs.items()})
        self.poison()

    def __len__(self):
        return len(self.inputs)

    def _make(self, shape, dtype, values):
        array, room, start, size = guarded(shape, dtype, self._off)
        self._guards.append((room, start, size))
        if values is not None:
            fill(array, values)
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
                if not holds(array, self._masters[name]):
                    return f"the input {name} of set {number} was written"
        return None

    def mend(self):
        """Guards and inputs as they were, for who comes next."""
        for room, start, size in self._guards:
            room[:start] = room[start + size :] = _GUARD
        for arrays in self.inputs:
            for name, array in arrays.items():
                array.setflags(write=True)
                fill(array, self._masters[name])
                array.setflags(write=False)


def bytes_of(inputs, outputs):
    """Bytes that a call reads and writes, each array once: (dtype name, shape) by name."""
    return sum(int(np.prod(shape, dtype=np.int64)) * dtype_of(dtype).itemsize for dtype, shape in [*inputs.values(), *outputs.values()])


def sets_needed(set_bytes, cold, cache_bytes, memory_bytes):
    """How many sets calls go through: one when warm; when cold as many as hold the last-level cache twice beside the one in use, and one
    where that is many times the cache. Raises ValueError where that is more than half of the memory that is free."""
    count = 1
    if cold:
        if cache_bytes is None:
            raise ValueError("the size of the last-level cache is unknown, so nothing says how much memory a cold measurement must go through")
        if set_bytes < MANY * cache_bytes:
            count = max(2, -(-2 * cache_bytes // max(set_bytes, 1)) + 1)
    if memory_bytes is not None and count * set_bytes > memory_bytes // 2:
        which = "a cold" if cold else "this"
        raise ValueError(f"{which} measurement needs {count} sets of {set_bytes} bytes, more than half of the {memory_bytes} bytes that are free")
    return count
