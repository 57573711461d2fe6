# What a call from Python costs, in microseconds: the least of many rounds, since everything above it is the machine's.
#   calls.py [--limit US]     exits with 1 where a call with NumPy arrays takes longer
# SPDX-License-Identifier: Apache-2.0
import argparse
import sys
import timeit

import numpy as np

import cosmati as co


def least_us(call, rounds=200, calls=100):
    call()
    return min(timeit.repeat(call, number=calls, repeat=rounds)) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description="Time calls of a tiny softmax from Python.")
    parser.add_argument("--limit", type=float, help="fail where a call with NumPy arrays takes longer, in us")
    limit = parser.parse_args().limit
    softmax = co.load("softmax", threads=1)
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    y = np.empty_like(x)
    cases = {
        "softmax(x), 4 x 16 float32": lambda: softmax(x),
        "softmax(x, out=y)": lambda: softmax(x, out=y),
        "numpy.empty of the output alone": lambda: np.empty((4, 16), np.float32),
        "numpy: e = exp(x - x.max()); e / e.sum()": lambda: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
    }
    try:
        import torch
    except ImportError:
        print("torch: absent")
    else:
        t = torch.from_numpy(x)
        cases |= {"softmax(torch tensor)": lambda: softmax(t), "torch.softmax": lambda: torch.softmax(t, -1)}
    times = {name: least_us(call) for name, call in cases.items()}
    for name, us in times.items():
        print(f"{us:8.2f} us  {name}")
    slowest = max(list(times.values())[:2])
    if limit is not None and slowest > limit:
        sys.exit(f"calls: {slowest:.2f} us is over the limit of {limit} us")


if __name__ == "__main__":
    main()
