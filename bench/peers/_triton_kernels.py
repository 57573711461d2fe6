# Row programs in Triton, as its tutorials write them: one row a program, the whole row in one block.
# SPDX-License-Identifier: Apache-2.0
"""Imported only where Triton is."""
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr, LOG: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    v = tl.load(x + row * cols + at, mask=inside, other=-float("inf")).to(tl.float32)
    v -= tl.max(v, axis=0)
    e = tl.exp(v)
    total = tl.sum(e, axis=0)
    result = v - tl.log(total) if LOG else e / total
    tl.store(y + row * cols + at, result, mask=inside)


@triton.jit
def layer_norm(x, gamma, beta, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    v = tl.load(x + row * cols + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / cols
    centred = tl.where(inside, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    g = tl.load(gamma + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(beta + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * cols + at, centred * scale * g + b, mask=inside)


@triton.jit
def rms_norm(x, w, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < cols
    v = tl.load(x + row * cols + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(v * v, axis=0) / cols + eps)
    g = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * cols + at, v * scale * g, mask=inside)


@triton.jit
def sum_rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(v, axis=0))
